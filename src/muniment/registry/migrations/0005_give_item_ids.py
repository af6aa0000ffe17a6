"""Assign to every row of a list the id that an import would assign to it."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any, ClassVar

from django.db import migrations

from muniment.schema.company_parts import (
    ADDRESSES,
    CAP_TABLE,
    POOLS,
    POSITIONS,
    PROPOSALS,
    funding_round,
    funding_rounds,
)
from muniment.schema.item_lists import ItemList

CHUNK = 500


def _chunks(model: Any) -> Iterator[list[Any]]:
    last = 0
    while rows := list(model.objects.filter(pk__gt=last).order_by("pk")[:CHUNK]):
        yield rows
        last = rows[-1].pk


def _own(value: Any) -> Any:
    return {"id": value} if isinstance(value, str) and value else {}


def _named(documents: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return rows whose own ids are text; an import takes a number for its text too."""
    return [
        {**each, "id": str(each["id"]) if isinstance(each["id"], str | int) else ""} if "id" in each else each
        for each in documents
    ]


def _give_ids(apps: Any, _: Any) -> None:
    company_model = apps.get_model("registry", "Company")
    for companies in _chunks(company_model):
        keys = [company.pk for company in companies]
        _columns(company_model, companies)
        for name, kind in (("Proposal", PROPOSALS), ("CapTableEntry", CAP_TABLE)):
            _documents(apps.get_model("registry", name), kind, keys)
        _positions(apps.get_model("registry", "Position"), keys)
        _rounds(apps.get_model("registry", "FundingRound"), keys)


def _columns(model: Any, companies: list[Any]) -> None:
    changed = []
    for company in companies:
        pools = (company.distribution or {}).get("pools")
        if company.address:
            company.address = ADDRESSES.with_ids(company.address)
        if pools:
            company.distribution = {**company.distribution, "pools": POOLS.with_ids(_named(pools))}
        if company.address or pools:
            changed.append(company)
    model.objects.bulk_update(changed, ["address", "distribution"])


def _documents(model: Any, kind: ItemList, keys: list[int]) -> None:
    rows = defaultdict(list)
    for row in model.objects.filter(company_id__in=keys).order_by("company_id", "rank"):
        rows[row.company_id].append(row)
    changed = []
    for found in rows.values():
        documents = kind.with_ids(_named([row.document for row in found]))
        for row, document in zip(found, documents, strict=True):
            if row.document != document:
                row.document = document
                changed.append(row)
    model.objects.bulk_update(changed, ["document"], batch_size=CHUNK)


def _positions(model: Any, keys: list[int]) -> None:
    rows = defaultdict(list)
    for row in model.objects.filter(company_id__in=keys).select_related("person").order_by("company_id", "rank"):
        rows[row.company_id].append(row)
    for found in rows.values():
        given = [
            {**_own(row.extra.get("id")), "title": row.title, "person": {"slug": row.person.slug}} for row in found
        ]
        for row, each in zip(found, POSITIONS.with_ids(given), strict=True):
            row.item_id = each["id"]
            row.extra = {name: value for name, value in row.extra.items() if name != "id"}
    model.objects.bulk_update([row for found in rows.values() for row in found], ["item_id", "extra"], batch_size=CHUNK)


def _rounds(model: Any, keys: list[int]) -> None:
    kind = funding_rounds(funding_round("USD"))
    rows = defaultdict(list)
    for row in model.objects.filter(company_id__in=keys).order_by("company_id", "rank"):
        rows[row.company_id].append(row)
    for found in rows.values():
        for row, each in zip(found, kind.with_ids([{"name": row.name} for row in found]), strict=True):
            row.item_id = each["id"]
    model.objects.bulk_update([row for found in rows.values() for row in found], ["item_id"], batch_size=CHUNK)


class Migration(migrations.Migration):
    dependencies: ClassVar = [("registry", "0004_item_ids")]

    operations: ClassVar = [migrations.RunPython(_give_ids, migrations.RunPython.noop, elidable=True)]
