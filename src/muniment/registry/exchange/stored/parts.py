"""The stored parts of the companies of a batch: positions, proposals, cap table, funding rounds."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.db import models
from django.db.models import Value
from django.db.models.functions import Coalesce

from muniment.registry.company.parts import PositionRow, RoundRow
from muniment.registry.fields import Text
from muniment.registry.models import CapTableEntry, FundingRound, Position, Proposal

StoredParts = dict[str, dict[int, list[Any]]]
"""Stored parts, by the part's name in a row and the company's key."""
PART_COLUMNS: Final[dict[type[models.Model], tuple[str, ...]]] = {
    Position: ("company_id", "rank", "person_id", "name", "item_id", "title", "extra"),
    Proposal: ("company_id", "rank", "document"),
    CapTableEntry: ("company_id", "rank", "document"),
    FundingRound: ("company_id", "rank", *RoundRow._fields),
}
"""The columns of which a new row of a part is made."""

NO_PARTS: Final[Mapping[str, list[Any]]] = {}


def stored_parts(keys: list[int]) -> StoredParts:
    def stored(model: type[models.Model], *columns: Any) -> Iterable[Any]:
        found = model._default_manager.filter(company_id__in=keys).order_by("company_id", "rank")  # noqa: SLF001 - Django's public name
        return found.values_list("company_id", *columns)

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
    return place.slug or (place.name,), place.title, place.extra, place.item_id
