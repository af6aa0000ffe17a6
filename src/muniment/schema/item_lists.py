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
        objects: JsonSchema = {"type": "array", "items": {"type": "object"}}
        operations: JsonSchema = {
            "add": {"type": "array", "items": whole["items"]},
            "set": objects,
            "remove": {"type": "array", "items": {"type": "string"}},
        }
        # First what should be used. Only the rows of add are described, since those of the whole list have the same
        # form, and a model reads all of it.
        return {"anyOf": [{"type": "object", "properties": operations}, objects]}

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
        added = []
        for index, given_row in enumerate(value.get("add", [])):
            row = self.row.read(given_row, (*path, "add", index), validation)
            if row is not None:
                added.append(row)
        changed = self._changed_rows(value.get("set", []), (*path, "set"), validation)
        removed = value.get("remove", [])
        for index, row_id in enumerate(removed):
            row_path = (*path, "remove", index)
            if type(row_id) is not str:
                validation.refuse(row_path, Phrase("must be the id of a row, not {kind}", kind=kind_of(row_id)))
            elif row_id in changed:
                validation.refuse(row_path, Phrase("{given!r} is also in set", given=row_id))
        return ItemChange(added, changed, removed)

    def _changed_rows(self, rows: list[Any], path: Path, validation: Validation) -> dict[str, JSONObject]:
        """
        Return the members that *rows* set, by the id of the row that they belong to.

        Their values are not read yet: those of a merged member are read together with the stored ones.
        """
        changed: dict[str, JSONObject] = {}
        for index, row in enumerate(rows):
            row_path = (*path, index)
            if type(row) is not dict or type(row.get("id")) is not str:
                validation.refuse(row_path, "must be an object with the id of a row", self._set_hint())
            elif row["id"] in changed:
                validation.refuse((*row_path, "id"), Phrase("{id!r} is there twice", id=row["id"]))
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
        # Imported lists may have rows of equal ids, which an operation cannot tell apart.
        counts = Counter(row.get("id", "") for row in stored)
        paths_of_set: dict[str, Path] = {}
        for index, row_id in enumerate(change.set):
            paths_of_set[row_id] = (*path, "set", index)
            self._refuse_unless_one(counts[row_id], row_id, (*path, "set", index, "id"), validation)
        for index, row_id in enumerate(change.remove):
            self._refuse_unless_one(counts[row_id], row_id, (*path, "remove", index), validation)
        if validation.faults:
            return list(stored)
        removed = set(change.remove)
        rows = []
        for row in stored:
            row_id = row.get("id", "")
            if row_id in removed:
                continue
            if row_id in change.set:
                row = self._set(row, change.set[row_id], paths_of_set[row_id], validation)  # noqa: PLW2901 - the row as it is now
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
        for name, value in members.items():
            field = self.row.editable.get(name)
            if field is None and self.row.others == "refuse":
                validation.refuse((*path, name), Phrase("is not one of {fields}", fields=", ".join(self.row.editable)))
                continue
            if field is None:
                changed[name] = value
                continue
            if name in self.merged and isinstance(value, dict):
                value = _without_null({**(row.get(name) or {}), **value})  # noqa: PLW2901 - the member as it is now
            changed[name] = field.read(value, (*path, name), validation)
        kept = {}
        for name, member in changed.items():
            # A whole row has all its fields, null where they are empty.
            is_always_there = self.row.whole and name in self.row.by_name
            if member is not None or is_always_there:
                kept[name] = member
        return self.row.in_order(kept)

    def breaches(self, value: Any, path: Path, stored: Any = ABSENT, *, by_row: bool = False) -> Iterator[Breach]:
        """Yield the rules that the rows break; a stored row corresponds to the one with its id."""
        if type(value) is not list or value == stored:
            return
        stored_list = stored if type(stored) is list else []
        yield from self.too_many(value, path, len(stored_list))
        stored_rows = Rows(stored_list)
        rows = Rows(value)
        changed = []
        for index, row in enumerate(value):
            if type(row) is not dict:
                continue
            row_id, rank = rows.place_of(index)
            stored_row = stored_rows.at(row_id, rank)
            if stored_row == row:
                continue
            changed.append((row, stored_row or {}))
            is_judged_whole = by_row or stored_row is None
            yield from self.row.breaches(row, (*path, index), ABSENT if is_judged_whole else stored_row, by_row=by_row)
            yield from self._size_breaches(row, stored_row, (*path, index))
            # Equal ids that are stored already, as imports may have brought them, can stay.
            if rank > 0 and stored_row is None:
                yield Breach((*path, index, "id"), Phrase("{id!r} is also the id of another row", id=row["id"]))
        yield from self._share_breaches(value, changed, path)

    def _size_breaches(self, row: JSONObject, stored_row: JSONObject | None, path: Path) -> Iterator[Breach]:
        """Yield the breach of a row that has too many bytes, and more than the stored one."""
        if self.row_bytes is None:
            return
        size = bytes_of(row)
        if size <= self.row_bytes:
            return
        if stored_row is None or size > bytes_of(stored_row):
            reason = Phrase("has {size:,} bytes; at most {limit:,} are allowed", size=size, limit=self.row_bytes)
            yield Breach(path, reason, is_limit=True)

    def _share_breaches(
        self, rows: list[Any], changed: list[tuple[JSONObject, JSONObject]], path: Path
    ) -> Iterator[Breach]:
        """Yield the breach of shares that add up to more than the whole, if one was changed or added."""
        name = self.share
        if not name or not any(_has_new_share(row, stored_row, name) for row, stored_row in changed):
            return
        shares: list[float] = []
        for row in rows:
            share: Any = row.get(name) if type(row) is dict else None
            # One of another type or out of range has a fault of its own.
            if type(share) in {int, float} and 0 <= share <= MAX_SHARES:
                shares.append(share)
        total = math.fsum(shares)
        if total <= MAX_SHARES + SHARES_TOLERANCE:
            return
        reason = Phrase(
            "has shares that add up to {total:.10g} %; at most {limit} % are allowed", total=total, limit=MAX_SHARES
        )
        changed_rows = {id(row) for row, _ in changed}
        yield Breach(path, reason, hint=self._shares_hint(rows, changed_rows, total - MAX_SHARES))

    def _shares_hint(self, rows: list[Any], changed: Collection[int], excess: float) -> str:
        """
        Return how the shares can be lowered: where others stay as they are, with the largest of them as an example.

        Args:
            changed: the identities of the rows that the edit changes or adds.
        """
        shares = []
        for row in rows:
            if type(row) is not dict or not row.get("id") or id(row) in changed:
                continue
            if type(row.get(self.share)) in {int, float}:
                shares.append((row[self.share], row["id"]))
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
        unused_ids: dict[str, list[str]] = defaultdict(list)
        # People may have linked to the id of a stored or removed row: it never names another one.
        barred = set(retired)
        for row in stored:
            stored_id = row.get("id")
            if not stored_id:
                continue
            barred.add(stored_id)
            if stored_id not in taken:
                unused_ids[self.identity(row)].append(stored_id)
        ranks: Counter[str] = Counter()
        rows = []
        for row in given:
            if row.get("id"):
                rows.append(row)
                continue
            identity = self.identity(row)
            ids_of_equal_rows = unused_ids[identity]
            row_id = ids_of_equal_rows.pop(0) if ids_of_equal_rows else ""
            if not row_id or row_id in taken:
                row_id = self._new_id(identity, ranks, taken, barred)
            taken.add(row_id)
            rows.append(self.row.in_order({**row, "id": row_id}))
        return rows

    def _new_id(self, identity: str, ranks: Counter[str], taken: Collection[str], barred: Collection[str]) -> str:
        """Return the first id derived from a row's *identity* that is free; *ranks* counts those that were tried."""
        while True:
            row_id = derived_id(f"{self.name}\0{identity}", ranks[identity])
            ranks[identity] += 1
            if row_id not in taken and row_id not in barred:
                return row_id


