"""One page of a list, and the numbers around it."""

import pytest

from muniment.kernel.pagination import Page


class Rows:
    def __init__(self, total):
        self._items = list(range(total))

    def count(self):
        return len(self._items)

    def __getitem__(self, part):
        return iter(self._items[part])


@pytest.mark.parametrize(
    ("total", "page", "items", "page_count", "neighbours"),
    [
        (0, 1, [], 1, (None, None)),
        (3, 1, [0, 1, 2], 1, (None, None)),
        (4, 1, [0, 1, 2], 2, (None, 2)),
        (7, 2, [3, 4, 5], 3, (1, 3)),
        (7, 3, [6], 3, (2, None)),
        (7, 9, [], 3, (3, None)),
    ],
)
def test_a_page_knows_its_neighbours(total, page, items, page_count, neighbours):
    found = Page.of(Rows(total), page, 3)
    assert found.items == items
    assert (found.page_count, (found.previous_page, found.next_page)) == (page_count, neighbours)
    assert found.to_wire() == {"page": page, "pageSize": 3, "pageCount": page_count, "total": total}
    assert found.with_items(["x"]) == Page(["x"], page, 3, total)
