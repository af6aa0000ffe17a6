"""
Show changes side by side, with the differing words marked within a budget of work.

What both texts begin and end with is found in time that grows with their length alone. The words between are compared
by the algorithm of Myers, whose work grows with their number times that of the differences; beyond the budget the lines
are compared in place of the words, and then the text between counts as replaced.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Final, NamedTuple

import msgspec
from django.utils.html import format_html
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_noop, ngettext

from muniment.kernel.json import JSONMapping
from muniment.languages.writing import number
from muniment.registry import history
from muniment.registry.history import Change
from muniment.registry.models import HistoryEntry
from muniment.schema.kinds import Kind
from muniment.web.presenters.values import field_of, kind_of, kind_of_member, label_of_member, said
from muniment.web.wording.labels import words_of

_LABELS = {
    "state": gettext_noop("State"),
    "picture": gettext_noop("Picture"),
    "email": gettext_noop("Email"),
    "owner": gettext_noop("Owner"),
    "fundingRounds": gettext_noop("Funding rounds"),
    "unlistedBy": gettext_noop("Unlisted by"),
}
"""Labels of members in the history that are not fields of the schema."""


MAX_SHOWN: Final = 6_000
"""Characters of one side of a field."""


MAX_UNCUT: Final = 1_500
"""Characters of a text that is shown whole; of a longer one, the part with the differences."""


MIN_SHOWN: Final = 100
"""Characters of one side of a field where the page has no room left."""


PAGE_CHARACTERS: Final = 150_000
"""Maximum characters of all fields of a page, beside `MIN_SHOWN` of each."""


MAX_WHOLE: Final = 25
"""Maximum rows of a list shown whole; a longer one shows the rows that differ; in the history, the first of them."""


_AROUND: Final = 200
"""Characters that are shown in front of the first difference and behind the last."""


_encode = msgspec.json.Encoder(order="sorted").encode


STEPS: Final = 60_000
"""Words read and compared for one page."""


STEPS_OF_ONE: Final = 20_000
"""Words read and compared for one pair of texts, out of those of the page."""


_WORDS: Final = re.compile(r"\s+|\S+")


_LINES: Final = re.compile(r"[^\n]*\n|[^\n]+")


_EDGE: Final = re.compile(r"\s")


@dataclass(slots=True)
class Budget:
    """
    The work that may still be done for a page.

    Args:
        left: steps.
        spent: steps that were done.
    """

    left: int = STEPS
    spent: int = 0

    def take(self, steps: int) -> bool:
        """Return whether *steps* were left, and take them."""
        if steps > self.left:
            return False
        self.left -= steps
        self.spent += steps
        return True


@dataclass(slots=True)
class Room:
    """
    The room left on a page for differences: work, and characters.

    Args:
        is_whole: values are not cut, because they are decided on.
    """

    budget: Budget = field(default_factory=Budget)
    characters: int = PAGE_CHARACTERS
    is_whole: bool = False


class DiffLine(NamedTuple):
    """One field before and after, as text and with what differs marked."""

    label: str
    was: str
    now: str
    was_marked: SafeString
    now_marked: SafeString


def label_of(name: str, kind: str = "company") -> str:
    """Return what the pages call a member of a company or, where *kind* says so, of a person."""
    if (field := field_of(name, kind)) is not None:
        return gettext(field.label)
    return gettext(_LABELS[name]) if name in _LABELS else words_of(name)


def changed_label_of(name: str, kind: str = "company") -> str:
    """Return what a list of changes calls a member, which may be said with yes or no, or mean something else there."""
    special = {"maintainedByOwner": gettext("Owner"), "assessments": gettext("Published scores")}
    return special.get(name) or label_of(name, kind)


def lines_of(difference: Mapping[str, JSONMapping]) -> list[DiffLine]:
    """Return the lines of ``{field: {before, after}}``, with all that differs."""
    room = Room(is_whole=True)
    return [
        line(label_of(name), each["before"], each["after"], room=room, kind=kind_of(field_of(name)))
        for name, each in difference.items()
    ]


def lines_of_entry(entry: HistoryEntry, room: Room) -> list[DiffLine]:
    """Return the lines of an entry of the history; *room* is that of its page."""
    change = Change(entry.before, entry.after, entry.parts)
    names = history.names_of(change.after, change.before)
    return [
        line(
            label_of(name),
            change.before.get(name),
            change.after.get(name),
            change.part_of(name),
            room=room,
            kind=kind_of(field_of(name)),
        )
        for name in names
    ]


def labels_of(entry: HistoryEntry) -> str:
    return ", ".join(map(label_of, entry.changed or ()))


def line(
    label: str,
    before: Any,
    after: Any,
    part: JSONMapping | None = None,
    *,
    room: Room | None = None,
    kind: Kind | None = None,
) -> DiffLine:
    """
    Return a field before and after.

    Args:
        part: how values that are not whole fit into the whole.
        room: what the differences of the page may still take.
        kind: what the schema says of the value.
    """
    room = room or Room()
    (was, more), (now, rest) = _cut(*_said_both(before, after, part, room, kind), room)
    old, new = mark(was, now, room.budget)
    return DiffLine(label, was + more, now + rest, format_html("{}{}", old, more), format_html("{}{}", new, rest))


def _said_both(
    before: Any, after: Any, part: JSONMapping | None, room: Room, kind: Kind | None = None
) -> tuple[str, str]:
    if isinstance(before, list) and isinstance(after, list):
        moved = _moved(before, part or {})
        if part is not None or max(len(before), len(after)) > MAX_WHOLE:
            was, now = _changed_rows(before, after, room, kind), _changed_rows(after, before, room, kind)
            return was, "\n".join(filter(None, (now, moved)))
    if part is not None and isinstance(before, dict) and isinstance(after, dict):
        names, of = history.names_of(before, after), part["members"]
        sides = [
            (
                label_of_member(each, kind),
                _said_both(before.get(each), after.get(each), of.get(each), room, kind_of_member(each, kind)),
            )
            for each in names
        ]
        was, now = ("\n".join(f"{label}: {both[side] or '–'}" for label, both in sides) for side in (0, 1))
        return was, now
    return said(before, kind), said(after, kind)


def _moved(before: list[Any], part: JSONMapping) -> str:
    """Return how many rows have another place, in words; nothing if none has."""
    if not part:
        return ""
    changed_ids = {row["id"] for row in before}
    count = sum(row_id not in changed_ids for run in part.get("from", ()) for row_id in run[3:])
    if not count:
        return ""
    return ngettext("(%(count)s moved row)", "(%(count)s moved rows)", count) % {"count": number(count)}


def _changed_rows(rows: list[Any], others: list[Any], room: Room, kind: Kind | None) -> str:
    """Return the *rows* that are not among *others*, of many the first, and the numbers of the rest."""
    known = {_encode(each) for each in others}
    changed = [row for row in rows if _encode(row) not in known]
    most = len(changed) if room.is_whole else MAX_WHOLE
    same, more = len(rows) - len(changed), len(changed) - most
    found = [said(changed[:most], kind)] if changed else []
    if more > 0:
        found.append(ngettext("(%(count)s more row)", "(%(count)s more rows)", more) % {"count": number(more)})
    if same:
        left = ngettext("(%(count)s unchanged row)", "(%(count)s unchanged rows)", same)
        found.append(left % {"count": number(same)})
    return "\n".join(found)


def _cut(was: str, now: str, room: Room) -> list[tuple[str, str]]:
    """Return of both texts what the page has room for, about the first difference, and what is left."""
    if room.is_whole:
        return [(was, ""), (now, "")]
    most = max(MIN_SHOWN, min(MAX_SHOWN, room.characters // 2))
    start = rest = 0
    if max(len(was), len(now)) > min(most, MAX_UNCUT):
        head, tail = shared_ends(was, now)
        start, rest = max(0, head - min(_AROUND, most // 2)), max(0, tail - _AROUND)
    shown = [_part_of(text, start, min(start + most, len(text) - rest)) for text in (was, now)]
    room.characters = max(0, room.characters - sum(len(part) for part, _ in shown))
    return shown


def _part_of(text: str, start: int, end: int) -> tuple[str, str]:
    part = text[start:end]
    if len(part) == len(text):
        return text, ""
    whole = gettext("(%(count)s characters in all)") % {"count": number(len(text))}
    return f"{'…' if start else ''}{part}", f"{'…' if end < len(text) else ''} {whole}"


def mark(was: str, now: str, budget: Budget) -> tuple[SafeString, SafeString]:
    """Return both texts as HTML, with the words that only one of them has marked as deleted or inserted."""
    if not was or not now or was == now:
        return _safe(escape(was)), _safe(escape(now))
    head, tail = _common(was, now)
    old, new = was[head : len(was) - tail], now[head : len(now) - tail]
    front, back = escape(was[:head]), escape(was[len(was) - tail :])
    left, right = [front], [front]
    for is_same, before, after in _whole(list(_changes(old, new, budget))):
        left.append(escape(before) if is_same else _element("del", before))
        right.append(escape(after) if is_same else _element("ins", after))
    return _safe("".join((*left, back))), _safe("".join((*right, back)))


def _whole(changes: list[tuple[bool, str, str]]) -> list[tuple[bool, str, str]]:
    """Return *changes*, as a single one where no word is the same: marks with gaps between would be hard to read."""
    if any(is_same and before.strip() for is_same, before, _ in changes):
        return changes
    return [(False, "".join(before for _, before, _ in changes), "".join(after for *_, after in changes))]


def _safe(html: str) -> SafeString:
    return mark_safe(html)  # noqa: S308 - every text in it passed through escape


def _element(name: str, text: str) -> str:
    return f"<{name}>{escape(text)}</{name}>" if text else ""


def _common(was: str, now: str) -> tuple[int, int]:
    """Return the lengths of the beginning and of the end that both texts share, which end and begin at white space."""
    head, tail = shared_ends(was, now)
    if head < max(len(was), len(now)):
        head = _back_to_edge(was[:head])
    if tail < max(len(was), len(now)) - head:
        tail = _back_to_edge(was[len(was) - tail :][::-1])
    return head, tail


def shared_ends(was: str, now: str) -> tuple[int, int]:
    """Return how many characters both texts begin with, and how many of the others they end with."""
    head = _shared(was, now, lambda text, size: text[:size])
    most = min(len(was), len(now)) - head
    tail = _shared(was[len(was) - most :], now[len(now) - most :], lambda text, size: text[len(text) - size :])
    return head, tail


def _shared(was: str, now: str, part: Callable[[str, int], str]) -> int:
    """Return the largest size at which the parts of both texts are equal, by halving."""
    least, most = 0, min(len(was), len(now))
    while least < most:
        size = (least + most + 1) // 2
        if part(was, size) == part(now, size):
            least = size
        else:
            most = size - 1
    return least


def _back_to_edge(text: str) -> int:
    for match in _EDGE.finditer(text[::-1]):
        return len(text) - match.start()
    return 0


def _changes(old: str, new: str, budget: Budget) -> Iterator[tuple[bool, str, str]]:
    """Yield the pieces of both texts in order: equal ones, and those that replace each other."""
    for pattern in (_WORDS, _LINES):
        if not old or not new:
            break
        if not budget.take((len(old) + len(new)) // 50):  # reading is cheaper than comparing
            break
        before, after = pattern.findall(old), pattern.findall(new)
        found = _pairs(before, after, min(STEPS_OF_ONE, budget.left), budget)
        if found is not None:
            yield from _pieces(before, after, found)
            return
    yield False, old, new


def _pieces(
    before: Sequence[str], after: Sequence[str], pairs: Sequence[tuple[int, int]]
) -> Iterator[tuple[bool, str, str]]:
    x = y = 0
    for i, j in (*pairs, (len(before), len(after))):
        if i > x or j > y:
            yield False, "".join(before[x:i]), "".join(after[y:j])
        if i < len(before) and j < len(after):
            yield True, before[i], after[j]
        x, y = i + 1, j + 1


def _pairs(before: Sequence[str], after: Sequence[str], limit: int, budget: Budget) -> list[tuple[int, int]] | None:
    """
    Return the indexes of equal items in a longest common subsequence, or None beyond *limit* steps.

    Source: E. Myers, An O(ND) Difference Algorithm and Its Variations, 1986.
    """
    n, m = len(before), len(after)
    furthest = {1: 0}
    trace: list[dict[int, int]] = []
    steps = 0
    for distance in range(n + m + 1):
        trace.append(furthest)
        furthest = dict(furthest)
        for k in range(-distance, distance + 1, 2):
            down = k == -distance or (k != distance and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if down else furthest[k - 1] + 1
            y = start = x - k
            while x < n and y < m and before[x] == after[y]:
                x, y = x + 1, y + 1
            steps += 1 + y - start
            furthest[k] = x
            if x >= n and y >= m:
                budget.take(min(steps, budget.left))
                return _path(trace, n, m)
        if steps > limit:
            break
    budget.take(min(steps, budget.left))
    return None


def _path(trace: Sequence[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs = []
    for distance in range(len(trace) - 1, -1, -1):
        furthest, k = trace[distance], x - y
        down = k == -distance or (k != distance and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
        former = k + 1 if down else k - 1
        end_x = furthest[former] if distance else 0
        end_y = end_x - former if distance else 0
        while x > end_x and y > end_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = end_x, end_y
    pairs.reverse()
    return pairs
