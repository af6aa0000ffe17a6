"""
The lists of a listing whose rows pages edit: their columns, and what a form's cells change in a row.

A cell that still says what was shown changes nothing. So a row keeps its additional members, and its values stay as
they were stored.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from django.conf import settings
from django.utils.translation import gettext_noop

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.company_parts import ADDRESSES, CAP_TABLE, POOLS, POSITIONS, PROPOSALS
from muniment.schema.item_lists import ItemList
from muniment.schema.kinds import Anything, Boolean, Date, Day, Integer, Items, Number
from muniment.schema.record import Field, Record

Cells = dict[str, str]
"""The cells of a row in a form, shown or sent, by the names of the columns."""
_NUMBER: Final = re.compile(r"[+-]?(\d+|\d{1,3}(,\d{3})+)(\.\d*)?%?")


class Column(NamedTuple):
    """A column: a member of the row, or a member (``inner``) of an object in it."""

    name: str
    field: Field
    member: Field
    inner: bool

    def text(self, row: JSONMapping) -> str:
        """Return the cell of *row*, with line ends as forms send them after decoding."""
        value = row.get(self.member.name)
        if self.inner:
            value = value.get(self.name) if isinstance(value, dict) else None
        return "" if value is None else one_line_end(str(value))

    def value(self, text: str) -> Any:
        """Return the value of a cell; None for an empty one."""
        text = text.strip()
        return number_or_text(text) if self.is_number else text or None

    @property
    def is_number(self) -> bool:
        return isinstance(self.field.kind, Number | Integer)

    @property
    def is_day(self) -> bool:
        return isinstance(self.field.kind, Day | Date)


Settle = Callable[[JSONObject, JSONMapping], JSONObject]
"""Gets an object after its change and the stored one, and returns the object to send."""


class RowList:
    """
    A list whose rows pages edit.

    Args:
        name: the list in a change, and the beginning of the names of its form fields.
        within: the object that holds the list.
        add: what the button that adds a row says.
        none: what is said while there are no rows.
        first: members whose columns come first.
        settle: decides by member what an object says in which only some members were changed.
    """

    def __init__(  # noqa: PLR0913 - each list of the form says all of it
        self,
        name: str,
        kind: ItemList,
        label: str,
        hint: str,
        *,
        add: str,
        none: str,
        within: str = "",
        first: Sequence[str] = (),
        settle: Mapping[str, Settle] | None = None,
    ) -> None:
        self.name, self.kind, self.label, self.hint, self.within = name, kind, label, hint, within
        self.add, self.none, self.settle = add, none, settle or {}
        columns_in_front: list[Column] = []
        columns: list[Column] = []
        for member in kind.row.values:
            if member.editable:
                place = columns_in_front if member.name in first else columns
                place += _columns(member)
        self.columns = (*columns_in_front, *columns)

    def stored(self, bundle: JSONMapping) -> list[JSONObject]:
        """Return the rows of a listing."""
        owner = bundle.get(self.within) if self.within else bundle
        return list((owner or {}).get(self.name) or [])

    def cells(self, row: JSONMapping) -> Cells:
        return {column.name: column.text(row) for column in self.columns}

    def new_row(self, cells: Cells) -> JSONObject:
        # A required object without a text is sent empty, so that the operation names what it lacks.
        row: JSONObject = {column.member.name: {} for column in self.columns if column.member.required}
        for name, value in self.changed_members({}, cells).items():
            if value is not None:
                row[name] = value
        return row

    def changed_members(self, row: JSONMapping, cells: Cells) -> JSONObject:
        """Return the members of *row* that *cells* change; None for those that they clear."""
        members: JSONObject = {}
        changed_objects: dict[str, tuple[Field, JSONObject]] = {}
        for column in self.columns:
            if cells[column.name] == column.text(row):
                continue
            value = column.value(cells[column.name])
            if column.inner:
                _, inner_members = changed_objects.setdefault(column.member.name, (column.member, {}))
                inner_members[column.name] = value
            else:
                members[column.name] = value
        for name, (member, inner_members) in changed_objects.items():
            members[name] = self._object(member, row.get(name) or {}, inner_members)
        return members

    def changed_row(self, row: JSONMapping, members: JSONMapping) -> JSONObject:
        """Return *row* with the members of :meth:`changed_members`."""
        changed = {**row, **members}
        for name, value in members.items():
            if name in self.kind.merged and isinstance(value, dict):
                changed[name] = {**(row.get(name) or {}), **value}
        return changed

    def _object(self, member: Field, stored: JSONMapping, changes: JSONObject) -> JSONObject | None:
        """Return an object of a row as the change has it: whole, or the changed members where these are merged."""
        whole = {name: value for name, value in {**stored, **changes}.items() if value is not None}
        if not whole and not member.required:
            return None
        if member.name in self.kind.merged and stored:
            return changes
        if member.name in self.settle:
            return self.settle[member.name](whole, stored)
        return whole


def _columns(member: Field) -> list[Column]:
    if isinstance(member.kind, Record):
        return [Column(field.name, field, member, inner=True) for field in member.kind.fields if field.editable]
    if isinstance(member.kind, Items | Anything | Boolean):
        return []
    return [Column(member.name, member, member, inner=False)]


def fingerprint(cells: Mapping[str, str]) -> str:
    """Return a short digest of what a row shows, by which a form's row is recognized as unchanged."""
    return hashlib.blake2b("\0".join(cells.values()).encode("utf-8", "replace"), digest_size=6).hexdigest()


