"""
Leave values that cannot be true out of an imported row, and keep the row.

A bad value changes nothing: what is stored stays, also where it is just as bad, and a new row goes without it.

Source: decisions, section 6.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.exchange.rows import CompanyRow, read_company
from muniment.registry.models import Person
from muniment.schema.item_lists import ItemList, Rows
from muniment.schema.objects import Schema
from muniment.schema.validation import ABSENT, Breach, Fault, Path, Validation

MAX_REPORTED: Final = 50
"""Maximum faults reported for one row; of a row with a thousand bad values, only the first ones are."""


class Corrected(NamedTuple):
    """
    An imported row without its bad values.

    Args:
        line: the row; None if it cannot be without the value.
        dropped: the bad values that were left out.
        kept: the bad values that are stored already, and stay.
    """

    line: JSONObject | None
    dropped: list[Fault]
    kept: list[Fault]


def correct(
    line: JSONObject,
    broken: Sequence[Breach],
    stored: JSONMapping,
    schema: Schema,
    knows_person: Callable[[str], bool],
) -> Corrected:
    """
    Return *line* with the stored values in place of bad ones.

    Args:
        broken: the rules that it breaks.
        stored: the stored listing in the same form; empty for a new one.
        knows_person: returns whether a slug is that of a person with a name.
    """
    correction = _Correction(line, stored, schema, knows_person)
    dropped: list[Fault] = []
    kept: list[Fault] = []
    for breach in reversed(broken):  # the last rows first, so that removed ones move no others
        outcome = correction.correct(breach)
        if outcome is None:
            return Corrected(None, [breach.fault], [])
        if outcome == "kept":
            kept.append(breach.fault)
        else:
            dropped.append(breach.fault)
    correction.remove_entries()
    return Corrected(correction.line, _first(dropped), _first(kept))


def _first(faults: list[Fault]) -> list[Fault]:
    """Return the first faults in the order of the row, and how many more there are."""
    faults.reverse()
    more = len(faults) - MAX_REPORTED
    if more <= 0:
        return faults
    return [*faults[:MAX_REPORTED], Fault("", Phrase("has {more:,} more bad values", more=more))]


def without_bad_values(
    run: BatchRun, rows: list[tuple[int, CompanyRow]], stored_line: Callable[[str], JSONMapping]
) -> list[tuple[int, CompanyRow]]:
    """
    Return *rows* without bad values, and report these.

    Args:
        stored_line: returns the stored listing of a slug in the form of a line; empty for a new one.
    """

    def knows_person(slug: str) -> bool:
        return slug in run.names["person"] or Person.objects.filter(slug=slug).exists()

    kept = []
    for number, row in rows:
        if not row.broken:
            kept.append((number, row))
            continue
        correction = correct(row.line, row.broken, stored_line(row.slug), run.schema, knows_person)
        for fault in correction.kept:
            run.warn(
                number,
                Fault(
                    fault.field,
                    Phrase("{reason}; it stays, since it is stored already", reason=Phrase.of(fault.reason)),
                ),
            )
        for fault in correction.dropped:
            if correction.line is None:
                run.tell(number, fault)
            else:
                run.drop(number, Fault(fault.field, Phrase("{reason}; left out", reason=Phrase.of(fault.reason))))
        if not correction.line:
            continue
        corrected_row = read_company(correction.line, run.schema, Validation(change=False))
        if corrected_row is not None:
            corrected_row.only_lists = row.only_lists
            kept.append((number, corrected_row))
    return kept


class _Correction:
    def __init__(
        self, line: JSONObject, stored: JSONMapping, schema: Schema, knows_person: Callable[[str], bool]
    ) -> None:
        self.line: JSONObject = msgspec.json.decode(msgspec.json.encode(line))
        self._stored = stored
        self._schema = schema
        self._knows_person = knows_person
        self._matches: dict[Path, list[Any]] = {}
        self._entries: set[tuple[Path, int]] = set()

    def correct(self, breach: Breach) -> str | None:
        """Put the stored value in the place of a bad one: ``kept`` if they are equal; None where none can be."""
        path = breach.path
        if isinstance(self._list_at(path), ItemList):
            return self._correct_shares(path)
        holder, stored = self._both(path[:-1])
        name = path[-1]
        if isinstance(name, int):
            return self._correct_entry(path[:-1], name)
        stored_value = None
        if type(stored) is dict:
            if name == "id":
                return "kept"  # as many rows of that id are stored
            stored_value = stored.get(name)
        if stored_value is not None:
            is_kept = stored_value == holder[name]
            holder[name] = stored_value
            return "kept" if is_kept else "dropped"
        if path == ("company", "name"):
            return None
        if path[2:] == ("person", "name") and not self._knows_person(holder.get("slug", "")):
            del self.line["positions"][path[1]]  # nothing tells whose position it is
        else:
            del holder[name]
        return "dropped"

    def _correct_shares(self, path: Path) -> str:
        """Put the stored shares in the place of those that add up to more than the whole."""
        rows, _ = self._both(path)
        name = self._list_at(path).share
        is_kept = True
        for row, before in zip(rows, self._stored_rows(path), strict=False):
            share = (before or {}).get(name)
            is_kept = is_kept and row.get(name) == share
            if share is None:
                row.pop(name, None)
            else:
                row[name] = share
        return "kept" if is_kept else "dropped"

    def _correct_entry(self, path: Path, index: int) -> str:
        entries, stored_entries = self._both(path)
        if entries == stored_entries:
            return "kept"
        self._entries.add((path, index))  # later: an entry may break several rules
        return "dropped"

    def remove_entries(self) -> None:
        """Remove the entries of lists that are left out."""
        # The last ones first, so that the places of the others stay.
        for path, index in sorted(self._entries, key=lambda entry: -entry[1]):
            entries, _ = self._both(path)
            del entries[index]

    def _both(self, path: Path) -> tuple[Any, Any]:
        """Return the value at *path* of the row, and the stored one that corresponds to it."""
        value: Any = self.line
        stored: Any = self._stored
        for depth, step in enumerate(path):
            value = value[step]
            if isinstance(step, int):
                stored = self._stored_rows(path[:depth])[step]
            else:
                stored = stored.get(step, ABSENT) if isinstance(stored, dict) else ABSENT
        return value, stored

    def _stored_rows(self, path: Path) -> list[Any]:
        """Return the stored row for each row of the list at *path* as it was given; None for a new one."""
        if path not in self._matches:
            rows_of_file, stored = self._both(path)
            kind = self._list_at(path)
            before = stored if isinstance(stored, list) else []
            rows = [_with_text_id(row) for row in rows_of_file]
            if path == ("positions",):
                # A file names people where the listing has their slugs, and the id of a position is made of the slug.
                slugs = {position["person"].get("name"): position["person"].get("slug") for position in before}
                rows = [_with_slug(row, slugs) for row in rows]
            numbered = Rows(kind.with_ids(rows, before))
            former = Rows(before)
            self._matches[path] = [former.at(*numbered.place_of(index)) for index in range(len(rows))]
        return self._matches[path]

    def _list_at(self, path: Path) -> Any:
        """Return the kind of the list at *path*, None if there is none."""
        kind: Any = self._schema.bundle
        for part in path:
            if isinstance(part, int):
                kind = getattr(kind, "of", None)
                continue
            field = getattr(kind, "by_name", {}).get(part)
            kind = field.kind if field else None
        return kind if isinstance(kind, ItemList) else None


def _with_text_id(row: JSONObject) -> JSONObject:
    return {**row, "id": str(row["id"])} if row.get("id") else row


def _with_slug(row: JSONObject, slugs: JSONMapping) -> JSONObject:
    person = row["person"]
    if person.get("slug") or not slugs.get(person.get("name")):
        return row
    return {**row, "person": {**person, "slug": slugs[person["name"]]}}
