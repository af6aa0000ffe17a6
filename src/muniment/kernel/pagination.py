"""Pagination: one page of a list, with its page numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

Item = TypeVar("Item")
Other = TypeVar("Other")
Item_co = TypeVar("Item_co", covariant=True)


class Rows(Protocol[Item_co]):
    """A list that can be counted and sliced, such as a query set."""

    def count(self) -> int:
        """Return the number of all items."""

    def __getitem__(self, part: slice, /) -> Iterable[Item_co]: ...


@dataclass(frozen=True, slots=True)
class Page(Generic[Item]):
    """One page of a list; pages are counted from 1."""

    items: list[Item]
    page: int
    page_size: int
    total: int

    @classmethod
    def of(cls, rows: Rows[Item], page: int, page_size: int) -> "Page[Item]":
        total, start = rows.count(), (page - 1) * page_size
        return Page(list(rows[start : start + page_size]) if start < total else [], page, page_size, total)

    @property
    def page_count(self) -> int:
        return max(1, -(-self.total // self.page_size))

    @property
    def next_page(self) -> int | None:
        return self.page + 1 if self.page < self.page_count else None

    @property
    def previous_page(self) -> int | None:
        """Return the previous page's number; beyond the end, the last page's."""
        return min(self.page - 1, self.page_count) if self.page > 1 else None

    def with_items(self, items: list[Other]) -> "Page[Other]":
        return Page(items, self.page, self.page_size, self.total)

    def to_wire(self) -> dict[str, int]:
        return {"page": self.page, "pageSize": self.page_size, "pageCount": self.page_count, "total": self.total}