def _without_null(members: JSONMapping) -> JSONObject:
    return {name: member for name, member in members.items() if member is not None}


def _has_new_share(row: JSONObject, stored_row: JSONObject, name: str) -> bool:
    share = row.get(name)
    return share is not None and share != stored_row.get(name)


class Rows:
    """The rows of a list by id; of equal ids, by their order."""

    def __init__(self, rows: Sequence[Any]) -> None:
        self._by_place: dict[tuple[str, int], Any] = {}
        self._places: list[tuple[str, int]] = []
        seen: Counter[str] = Counter()
        for row in rows:
            row_id = str(row.get("id") or "") if type(row) is dict else ""
            if not row_id:
                self._places.append(("", 0))
                continue
            place = (row_id, seen[row_id])
            seen[row_id] += 1
            self._places.append(place)
            self._by_place[place] = row

    def place_of(self, index: int) -> tuple[str, int]:
        """Return the id of the row at *index*, and its rank among those of that id; of no id, 0."""
        return self._places[index]

    def at(self, each: str, rank: int) -> Any:
        """Return the row of an id and rank, or None."""
        return self._by_place.get((each, rank))


def derived_id(identity: str, rank: int) -> str:
    """Return the id of the row with *rank* among those of the same *identity*: 8 characters, 40 bits."""
    number = int.from_bytes(hashlib.blake2b(f"{identity}\0{rank}".encode(), digest_size=5).digest())
    return "".join(_DIGITS[number >> shift & 31] for shift in range(35, -1, -5))
