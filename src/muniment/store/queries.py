"""List queries: their filters, sort and cursors."""

import base64
import binascii
from typing import Final, Literal, NamedTuple

import msgspec

from muniment.kernel.phrases.phrase import Phrase
from muniment.schema.filters import Bounds, Chosen, Selected

Sort = Literal["newest", "name", "relevance", "treasury", "team", "updated", "companies"]
SORTS: Final[tuple[Sort, ...]] = ("newest", "name", "relevance", "treasury", "team", "updated", "companies")
"""Orders; a cursor has the number of its order."""


class ListQuery(msgspec.Struct, frozen=True, kw_only=True):
    """
    Parameters of a list of companies, people or frameworks.

    Args:
        page: counted from 1; ignored with a cursor.
        q: search words; blank matches everything.
        sort: None means relevance with search words, newest without.
        cursor: where an earlier page ended.
        filters: each with its values, of which any matches; as :meth:`muniment.schema.filters.Listing.select` gives
            them, like the ranges.
        ranges: bounds of numbers and times.
    """

    page: int = 1
    page_size: int = 25
    q: str = ""
    sort: Sort | None = None
    cursor: str | None = None
    ids: tuple[str, ...] | None = None
    filters: tuple[Chosen, ...] = ()
    ranges: tuple[Bounds, ...] = ()

    @property
    def order(self) -> Sort:
        if self.q.strip():
            return self.sort or "relevance"
        return "newest" if self.sort is None or self.sort == "relevance" else self.sort

    @property
    def selected(self) -> Selected:
        return Selected(self.filters, self.ranges)


class Selection(NamedTuple):
    """A query without its page: the key of a cached array of positions."""

    kind: str
    order: Sort
    q: str
    filters: tuple[Chosen, ...] = ()
    ranges: tuple[Bounds, ...] = ()
    ids: tuple[str, ...] | None = None

    @property
    def is_everything(self) -> bool:
        """Return whether the query has no filters and uses the natural order, which blocks answer."""
        return self.order == "newest" and not (self.q or self.filters or self.ranges) and self.ids is None


def selection(kind: str, query: ListQuery) -> Selection:
    return Selection(kind, query.order, query.q.strip(), query.filters, query.ranges, query.ids)


class CursorError(ValueError):
    """The text is not a cursor for this order."""


class Mark(NamedTuple):
    """
    The end of a page: the last item's position, its rank when sorted by relevance, and otherwise its sort key.

    Args:
        name: the sort key; "" for the newest first, and for an item without a value.
    """

    order: Sort
    position: int
    name: str = ""
    rank: int = 0

    def to_cursor(self) -> str:
        fields = msgspec.json.encode([SORTS.index(self.order), self.position, self.name, self.rank])
        return base64.urlsafe_b64encode(fields).decode().rstrip("=")


def parse_cursor(cursor: str, order: Sort) -> Mark:
    """Parse a cursor of an earlier page; raise CursorError if it is invalid or belongs to another order."""
    try:
        raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        number, position, name, rank = msgspec.json.decode(raw, type=tuple[int, int, str, int])
    except (binascii.Error, UnicodeError, ValueError, msgspec.MsgspecError):
        message = "is not a cursor of this registry"
        raise CursorError(message) from None
    if number != SORTS.index(order) or not (0 <= position < 1 << 63 and 0 <= rank < 1 << 62):
        message = Phrase("is not a cursor of a list sorted by {order}", order=order)
        raise CursorError(message)
    return Mark(order, position, name, rank)
