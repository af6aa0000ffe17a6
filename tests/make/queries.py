"""List queries by the names of their parameters."""

from typing import Any

from muniment.schema.filters import Listing
from muniment.schema.objects import registry_schema
from muniment.store.queries import ListQuery

LISTINGS = registry_schema("USD").listings
_OWN = frozenset(ListQuery.__struct_fields__)


def _query(listing: Listing, given: dict[str, Any]) -> ListQuery:
    own = {name: value for name, value in given.items() if name in _OWN}
    values = {name: value for name, value in given.items() if name not in _OWN}
    assert values.keys() <= listing.criteria.keys(), values
    parsed = {name: _parsed(listing, name, value) for name, value in values.items()}
    return ListQuery(**own, **listing.select(parsed)._asdict())


def _parsed(listing: Listing, name: str, value: Any) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    of = listing.criteria[name]
    return tuple(map(of.parse, value)) if isinstance(value, list | tuple) else of.parse(value)


def companies_by(**given: Any) -> ListQuery:
    return _query(LISTINGS["company"], given)


def people_by(**given: Any) -> ListQuery:
    return _query(LISTINGS["person"], given)


def frameworks_by(**given: Any) -> ListQuery:
    return _query(LISTINGS["framework"], given)
