"""Show changes side by side, with the differing words marked."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_noop, ngettext

from muniment.kernel.json import JSONMapping
from muniment.languages.writing import number
from muniment.registry import history
from muniment.registry.history import Change
from muniment.registry.models import HistoryEntry
from muniment.schema.kinds import Kind
from muniment.web.presenters.marking import Budget, mark, shared_ends
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
    changed = {row["id"] for row in before} if part else set()
    count = sum(each not in changed for run in part.get("from", ()) for each in run[3:])
    return (
        ngettext("(%(count)s moved row)", "(%(count)s moved rows)", count) % {"count": number(count)} if count else ""
    )


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
