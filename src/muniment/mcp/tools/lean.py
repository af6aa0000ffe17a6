"""
What an answer shows of an item: a summary, all that REST shows, or only the fields that the call names.

A summary leaves out what says nothing (null) or helps no agent to decide (icons, sources, times of changes); that of a
list also shortens long texts. Each field says in the schema which summaries have it.

Source: decisions, section 3.
"""

import difflib
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest
from muniment.mcp.declarations import Arguments
from muniment.schema.kinds import Items, Kind, Text
from muniment.schema.record import Field, Record

SUMMARY_CHARACTERS: Final = 120
"""Of a long text in the summary of a list item."""
DETAIL: Final[dict[str, JSONMapping]] = {"detail": {"enum": ["summary", "full"], "default": "summary"}}
FIELDS: Final[dict[str, JSONMapping]] = {
    "fields": {"type": "array", "items": {"type": "string", "maxLength": 60}, "maxItems": 60}
}
_FIELD_OF: Final = {
    "hasToken": "symbol",
    "theme": "themes",
    "team": "teamSize",
    "country": "address",
    "city": "address",
}
"""Filters and orders that agents name as fields, with the fields that they are about."""
_ORIGINS: Final = frozenset({"source", "sources"})
"""Additional members with which registries say where a row comes from."""
_MAX_SHOWN: Final = 60


class Form(NamedTuple):
    """What a call asks for: everything, or a summary; of either only some *fields*, in order, if it names any."""

    full: bool = False
    fields: tuple[str, ...] | None = None


FULL: Final = Form(full=True)


def form_of(arguments: Arguments) -> Form:
    fields = arguments.get("fields")
    named = None if fields is None else tuple(sorted({_FIELD_OF.get(name, name) for name in fields}))
    return Form(arguments.get("detail") == "full", named)


class Members:
    """
    The members that a call can name in `fields`.

    Args:
        identity: those that every answer has.
    """

    def __init__(self, names: Iterable[str], *, identity: Iterable[str] = ()) -> None:
        self.names = tuple(names)
        self.identity = frozenset(identity)

    def chosen(self, items: Sequence[JSONObject], arguments: Arguments) -> list[JSONObject]:
        """Return the *items* with the fields that a call names, all by default. Raise BadRequest for an unknown one."""
        fields = arguments.get("fields")
        if fields is None:
            return list(items)
        self.check(items, fields)
        return [self.only(item, fields) for item in items]

    def only(self, item: JSONObject, fields: Collection[str]) -> JSONObject:
        return {name: value for name, value in item.items() if name in self.identity or name in fields}

    def check(self, items: Sequence[JSONObject], fields: Iterable[str]) -> None:
        """Raise BadRequest for a field that is neither declared nor in one of the *items*, if there are any."""
        for name in fields:
            if name == "slug" and "id" in self.identity:
                continue  # a company's id, which every answer has
            if name not in self.names and items and not any(name in item for item in items):
                others = dict.fromkeys(each for item in items for each in item if each not in self.names)
                known = (*self.names, *others)
                close = difflib.get_close_matches(name, known, n=1, cutoff=0.7)
                meant = f"Did you mean {close[0]}? " if close else ""
                hint = f"{meant}The fields are: {', '.join(known)}."
                raise BadRequest(f"There is no field {name[:_MAX_SHOWN]!r}.", hint)


