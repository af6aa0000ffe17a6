"""
The members of stored rows that people changed since an import brought them; an import keeps these.

The history is the memory: the value before the first change by a person is what the last import brought. Only where an
import has since met such a member is a digest of what it brought stored, because the history does not have it.

Source: decisions, section 6: a field that an owner changed since the last import is kept and reported.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import msgspec

from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.registry import history
from muniment.registry.history import Change
from muniment.registry.models import HistoryEntry, ImportMemory
from muniment.schema.company_parts import ADDRESSES, CAP_TABLE, POSITIONS, PROPOSALS
from muniment.schema.item_lists import ItemList

Fingerprint = str | list[list[str]]
"""The digest of a value; for a list, the id and the digest of each row."""

IMPORTED: Final = "imported"
ROWS: Final[dict[str, ItemList]] = {
    "address": ADDRESSES,
    "positions": POSITIONS,
    "proposals": PROPOSALS,
    "capTable": CAP_TABLE,
}
"""Lists that are kept row by row, by the member's name."""
_ALIASES: Final = {"fundingRound": "fundingRounds"}
"""Members that have another name in the history of edits."""
_encode = msgspec.json.Encoder(order="sorted").encode


def fingerprint(member: str, value: Any) -> Fingerprint:
    """Return what tells two values of a member apart, in the form of the history."""
    if member in ROWS and isinstance(value, list | None):
        rows = ROWS[member].with_ids(value or [])
        ids = {row["id"] for row in rows}
        if len(ids) == len(rows):  # otherwise an id does not say which row is meant
            return [[row["id"], _row_digest(row)] for row in rows]
    plain = _plain(value)
    # An empty text, list or object is the same as none: a file may write either.
    if isinstance(plain, str | list | dict) and not plain:
        plain = None
    return digest(_encode(plain))


def _plain(value: Any) -> Any:
    """Return *value* without the ids of rows: the importer chooses them, so they say nothing about an edit."""
    if isinstance(value, list):
        rows = []
        for row in value:
            if isinstance(row, dict):
                rows.append(_without(row, "id"))
            else:
                rows.append(row)
        return rows
    if isinstance(value, dict):
        # Only lists have rows: an object in the object keeps its members.
        return value | {name: _plain(member) for name, member in value.items() if isinstance(member, list)}
    return value


def _without(row: JSONObject, *names: str) -> JSONObject:
    return {name: value for name, value in row.items() if name not in names}


def _row_digest(row: JSONObject) -> str:
    person = row.get("person")
    if isinstance(person, dict) and person.get("slug"):  # its name is the profile's
        row = {**row, "person": _without(person, "name")}
    return digest(_encode(_without(row, "id")))


@dataclass(slots=True)
class Edits:
    """
    The members of one row that people changed.

    Args:
        brought: what the last import brought for each of them.
        memory: the part of it that is stored.
        kept: the members that this import keeps, entirely or in some rows.
    """

    brought: dict[str, Fingerprint] = field(default_factory=dict)
    memory: dict[str, Fingerprint] = field(default_factory=dict)
    is_memory_changed: bool = False
    kept: list[str] = field(default_factory=list)

    def settle(self, member: str, current: Any, of_file: Any, *, overwrite: bool = False) -> Any:
        """
        Return the value to store: *current* if a person changed it since, *of_file* otherwise, or rows of both.

        Args:
            member: one of ``brought``.
            current: the stored value, in the form of the history.
            of_file: the file's value in the same form.
        """
        brought = self.brought[member]
        of_file = _numbered(member, brought, current, of_file)
        stored = fingerprint(member, current)
        new = fingerprint(member, of_file)
        if stored == new:  # the person and the file changed it alike
            if brought != new:
                self._remember(member, new)
            return current
        if overwrite or stored == brought:  # nothing of a person is left in it, so that the history is memory enough
            self._remember(member, None)
            return of_file
        value = current
        if isinstance(stored, list) and isinstance(new, list):
            value = _merged(member, brought, current, of_file)
        settled = fingerprint(member, value)
        if settled != new:
            self.kept.append(member)
        # The history knows only what the import before the edit brought.
        if new != brought or settled != stored:
            self._remember(member, new)
        # The caller tells by identity whether the stored value stays.
        return current if settled == stored else value

    def _remember(self, member: str, brought: Fingerprint | None) -> None:
        if self.memory.get(member) == brought:
            return
        self.is_memory_changed = True
        if brought is None:
            del self.memory[member]
        else:
            self.memory[member] = brought


def _numbered(member: str, brought: Fingerprint, current: Any, of_file: Any) -> Any:
    """Return the file's value of a member; its rows, if it has any, with the ids of the rows that they mean."""
    rows = ROWS.get(member)
    if rows is None or not of_file or not isinstance(brought, list):
        return of_file
    return _with_ids(rows, brought, current or [], of_file)


def _merged(member: str, brought: Fingerprint, current: Any, of_file: Any) -> Any:
    """Return the rows of a stored and a file's list that are to be stored; *current* if the import brought no rows."""
    rows = ROWS.get(member)
    if rows is None or not isinstance(brought, list):
        return current
    return _merge_rows(brought, rows.with_ids(current or []), rows.with_ids(of_file or []))


