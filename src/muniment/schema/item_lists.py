"""
Lists whose rows have ids, so that an edit can name one row: its ids, and the operations on its rows. Pure.

A row without an id gets one from its identifying values and its rank among equal rows. So the same file gives the
same ids on every instance.

Source: decisions, section 5, update_*.
"""

import hashlib
import math
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any, Final

import msgspec
from msgspec import Struct

from muniment.kernel.json import JSONMapping, JSONObject, bytes_of
from muniment.kernel.phrases.phrase import Phrase
from muniment.schema.kinds import ItemId, Items, JsonSchema, View
from muniment.schema.record import Field, Record
from muniment.schema.validation import ABSENT, Breach, Path, Validation, kind_of

_DIGITS: Final = "0123456789abcdefghjkmnpqrstvwxyz"
_OPERATIONS: Final = ("add", "set", "remove")
MAX_SHARES: Final = 100
SHARES_TOLERANCE: Final = 0.5
"""Rounded shares add up to a little more than the whole."""


ITEM_ID: Final = Field("id", ItemId(), "ID", example="7c2m9xq4", csv=0)


class ItemChange(Struct, frozen=True):
    """
    Operations on the rows of a list.

    Args:
        add: rows to append, as they are stored.
        set: members to change, unread, by the id of the row.
        remove: ids of rows.
    """

    add: list[JSONObject]
    set: dict[str, JSONObject]
    remove: list[str]


