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
from muniment.web.presenters.values import field_of, kind_of, kind_of_member, label_of_member, value_text
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
    field = field_of(name, kind)
    if field is not None:
        return gettext(field.label)
    if name in _LABELS:
        return gettext(_LABELS[name])
    return words_of(name)


def changed_label_of(name: str, kind: str = "company") -> str:
    """Return what a list of changes calls a member, whose usual label may be a question or mean something else."""
    special = {"maintainedByOwner": gettext("Owner"), "assessments": gettext("Published scores")}
    return special.get(name) or label_of(name, kind)


def lines_of(difference: Mapping[str, JSONMapping]) -> list[DiffLine]:
    """Return the lines of ``{field: {before, after}}``, with all that differs."""
    room = Room(is_whole=True)
    lines = []
    for name, values in difference.items():
        kind = kind_of(field_of(name))
        lines.append(line(label_of(name), values["before"], values["after"], room=room, kind=kind))
    return lines


def lines_of_entry(entry: HistoryEntry, room: Room) -> list[DiffLine]:
    """Return the lines of an entry of the history; *room* is that of its page."""
    change = Change(entry.before, entry.after, entry.parts)
    lines = []
    for name in history.names_of(change.after, change.before):
        before, after, part = change.before.get(name), change.after.get(name), change.part_of(name)
        lines.append(line(label_of(name), before, after, part, room=room, kind=kind_of(field_of(name))))
    return lines


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
        room: how much work and how many characters the page has left.
        kind: what the schema says of the value.
    """
    room = room or Room()
    before_text, after_text = _texts(before, after, part, room, kind)
    (was, was_rest), (now, now_rest) = _cut(before_text, after_text, room)
    was_html, now_html = mark(was, now, room.budget)
    was_marked, now_marked = format_html("{}{}", was_html, was_rest), format_html("{}{}", now_html, now_rest)
    return DiffLine(label, was + was_rest, now + now_rest, was_marked, now_marked)


def _texts(before: Any, after: Any, part: JSONMapping | None, room: Room, kind: Kind | None) -> tuple[str, str]:
    """Return both values as text: of a long or partly kept list, the rows that differ."""
    if isinstance(before, list) and isinstance(after, list):
        if part is not None or max(len(before), len(after)) > MAX_WHOLE:
            was, now = _changed_rows(before, after, room, kind), _changed_rows(after, before, room, kind)
            return was, "\n".join(filter(None, (now, _moved_rows(before, part or {}))))
    elif part is not None and isinstance(before, dict) and isinstance(after, dict):
        return _texts_of_members(before, after, part["members"], room, kind)
    return value_text(before, kind), value_text(after, kind)


def _texts_of_members(
    before: JSONMapping, after: JSONMapping, member_parts: JSONMapping, room: Room, kind: Kind | None
) -> tuple[str, str]:
    was, now = [], []
    for name in history.names_of(before, after):
        label = label_of_member(name, kind)
        member_kind = kind_of_member(name, kind)
        was_text, now_text = _texts(before.get(name), after.get(name), member_parts.get(name), room, member_kind)
        was.append(f"{label}: {was_text or '–'}")
        now.append(f"{label}: {now_text or '–'}")
    return "\n".join(was), "\n".join(now)


def _moved_rows(before: list[Any], part: JSONMapping) -> str:
    """Return how many rows have another place, in words; nothing if none has."""
    if "from" not in part:
        return ""
    changed_ids = {row["id"] for row in before}
    count = 0
    for _front, _back, _index, *row_ids in part["from"]:
        count += sum(row_id not in changed_ids for row_id in row_ids)
    if not count:
        return ""
    return ngettext("(%(count)s moved row)", "(%(count)s moved rows)", count) % {"count": number(count)}


def _changed_rows(rows: list[Any], others: list[Any], room: Room, kind: Kind | None) -> str:
    """Return the *rows* that are not among *others*, of many the first, and the numbers of the rest."""
    known = {_encode(row) for row in others}
    changed = [row for row in rows if _encode(row) not in known]
    most = len(changed) if room.is_whole else MAX_WHOLE
    unchanged_count, more = len(rows) - len(changed), len(changed) - most
    lines = [value_text(changed[:most], kind)] if changed else []
    if more > 0:
        lines.append(ngettext("(%(count)s more row)", "(%(count)s more rows)", more) % {"count": number(more)})
    if unchanged_count:
        words = ngettext("(%(count)s unchanged row)", "(%(count)s unchanged rows)", unchanged_count)
        lines.append(words % {"count": number(unchanged_count)})
    return "\n".join(lines)


def _cut(was: str, now: str, room: Room) -> list[tuple[str, str]]:
    """Return of both texts what the page has room for, about the first difference, and what is left."""
    if room.is_whole:
        return [(was, ""), (now, "")]
    most = max(MIN_SHOWN, min(MAX_SHOWN, room.characters // 2))
    start = rest = 0
    if max(len(was), len(now)) > min(most, MAX_UNCUT):
        head, tail = shared_ends(was, now)
        # Where little room is left, half of it is for what differs.
        start = max(0, head - min(_AROUND, most // 2))
        rest = max(0, tail - _AROUND)
    shown = [_part_of(text, start, min(start + most, len(text) - rest)) for text in (was, now)]
    room.characters = max(0, room.characters - sum(len(part) for part, _ in shown))
    return shown


def _part_of(text: str, start: int, end: int) -> tuple[str, str]:
    part = text[start:end]
    if len(part) == len(text):
        return text, ""
    before = "…" if start else ""
    behind = "…" if end < len(text) else ""
    whole = gettext("(%(count)s characters in all)") % {"count": number(len(text))}
    return before + part, f"{behind} {whole}"


def mark(was: str, now: str, budget: Budget) -> tuple[SafeString, SafeString]:
    """Return both texts as HTML, with the words that only one of them has marked as deleted or inserted."""
    if not was or not now or was == now:
        return _safe(escape(was)), _safe(escape(now))
    head, tail = _common(was, now)
    old, new = was[head : len(was) - tail], now[head : len(now) - tail]
    front, back = escape(was[:head]), escape(was[len(was) - tail :])
    changes = list(_changes(old, new, budget))
    equal_texts = [before for is_same, before, _ in changes if is_same]
    if not "".join(equal_texts).strip():
        # Where no word is the same, marks with gaps of white space between them would be hard to read.
        changes = [(False, old, new)]
    left, right = [front], [front]
    for is_same, before, after in changes:
        if is_same:
            left.append(escape(before))
            right.append(escape(after))
        else:
            left.append(_element("del", before))
            right.append(_element("ins", after))
    return _safe("".join((*left, back))), _safe("".join((*right, back)))


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
    if old and new:
        for pattern in (_WORDS, _LINES):
            if not budget.take((len(old) + len(new)) // 50):  # reading is cheaper than comparing
                break
            before, after = pattern.findall(old), pattern.findall(new)
            equal_pairs = _pairs(before, after, min(STEPS_OF_ONE, budget.left), budget)
            if equal_pairs is not None:
                yield from _pieces(before, after, equal_pairs)
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
            is_insertion = k == -distance or (k != distance and furthest[k - 1] < furthest[k + 1])
            x = furthest[k + 1] if is_insertion else furthest[k - 1] + 1
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
    """Follow the trace back from the ends of both texts, and return the equal pairs on the way from the beginning."""
    pairs = []
    for distance in range(len(trace) - 1, -1, -1):
        furthest, k = trace[distance], x - y
        end_x = end_y = 0
        if distance:
            is_insertion = k == -distance or (k != distance and furthest.get(k - 1, -1) < furthest.get(k + 1, -1))
            former = k + 1 if is_insertion else k - 1
            end_x = furthest[former]
            end_y = end_x - former
        while x > end_x and y > end_y:
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = end_x, end_y
    pairs.reverse()
    return pairs