def one_line_end(text: str) -> str:
    """Return *text* with the line ends of every other surface; browsers send CR LF."""
    return text.replace("\r\n", "\n").replace("\r", "\n")


def number_or_text(text: str) -> float | str | None:
    """Return a number if *text* is one; else *text*, for the operation to reject."""
    if not _NUMBER.fullmatch(text):
        return text or None
    plain = text.replace(",", "").removesuffix("%")
    if "." not in plain and len(plain) < 300:
        return int(plain)
    value = float(plain)
    # Up to 2**53, every whole number is a float, so that "3.0" is 3.
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def _person(person: JSONObject, stored: JSONMapping) -> JSONObject:
    """
    Return the person whom a changed row names: of name and slug, the one that was changed names them.

    The other one is still that of the person before, and would contradict it.
    """
    has_new_name = person.get("name") != stored.get("name")
    has_new_slug = person.get("slug") != stored.get("slug")
    if not stored or (has_new_name and has_new_slug):
        return person
    former = ""
    if has_new_name:
        former = "slug"
    elif person.get("slug"):
        former = "name"
    return {name: value for name, value in person.items() if name != former}


TEAM: Final = RowList(
    "positions",
    POSITIONS,
    gettext_noop("Team"),
    gettext_noop("Enter a name. Choose a suggested profile to link it, or keep the name alone."),
    add=gettext_noop("Add person"),
    none=gettext_noop("No people yet."),
    first=("person",),
    settle={"person": _person},
)
PLACES: Final = RowList(
    "address",
    ADDRESSES,
    gettext_noop("Addresses"),
    "",
    add=gettext_noop("Add address"),
    none=gettext_noop("No addresses yet."),
    within="company",
)
DISTRIBUTED: Final = RowList(
    "pools",
    POOLS,
    gettext_noop("Pools"),
    gettext_noop("How the tokens are distributed: each pool and its share in percent."),
    add=gettext_noop("Add pool"),
    none=gettext_noop("No pools yet."),
    within="distribution",
)
VOTED: Final = RowList(
    "proposals",
    PROPOSALS,
    gettext_noop("Proposals"),
    gettext_noop("Governance proposals and their votes."),
    add=gettext_noop("Add proposal"),
    none=gettext_noop("No proposals yet."),
)
HOLDERS: Final = RowList(
    "capTable",
    CAP_TABLE,
    gettext_noop("Cap table"),
    gettext_noop("Who holds the tokens: names or wallet addresses, and their share in percent."),
    add=gettext_noop("Add holder"),
    none=gettext_noop("No holders yet."),
    first=("name",),
)


def funding_rounds() -> RowList:
    """Return the list of funding rounds, whose amounts have the instance's currency."""
    field = settings.SCHEMA.bundle.by_name["fundingRounds"]
    kind: Any = field.kind
    hint = gettext_noop(
        "A round is open from its opening date up to its closing date. Only one round can lack a closing date."
    )
    add, none = gettext_noop("Add round"), gettext_noop("No funding rounds yet.")
    return RowList(field.name, kind, gettext_noop("Funding rounds"), hint, add=add, none=none)