def _with_ids(
    rows: ItemList, brought: list[list[str]], stored_rows: Sequence[JSONObject], file_rows: Sequence[JSONObject]
) -> list[JSONObject]:
    """Return the file's rows with the ids that the last import gave them, else those of equal rows of a person."""
    numbered_rows = rows.with_ids(file_rows)
    known_ids = {row_id for row_id, _ in brought} | {row.get("id") for row in stored_rows}
    ids_of_file = {row["id"] for row in numbered_rows}
    ids_of_equal_rows: dict[str, list[str]] = defaultdict(list)
    for row in stored_rows:
        if row.get("id") and row["id"] not in ids_of_file:
            ids_of_equal_rows[rows.identity(row)].append(row["id"])
    kept = []
    for file_row, row in zip(file_rows, numbered_rows, strict=True):
        unused_ids = ids_of_equal_rows[rows.identity(row)]
        # People may have linked to the id of an equal row, so a row that the file does not number takes it over.
        if not file_row.get("id") and row["id"] not in known_ids and unused_ids:
            row = {**row, "id": unused_ids.pop(0)}  # noqa: PLW2901 - the same row under its former id
        kept.append(row)
    return kept


def _is_confirmed(stored: JSONObject, of_file: JSONObject) -> bool:
    """Return whether the file links a position that shows a name alone, which confirms it."""
    if "person" not in stored or "person" not in of_file:
        return False
    if stored["person"].get("slug") or not of_file["person"].get("slug"):
        return False
    return _without_who(stored) == _without_who(of_file)


def _without_who(position: JSONObject) -> JSONObject:
    return {**position, "person": _without(position["person"], "name", "slug")}


def _merge_rows(
    brought: list[list[str]], stored_rows: Sequence[JSONObject], file_rows: Sequence[JSONObject]
) -> list[JSONObject]:
    """Return the stored rows with the file's changes to rows that no person added, changed or removed."""
    brought_digests = {row_id: row_digest for row_id, row_digest in brought}  # noqa: C416 - for the type checker
    file_rows_by_id = {row["id"]: row for row in file_rows}
    merged = []
    for row in stored_rows:
        file_row = file_rows_by_id.get(row["id"])
        is_edited = brought_digests.get(row["id"]) != _row_digest(row)  # a person added or changed it
        is_confirmed = file_row is not None and _is_confirmed(row, file_row)
        if is_edited and not is_confirmed:
            merged.append(row)
        elif file_row is not None:
            merged.append(file_row)
    stored_ids = {row["id"] for row in stored_rows}
    for row in file_rows:
        is_removed = row["id"] in brought_digests  # by a person, since the last import brought it
        if row["id"] not in stored_ids and not is_removed:
            merged.append(row)
    return merged


@dataclass(slots=True)
class _Edited:
    """The changes that people made to one row: by member, the first one since an import set it and those after it."""

    first: dict[str, tuple[str, list[Change]]] = field(default_factory=dict)

    def add(self, action: str, change: Change) -> None:
        for name in change.after:
            member = _ALIASES.get(name, name)
            if action == IMPORTED:
                self.first.pop(member, None)
            elif member in self.first:
                self.first[member][1].append(change)
            elif action != history.MERGED:
                self.first[member] = (name, [change])

    def brought(self, current: Callable[[str], Any]) -> dict[str, Fingerprint]:
        """Return what the import brought of each member: its value before the first change by a person."""

        def present_values(names: Iterable[str]) -> JSONObject:
            return {name: current(name) for name in names}

        brought = {}
        for member, (name, (first_change, *later_changes)) in self.first.items():
            of_member = first_change._replace(before={name: first_change.before.get(name)})
            values = history.values_before(of_member, later_changes, present_values)
            brought[member] = fingerprint(member, values[name])
        return brought


def edits_of(
    subject: str, keys: Iterable[int], current: Callable[[int, str], Any] = lambda _key, _member: None
) -> dict[int, Edits]:
    """
    Return the edits of the rows that people changed, by primary key.

    Args:
        subject: company, person or framework.
        current: returns the stored value of a member of a company, in the form of the history. That of people and
            frameworks has whole values.
    """
    keys = list(keys)
    if not keys:
        return {}
    column = f"{subject}_id"
    # First which rows people touched at all, in most imports few: only of these is the whole history read.
    entries = HistoryEntry.objects.filter(**{f"{column}__in": keys}).exclude(action__in=history.REQUESTS)
    by_people = entries.exclude(action__in=(IMPORTED, history.MERGED))
    touched = set(by_people.values_list(column, flat=True).distinct())
    if not touched:
        return {}
    edited: dict[int, _Edited] = defaultdict(_Edited)
    entries = HistoryEntry.objects.filter(**{f"{column}__in": touched}).exclude(action__in=history.REQUESTS)
    for key, action, *values in entries.order_by("pk").values_list(column, "action", *Change._fields).iterator():
        edited[key].add(action, Change(*values))
    edits_by_key = {key: Edits(changes.brought(partial(current, key))) for key, changes in edited.items()}
    memories = ImportMemory.objects.filter(**{f"{column}__in": touched})
    for key, members in memories.values_list(column, "members"):
        edits_by_key[key].memory = members
        edits_by_key[key].brought |= members  # newer than what the history says
    return {key: edits for key, edits in edits_by_key.items() if edits.brought}


def remember(subject: str, edits: Mapping[int, Edits]) -> None:
    """Store what the import brought for members that people had changed."""
    for key, edits_of_row in edits.items():
        if edits_of_row.is_memory_changed:
            row: JSONObject = {f"{subject}_id": key}
            ImportMemory.objects.update_or_create(**row, defaults={"members": edits_of_row.memory})
