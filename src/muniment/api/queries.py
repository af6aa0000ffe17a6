"""The queries of lists and facets, from the values of their parameters."""

from typing import Final
from urllib.parse import quote

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.schema.filters import Listing, ReversedRange
from muniment.schema.objects import registry_schema
from muniment.store.queries import ListQuery
from muniment.store.search.everything import COLLECTIONS

MAX_IDS: Final = 100
LISTINGS: Final = registry_schema("USD").listings
"""Those without declared fields."""
Values = JSONObject


def list_query(listing: Listing, path: str, values: Values) -> ListQuery:
    """Check the combination of a list's parameters and return its query."""
    page, size, cursor, sort = values["page"], values["pageSize"], values["cursor"], values["sort"]
    if cursor is not None and page is not None:
        raise BadRequest(
            f"page is {page} and a cursor is given; use only one of them.", f"For example: {path}?page={page}"
        )
    if sort == "relevance" and values["q"] is None:
        raise BadRequest(
            'sort is "relevance" without q; relevance needs search words.', f"For example: {path}?sort=newest"
        )
    return ListQuery(
        page=page or 1,
        page_size=size or (MAX_IDS if values["ids"] is not None else 25),
        q=values["q"] or "",
        sort=sort,
        cursor=cursor,
        ids=values["ids"],
        **selected(listing, path, values),
    )


def selected(listing: Listing, path: str, values: Values) -> JSONObject:
    """Return the filters and ranges of a query by the reader's names."""
    try:
        return listing.select(values)._asdict()
    except ReversedRange as error:
        low, high = (listing.criteria[name] for name in (error.low, error.high))
        example = f"{path}?{low.name}={quote(low.example)}&{high.name}={quote(high.example)}"
        raise BadRequest(
            f"{error}, so that nothing can be between them; both bounds are included.", f"For example: {example}"
        ) from None


def counted(listing: Listing, values: Values) -> tuple[str, ...]:
    """Return the names of the facets that a query asks for; those of other lists are ignored, like their filters."""
    return tuple(name for name in values["facets"] or () if name in listing.counted)


def of_collection(collection: str | None) -> str:
    """Return the kind of a collection; companies by default."""
    return next((kind for kind, each in COLLECTIONS.items() if each == collection), "company")
