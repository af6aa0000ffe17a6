"""Show changes side by side, with the differing words marked."""

import difflib
import json
import re
from collections.abc import Mapping
from html import escape
from typing import Any, NamedTuple

from django.conf import settings
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, gettext_noop, ngettext

from muniment.kernel.json import JSONMapping
from muniment.schema.company_parts import DISTRIBUTION, SOCIALS
from muniment.schema.item_lists import ITEM_ID

_LABELS = {
    "state": gettext_noop("State"),
    "picture": gettext_noop("Picture"),
    "email": gettext_noop("Email"),
    "owner": gettext_noop("Owner"),
    "fundingRounds": gettext_noop("Funding rounds"),
    "unlistedBy": gettext_noop("Unlisted by"),
}
"""What history names beside fields of the schema."""
MAX_MARKED = 6_000
"""Longer texts are shown without marks: comparing them word by word would take too long."""
MAX_WHOLE = 25
"""Of longer lists, only the rows that differ are shown."""


class DiffLine(NamedTuple):
    """One field before and after, as text and with what differs marked."""

    label: str
    was: str
    now: str
    was_marked: SafeString
    now_marked: SafeString


def label_of(name: str) -> str:
    schema = settings.SCHEMA
    for record in (schema.company, schema.bundle, schema.person):
        if name in record.by_name:
            return gettext(record.by_name[name].label)
    return gettext(_LABELS[name]) if name in _LABELS else name


def lines_of(difference: Mapping[str, JSONMapping]) -> list[DiffLine]:
    """Return the lines of ``{field: {before, after}}``."""
    return [line(label_of(field), each["before"], each["after"]) for field, each in difference.items()]


def lines_between(before: JSONMapping, after: JSONMapping) -> list[DiffLine]:
    keys = [*after, *(key for key in before if key not in after)]
    return [line(label_of(key), before.get(key), after.get(key)) for key in keys]


def line(label: str, before: Any, after: Any) -> DiffLine:
    was, now = said(before), said(after)
    if isinstance(before, list) and isinstance(after, list) and max(len(before), len(after)) > MAX_WHOLE:
        was, now = _changed_rows(before, after), _changed_rows(after, before)
    return DiffLine(label, was, now, *_marked(was, now))


def _changed_rows(rows: list[Any], others: list[Any]) -> str:
    """Return the *rows* that are not among *others*, and the number of those that are."""
    known = {json.dumps(each, sort_keys=True) for each in others}
    changed = [row for row in rows if json.dumps(row, sort_keys=True) not in known]
    same = len(rows) - len(changed)
    left = ngettext("(%(count)s unchanged row)", "(%(count)s unchanged rows)", same) % {"count": f"{same:,}"}
    return "\n".join([said(changed), left] if changed else [left])


def said(value: Any) -> str:
    """Return a value of the wire as readable text."""
    match value:
        case None:
            shown = ""
        case bool():
            shown = gettext("yes") if value else gettext("no")
        case int() | float():
            shown = f"{value:,}"
        case list():
            shown = "\n".join(_item(each) for each in value)
        case dict():
            shown = "\n".join(
                f"{_inner_label(key)}: {said(each)}" for key, each in value.items() if each not in (None, "", [])
            )
        case _:
            shown = str(value)
    return shown


def _inner_label(key: str) -> str:
    field = SOCIALS.by_name.get(key) or DISTRIBUTION.by_name.get(key)
    return gettext(field.label) if field else key


def _item(value: Any) -> str:
    if isinstance(value, dict):
        if isinstance(value.get("person"), dict):
            title = value.get("title")
            return f"{value['person'].get('name', '')}{f', {title}' if title else ''}"
        parts = [
            json.dumps(v, ensure_ascii=False) if isinstance(v, dict | list) else str(v)
            for key, v in value.items()
            if v and key != ITEM_ID.name
        ]
        return ", ".join(parts)
    return str(value)


def _marked(was: str, now: str) -> tuple[SafeString, SafeString]:
    if not was or not now or len(was) + len(now) > MAX_MARKED:
        return mark_safe(escape(was)), mark_safe(escape(now))  # noqa: S308 - escaped
    old, new = re.findall(r"\s+|[^\s]+", was), re.findall(r"\s+|[^\s]+", now)
    left, right = [], []
    for what, a, b, c, d in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        before, after = escape("".join(old[a:b])), escape("".join(new[c:d]))
        left.append(before if what == "equal" else f"<del>{before}</del>" if before else "")
        right.append(after if what == "equal" else f"<ins>{after}</ins>" if after else "")
    return mark_safe("".join(left)), mark_safe("".join(right))  # noqa: S308 - every part passed through escape
