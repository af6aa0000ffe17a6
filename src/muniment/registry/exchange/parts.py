"""
The lists of companies in a batch: positions, proposals, cap table, funding rounds.

What is stored of them, the ids of their rows, and the rows to store.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final

from django.db import models
from django.db.models import Value
from django.db.models.functions import Coalesce

from muniment.registry.company.parts import PositionRow, RoundRow
from muniment.registry.exchange.rows import CompanyRow
from muniment.registry.fields import Text
from muniment.registry.models import CapTableEntry, Company, FundingRound, Position, Proposal
from muniment.schema.company_parts import ADDRESSES, CAP_TABLE, POOLS, PROPOSALS, funding_rounds
from muniment.schema.record import Record

StoredParts = dict[str, dict[int, list[Any]]]
"""Stored parts, by the part's name in a row and the company's key."""
_INSERTED_TOGETHER: Final = 20_000
NO_PARTS: Final[Mapping[str, list[Any]]] = {}


def stored_parts(keys: list[int]) -> StoredParts:
    def stored(model: type[models.Model], *columns: Any) -> Iterable[Any]:
        rows = model._default_manager.filter(company_id__in=keys).order_by("company_id", "rank")  # noqa: SLF001 - Django's public name
        return rows.values_list("company_id", *columns)

    parts: StoredParts = defaultdict(lambda: defaultdict(list))
    if not keys:
        return parts
    names = (Coalesce("person__slug", Value("", Text())), Coalesce("person__name", "name"), "title", "extra", "item_id")
    for key, person, *place in stored(Position, "person_id", *names):
        parts["positions"][key].append((PositionRow(*place), person))
    for name, model in (("proposals", Proposal), ("cap_table", CapTableEntry)):
        for key, document in stored(model, "document"):
            parts[name][key].append(document)
    for key, *values in stored(FundingRound, *RoundRow._fields):
        parts["funding_rounds"][key].append(RoundRow(*values))
    return parts


def place_key(place: PositionRow) -> tuple[Any, ...]:
    """Return what two positions must share to be the same: the name of a person counts only without a profile."""
    return place.slug or (place.name,), place.title, place.extra, place.item_id


def part_on_wire(part: Iterable[Any], funding_round: Record) -> list[Any]:
    """Return the rows of a list in wire form."""
    rows = []
    for row in part:
        if isinstance(row, RoundRow):
            rows.append(row.to_document(funding_round))
        else:
            rows.append(row)
    return rows


# ---------------------------------------------------------------------- ids


def give_ids(
    row: CompanyRow,
    funding_round: Record,
    stored: Mapping[str, list[Any]] = NO_PARTS,
    company: Company | None = None,
) -> None:
    """
    Set the id of every row of the lists of *row*: its own, that of the equal stored row, or a new one.

    Args:
        stored: the stored parts of the company, by their name in a row.
        company: as it is stored; None for a new one.
    """
    if row.proposals is not None:
        row.proposals = PROPOSALS.with_ids(row.proposals, stored.get("proposals", ()))
    if row.cap_table is not None:
        row.cap_table = CAP_TABLE.with_ids(row.cap_table, stored.get("cap_table", ()))
    if row.funding_rounds is not None:
        row.funding_rounds = _rounds_with_ids(row.funding_rounds, stored.get("funding_rounds", []), funding_round)
    addresses = row.columns.get("address")
    if addresses:
        stored_addresses = company.address if company else None
        row.columns["address"] = ADDRESSES.with_ids(addresses, stored_addresses or ())
    distribution = row.columns.get("distribution")
    if distribution and distribution.get("pools"):
        stored_distribution = company.distribution if company else None
        stored_pools = (stored_distribution or {}).get("pools") or ()
        row.columns["distribution"] = {**distribution, "pools": POOLS.with_ids(distribution["pools"], stored_pools)}


def _rounds_with_ids(rounds: Sequence[RoundRow], stored: Sequence[RoundRow], record: Record) -> list[RoundRow]:
    """Return *rounds* with ids; one that does not say whether it is public stays as it is stored, or becomes so."""
    documents = [funding_round.to_document(record) for funding_round in rounds]
    stored_documents = [funding_round.to_document(record) for funding_round in stored]
    numbered = funding_rounds(record).with_ids(documents, stored_documents)
    is_public_by_id = {funding_round.item_id: funding_round.public for funding_round in stored}
    with_ids = []
    for funding_round, document in zip(rounds, numbered, strict=True):
        is_public = funding_round.public
        if is_public is None:
            is_public = is_public_by_id.get(document["id"], True)
        with_ids.append(funding_round._replace(item_id=document["id"], public=is_public))
    return with_ids


# ---------------------------------------------------------------------- rows to store


def rows_of_parts(company: Company, row: CompanyRow) -> Iterator[models.Model]:
    """Yield the unsaved rows of the lists of *row*, except its positions."""
    for rank, document in enumerate(row.proposals or ()):
        yield Proposal(company_id=company.pk, rank=rank, document=document)
    for rank, document in enumerate(row.cap_table or ()):
        yield CapTableEntry(company_id=company.pk, rank=rank, document=document)
    for rank, funding_round in enumerate(row.funding_rounds or ()):
        yield FundingRound(company_id=company.pk, rank=rank, **funding_round._asdict())


def insert_parts(rows: Iterable[models.Model]) -> None:
    """Insert rows of the tables of parts, one statement for many rows of a table, without holding all of them."""
    remaining = iter(rows)
    while chunk := list(islice(remaining, _INSERTED_TOGETHER)):
        by_model: dict[type[models.Model], list[models.Model]] = defaultdict(list)
        for row in chunk:
            by_model[type(row)].append(row)
        for model, rows_of_model in by_model.items():
            model._default_manager.bulk_create(rows_of_model)  # noqa: SLF001 - Django's public name