class Shape(Members):
    """
    How answers show the items of one record.

    Args:
        without: members that these answers lack.
        parts: names of the other members of a bundle, which `fields` can name too.
    """

    def __init__(self, record: Record, *, without: Collection[str] = (), parts: Sequence[str] = ()) -> None:
        fields = [field for field in record.fields if field.name not in without]
        super().__init__(
            (*(field.name for field in fields), *parts),
            identity=(field.name for field in fields if field.required and field.shown),
        )
        self._parts = frozenset(parts)
        self._known = frozenset(self.names)
        self._left_out = frozenset(each.name for each in _within(record) if each.summary == "none") | _ORIGINS
        self._not_listed = self._left_out | {field.name for field in fields if field.summary == "item"}
        self._short = frozenset(field.name for field in fields if not _is_long(field.kind))
        self._twins = tuple(
            (field.name, field.unless) for field in fields if field.unless and field.unless not in self._not_listed
        )
        """Fields that another one says more exactly."""

    def listed(self, items: Sequence[JSONObject], form: Form) -> list[JSONObject]:
        """Return the items of a list. Raise BadRequest for a field that they cannot have."""
        if form.fields is not None:
            self.check(items, form.fields)
            return [self._named(item, form.fields, full=form.full) for item in items]
        return list(items) if form.full else [self._summary(item) for item in items]

    def whole(self, item: JSONObject, form: Form) -> JSONObject:
        """Return a single item, whose texts stay whole. Raise BadRequest for a field that it cannot have."""
        if form.fields is not None:
            self.check((item,), form.fields)
            return self._named(item, form.fields, full=form.full)
        return item if form.full else pruned(item, self._left_out)

    def bundle(self, data: JSONObject, form: Form, parts: Collection[str] | None, *, of: Collection[str]) -> JSONObject:
        """
        Return a company with its parts, which `fields` can name like its facts.

        Args:
            parts: which of the members *of* it are shown, where `body` is one of the company; None for all.
        """
        facts, rest = data["company"], {name: value for name, value in data.items() if name != "company"}
        if form.fields is not None:
            wanted = {*form.fields, *self._known.intersection(parts or ())}
            self.check((facts,), wanted)
            rest = {name: each for name, each in rest.items() if name not in self._parts or name in wanted}
            facts = self._named(facts, wanted, full=form.full)
        else:
            left = frozenset() if parts is None else frozenset(of) - frozenset(parts)
            rest = {name: each for name, each in rest.items() if name not in left}
            facts = {name: each for name, each in facts.items() if name != "body" or name not in left}
            facts = facts if form.full else pruned(facts, self._left_out)
        return {"company": facts, **(rest if form.full else pruned(rest, self._left_out))}

    def _named(self, item: JSONObject, fields: Collection[str], *, full: bool) -> JSONObject:
        kept = self.only(item, fields)
        return kept if full else pruned(kept, frozenset())

    def _summary(self, item: JSONObject) -> JSONObject:
        kept: JSONObject = {}
        for name, value in item.items():
            if name in self._not_listed:
                continue
            if name not in self._known and isinstance(value, (list, dict)):
                continue
            kept[name] = value
            if isinstance(value, str) and len(value) > SUMMARY_CHARACTERS and name not in self._short:
                kept[name] = shortened(value, SUMMARY_CHARACTERS)
                kept[f"{name}Truncated"] = True
        for name, other in self._twins:
            if other in kept:
                kept.pop(name, None)
        return pruned(kept, self._left_out)


def pruned(value: JSONObject, left_out: frozenset[str]) -> JSONObject:
    """
    Return an object without null, without objects that held nothing else, and without the members *left_out*.

    Of a reference whose id is its slug, the slug is left.
    """
    found = {}
    for name, each in value.items():
        if each is None or name in left_out or (name == "id" and each == value.get("slug")):
            continue
        if type(each) is dict:
            kept = pruned(each, left_out)
            if each and not kept:
                continue
            each = kept  # noqa: PLW2901 - the value without what is left out
        elif type(each) is list:
            each = [pruned(row, left_out) if type(row) is dict else row for row in each]  # noqa: PLW2901 - as above
        found[name] = each
    return found


def shortened(text: str, characters: int) -> str:
    """Return the beginning of *text*, in one line, cut between words where there are any."""
    line = " ".join(text.split())
    if len(line) <= characters:
        return line
    head = line[: characters - 1]
    space = head.rfind(" ")
    return f"{(head[:space] if space > characters // 2 else head).rstrip(' ,;:')}…"


def _is_long(kind: Kind) -> bool:
    return isinstance(kind, Text) and kind.lines > 1


def _within(record: Record) -> Iterator[Field]:
    """Yield the fields of a record and of all records in it."""
    for field in record.fields:
        yield field
        kind = field.kind.of if isinstance(field.kind, Items) else field.kind
        if isinstance(kind, Record):
            yield from _within(kind)
