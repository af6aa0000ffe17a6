"""Keep what people changed since the last import: replace an import's values by those to store."""

from collections.abc import Mapping, Sequence
from typing import Any

from muniment.kernel.json import JSONObject
from muniment.registry import history
from muniment.registry.company.parts import PositionRow, RoundRow
from muniment.registry.exchange.batch import BatchRun
from muniment.registry.exchange.edits import Edits
from muniment.registry.exchange.rows import CompanyRow
from muniment.registry.models import Person
from muniment.schema.company_parts import POSITIONS
from muniment.schema.record import Record


def settle_lists(
    run: BatchRun,
    row: CompanyRow,
    edits: Edits,
    stored: Mapping[str, Sequence[Any]],
    places: Sequence[PositionRow] | None,
) -> None:
    """
    Replace the lists of a company's row that people changed, before rows without ids get one.

    Args:
        stored: the stored parts, by their name in the row; positions with the person's key.
        places: the positions of the row with the slugs of their people.
    """
    overwrite = run.overwrite
    if places is not None and "positions" in edits.brought:
        current = [place.to_document() for place, _ in stored.get("positions", ())]
        given = [place.to_document() for place in places]
        found = edits.settle("positions", current, given, overwrite=overwrite)
        row.positions = [PositionRow.from_document(each) for each in found]
    for name, member in (("proposals", "proposals"), ("cap_table", "capTable")):
        if (part := getattr(row, name)) is not None and member in edits.brought:
            setattr(row, name, edits.settle(member, list(stored.get(name, ())), part, overwrite=overwrite))


def settle_rounds(run: BatchRun, row: CompanyRow, edits: Edits, stored: list[RoundRow]) -> None:
    """Replace the funding rounds of a company's row if people changed them; they are kept as one list."""
    if row.funding_rounds is None or "fundingRounds" not in edits.brought:
        return
    record = run.schema.funding_round
    current, given = ([each.to_document(record) for each in rounds] for rounds in (stored, row.funding_rounds))
    if edits.settle("fundingRounds", current, given, overwrite=run.overwrite) is current:
        row.funding_rounds = stored


def former_people(places: Sequence[PositionRow], edits: Edits) -> dict[str, Person]:
    """Return the people whom an import brought under a name alone, by name, although the listing may not name them."""
    brought = edits.brought.get("positions")
    if not isinstance(brought, list):
        return {}
    ids = {key for key, _ in brought}
    named = {place.name: place for place in places if not place.slug}
    found = {}
    for person in Person.objects.filter(name__in=list(named)):
        (row,) = POSITIONS.with_ids([named[person.name]._replace(slug=person.slug, item_id="").to_document()])
        if row["id"] in ids:
            found[person.name] = person
    return found


def settle_columns(run: BatchRun, edits: Edits, existing: Any, columns: JSONObject, record: Record | None) -> None:
    """Replace the *columns* of a row that people changed since the last import by the values to store."""
    fields = record.by_column if record else {}
    for column, given in columns.items():
        current = getattr(existing, column)
        if column == "extra":
            columns["extra"] = _settle_extra(run, edits, current or {}, given or {})
            continue
        (member, of_file), *_ = history.wire_values({column: given}, record).items()
        if member not in edits.brought:
            continue
        ((_, stored),) = history.wire_values({column: current}, record).items()
        found = edits.settle(member, stored, of_file, overwrite=run.overwrite)
        if found is stored:
            columns[column] = current
        elif found is not of_file:  # rows of both; lists are stored as the history has them
            columns[column] = found if column in fields else given


def _settle_extra(run: BatchRun, edits: Edits, current: JSONObject, given: JSONObject) -> JSONObject:
    found = dict(given)
    for name in given if run.partial else {**current, **given}:
        if name not in edits.brought:
            continue
        value = edits.settle(name, current.get(name), given.get(name), overwrite=run.overwrite)
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found