class ItemList(Items, frozen=True, kw_only=True):
    """
    A list whose rows have ids. A change gives the whole list, or operations on its rows.

    Args:
        name: what a row is, so that rows of different lists get different ids.
        identity: returns what identifies a row that has no id.
        own_ids: a change may give a new row an id of the owner's choice.
        merged: members that are objects, of which a change of the row gives some members; others are replaced.
        share: the member that is the row's share of the whole, in percent.
        row_bytes: how large a row may be; None where the object around the list bounds it.
    """

    name: str
    identity: Callable[[JSONMapping], str]
    own_ids: bool = False
    merged: tuple[str, ...] = ()
    share: str = ""
    row_bytes: int | None = None

    @property
    def row(self) -> Record:
        assert isinstance(self.of, Record)  # noqa: S101 - for the type checker: rows are records
        return self.of

    def csv_columns(self, name: str) -> tuple[str, ...]:
        """Return the columns of its first row: a line of CSV has no room for more."""
        return self.row.csv_columns(name)

    def schema(self, view: View) -> JsonSchema:
        whole = super().schema(view)
        if not view.change:
            return whole
        rows, ids = {"type": "array", "items": whole["items"]}, {"type": "array", "items": {"type": "string"}}
        change = {"add": rows, "set": {"type": "array", "items": {"type": "object"}}, "remove": ids}
        # First what should be used; the rows of the whole list have the same form.
        return {"anyOf": [{"type": "object", "properties": change}, {"type": "array", "items": {"type": "object"}}]}

    def read(self, value: Any, path: Path, validation: Validation) -> Any:
        if validation.change and type(value) is dict:
            return self._operations(value, path, validation)
        return super().read(value, path, validation)

    def _operations(self, value: JSONObject, path: Path, validation: Validation) -> ItemChange | None:
        for name in sorted(value.keys() - set(_OPERATIONS)):
            validation.refuse((*path, name), Phrase("is not one of {operations}", operations=", ".join(_OPERATIONS)))
        for name in _OPERATIONS:
            if type(value.get(name, [])) is not list:
                validation.refuse((*path, name), Phrase("must be a list, not {kind}", kind=kind_of(value[name])))
                return None
        added = [self.row.read(row, (*path, "add", n), validation) for n, row in enumerate(value.get("add", []))]
        changed = self._changed_rows(value.get("set", []), (*path, "set"), validation)
        removed = value.get("remove", [])
        for n, row_id in enumerate(removed):
            at = (*path, "remove", n)
            if type(row_id) is not str:
                validation.refuse(at, Phrase("must be the id of a row, not {kind}", kind=kind_of(row_id)))
            elif row_id in changed:
                validation.refuse(at, Phrase("{given!r} is also in set", given=row_id))
        return ItemChange([row for row in added if row is not None], changed, removed)

    def _changed_rows(self, rows: list[Any], path: Path, validation: Validation) -> dict[str, JSONObject]:
        """Return the members that *rows* set, by the id of the row that they belong to."""
        changed: dict[str, JSONObject] = {}
        for n, row in enumerate(rows):
            at = (*path, n)
            if type(row) is not dict or type(row.get("id")) is not str:
                validation.refuse(at, "must be an object with the id of a row", self._set_hint())
            elif row["id"] in changed:
                validation.refuse((*at, "id"), Phrase("{id!r} is there twice", id=row["id"]))
            else:
                changed[row["id"]] = {name: member for name, member in row.items() if name != "id"}
        return changed

    def _set_hint(self) -> str:
        example = {"id": ITEM_ID.example, **self.row.shortest()}
        return Phrase(
            "Send the id of the stored row with the members to change, such as {example}. New rows go into add.",
            example=msgspec.json.encode(example).decode(),
        )

    def apply(self, stored: Sequence[JSONObject], change: ItemChange, path: Path, validation: Validation) -> list[Any]:
        """Return *stored* after *change*; a row or member that it does not name stays as it is."""
        counts = Counter(row.get("id", "") for row in stored)
        for n, row_id in enumerate(change.set):
            self._refuse_unless_one(counts[row_id], row_id, (*path, "set", n, "id"), validation)
        for n, row_id in enumerate(change.remove):
            self._refuse_unless_one(counts[row_id], row_id, (*path, "remove", n), validation)
        if validation.faults:
            return list(stored)
        order = {row_id: n for n, row_id in enumerate(change.set)}
        removed = set(change.remove)
        rows = []
        for row in stored:
            row_id = row.get("id", "")
            if row_id in removed:
                continue
            if row_id in change.set:
                row = self._set(row, change.set[row_id], (*path, "set", order[row_id]), validation)  # noqa: PLW2901 - the row as it is now
            rows.append(row)
        return [*rows, *change.add]

    @staticmethod
    def _refuse_unless_one(count: int, row_id: str, path: Path, validation: Validation) -> None:
        """Refuse an operation on the *count* rows that have an id, if it is not one."""
        if count == 0:
            validation.refuse(path, Phrase("{id!r} {rule}", id=row_id, rule=Phrase("is the id of no row")))
        elif count > 1:
            rule = Phrase("is the id of {found} rows: send the whole list", found=count)
            validation.refuse(path, Phrase("{id!r} {rule}", id=row_id, rule=rule))

    def _set(self, row: JSONObject, members: JSONObject, path: Path, validation: Validation) -> JSONObject:
        changed = dict(row)
        for name, given in members.items():
            field = self.row.editable.get(name)
            if field is None and self.row.others == "refuse":
                validation.refuse((*path, name), Phrase("is not one of {fields}", fields=", ".join(self.row.editable)))
                continue
            if field is None:
                changed[name] = given
                continue
            value = given
            if name in self.merged and isinstance(given, dict):
                value = {**(row.get(name) or {}), **given}
                value = {inner: each for inner, each in value.items() if each is not None}
            changed[name] = field.read(value, (*path, name), validation)
        whole = self.row.by_name if self.row.whole else {}
        return self.row.in_order({name: each for name, each in changed.items() if each is not None or name in whole})

    def breaches(self, value: Any, path: Path, stored: Any = ABSENT, *, by_row: bool = False) -> Iterator[Breach]:
        """Yield the rules that the rows break; a stored row corresponds to the one with its id."""
        if type(value) is not list or value == stored:
            return
        before = stored if type(stored) is list else []
        yield from self.too_many(value, path, len(before))
        former = Rows(before)
        places = Rows(value)
        changed = []
        for index, row in enumerate(value):
            if type(row) is not dict:
                continue
            was = former.at(*places.place_of(index))
            if was == row:
                continue
            changed.append((row, was or {}))
            yield from self.row.breaches(row, (*path, index), ABSENT if was is None or by_row else was, by_row=by_row)
            yield from self._row_breaches(row, was, (*path, index))
            if places.place_of(index)[1] and was is None:
                yield Breach((*path, index, "id"), Phrase("{id!r} is also the id of another row", id=row["id"]))
        yield from self._share_breaches(value, changed, path)

    def _row_breaches(self, row: JSONObject, was: JSONObject | None, path: Path) -> Iterator[Breach]:
        most = self.row_bytes
        if most is None or (size := bytes_of(row)) <= most:
            return
        if was is None or size > bytes_of(was):
            yield Breach(
                path, Phrase("has {size:,} bytes; at most {limit:,} are allowed", size=size, limit=most), is_limit=True
            )

    def _share_breaches(
        self, rows: list[Any], changed: list[tuple[JSONObject, JSONObject]], path: Path
    ) -> Iterator[Breach]:
        """Yield the breach of shares that add up to more than the whole, if one was changed or added."""
        name = self.share
        if not name or all(row.get(name) is None or row.get(name) == was.get(name) for row, was in changed):
            return
        shares: list[Any] = [row.get(name) for row in rows if type(row) is dict]
        total = math.fsum(each for each in shares if type(each) in {int, float} and 0 <= each <= MAX_SHARES)
        if total > MAX_SHARES + SHARES_TOLERANCE:
            reason = Phrase(
                "has shares that add up to {total:.10g} %; at most {limit} % are allowed", total=total, limit=MAX_SHARES
            )
            yield Breach(
                path, reason, hint=self._shares_hint(rows, {id(row) for row, _ in changed}, total - MAX_SHARES)
            )

    def _shares_hint(self, rows: list[Any], changed: Collection[int], excess: float) -> str:
        """
        Return how the shares can be lowered: where others stay as they are, with the largest of them as an example.

        Args:
            changed: the identities of the rows that the edit changes or adds.
        """
        others = [row for row in rows if type(row) is dict and row.get("id") and id(row) not in changed]
        shares = [(row[self.share], row["id"]) for row in others if type(row.get(self.share)) in {int, float}]
        if not shares:
            return Phrase("Send shares that add up to at most {limit} %.", limit=MAX_SHARES)
        share, row_id = max(shares)
        lowered = {"id": row_id, self.share: max(0, round(share - excess, 4))}
        return Phrase(
            'Send smaller shares, or lower others in the same call, such as by "set": [{example}].',
            example=msgspec.json.encode(lowered).decode(),
        )

    def with_ids(
        self, given: Sequence[JSONObject], stored: Sequence[JSONObject] = (), retired: Collection[str] = frozenset()
    ) -> list[JSONObject]:
        """
        Return *given* with an id in every row: its own, that of the equal stored row, or a new one.

        Args:
            stored: the rows that *given* replaces. Equal rows correspond in their order.
            retired: ids of removed rows, which are not used again.
        """
        if all(row.get("id") for row in given):
            return list(given)
        taken = {row["id"] for row in given if row.get("id")}
        former: dict[str, list[str]] = defaultdict(list)
        for row in stored:
            stored_id = row.get("id")
            if stored_id and stored_id not in taken:
                former[self.identity(row)].append(stored_id)
        used: Collection[str] = {row["id"] for row in stored if row.get("id")}
        ranks: Counter[str] = Counter()
        rows = []
        for row in given:
            if not row.get("id"):
                identity = self.identity(row)
                row_id = ""
                if former.get(identity):
                    row_id = former[identity].pop(0)
                while not row_id or row_id in taken:
                    row_id = derived_id(f"{self.name}\0{identity}", ranks[identity])
                    ranks[identity] += 1
                    if row_id in used or row_id in retired:
                        row_id = ""
                taken.add(row_id)
                row = self.row.in_order({**row, "id": row_id})  # noqa: PLW2901 - the row with its id
            rows.append(row)
        return rows


class Rows:
    """The rows of a list by id; of equal ids, by their order."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._by_place: dict[tuple[str, int], Any] = {}
        self._places: list[tuple[str, int]] = []
        seen: Counter[str] = Counter()
        for row in rows:
            each = str(row.get("id") or "") if type(row) is dict else ""
            place = (each, seen[each])
            seen[each] += 1
            self._places.append(place)
            if each:
                self._by_place[place] = row

    def place_of(self, index: int) -> tuple[str, int]:
        """Return the id of the row at *index*, and its rank among those of that id; of no id, 0."""
        each, rank = self._places[index]
        return (each, rank if each else 0)

    def at(self, each: str, rank: int) -> Any:
        """Return the row of an id and rank, or None."""
        return self._by_place.get((each, rank))


def derived_id(identity: str, rank: int) -> str:
    """Return the id of the row with *rank* among those of the same *identity*: 8 characters, 40 bits."""
    number = int.from_bytes(hashlib.blake2b(f"{identity}\0{rank}".encode(), digest_size=5).digest())
    return "".join(_DIGITS[number >> shift & 31] for shift in range(35, -1, -5))
