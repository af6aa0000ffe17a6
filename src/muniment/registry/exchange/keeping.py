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
        of_file = [place.to_document() for place in places]
        settled = edits.settle("positions", current, of_file, overwrite=overwrite)
        row.positions = [PositionRow.from_document(position) for position in settled]
    for name, member in (("proposals", "proposals"), ("cap_table", "capTable")):
        part = getattr(row, name)
        if part is not None and member in edits.brought:
            setattr(row, name, edits.settle(member, list(stored.get(name, ())), part, overwrite=overwrite))


def settle_rounds(run: BatchRun, row: CompanyRow, edits: Edits, stored: list[RoundRow]) -> None:
    """Replace the funding rounds of a company's row if people changed them; they are kept as one list."""
    if row.funding_rounds is None or "fundingRounds" not in edits.brought:
        return
    record = run.schema.funding_round
    current = [funding_round.to_document(record) for funding_round in stored]
    of_file = [funding_round.to_document(record) for funding_round in row.funding_rounds]
    if edits.settle("fundingRounds", current, of_file, overwrite=run.overwrite) is current:
        row.funding_rounds = stored


def former_people(places: Sequence[PositionRow], edits: Edits) -> dict[str, Person]:
    """Return the people whom an import brought under a name alone, by name, although the listing may not name them."""
    brought = edits.brought.get("positions")
    if not isinstance(brought, list):
        return {}
    brought_ids = {row_id for row_id, _ in brought}
    by_name = {place.name: place for place in places if not place.slug}
    former = {}
    for person in Person.objects.filter(name__in=list(by_name)):
        # The id that the import gave the position of this person: ids are derived from what identifies a row.
        place = by_name[person.name]._replace(slug=person.slug, item_id="")
        (row,) = POSITIONS.with_ids([place.to_document()])
        if row["id"] in brought_ids:
            former[person.name] = person
    return former


def settle_columns(run: BatchRun, edits: Edits, existing: Any, columns: JSONObject, record: Record | None) -> None:
    """Replace the *columns* of a row that people changed since the last import by the values to store."""
    fields = record.by_column if record else {}
    for column, value in columns.items():
        current = getattr(existing, column)
        if column == "extra":
            columns["extra"] = _settle_extra(run, edits, current or {}, value or {})
            continue
        (member, of_file), *_ = history.wire_values({column: value}, record).items()
        if member not in edits.brought:
            continue
        ((_, stored),) = history.wire_values({column: current}, record).items()
        settled = edits.settle(member, stored, of_file, overwrite=run.overwrite)
        if settled is stored:
            columns[column] = current
        elif settled is not of_file:  # rows of both; lists are stored as the history has them
            columns[column] = settled if column in fields else value


def _settle_extra(run: BatchRun, edits: Edits, current: JSONObject, of_file: JSONObject) -> JSONObject:
    settled = dict(of_file)
    # A whole import clears the members that its row lacks; a partial one leaves them.
    names = list(of_file) if run.partial else list({**current, **of_file})
    for name in names:
        if name not in edits.brought:
            continue
        value = edits.settle(name, current.get(name), of_file.get(name), overwrite=run.overwrite)
        if value is None:
            settled.pop(name, None)
        else:
            settled[name] = value
    return settled
