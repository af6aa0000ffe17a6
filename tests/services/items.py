"""Rows of lists without the ids that the product gives them."""

from collections.abc import Iterable
from typing import Any


def without_ids(rows: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the rows without their ids, each of which must be a text of its own."""
    found = list(rows)
    ids = [row["id"] for row in found]
    assert all(isinstance(each, str) and each for each in ids), ids
    assert len(set(ids)) == len(ids), ids
    return [{name: value for name, value in row.items() if name != "id"} for row in found]
