"""
Which tests a run of the suite keeps, and which it leaves to ``make prove``.

Forty cases of one test show little more than two, and take twenty times as long. A run of the suite without ``--whole``
therefore keeps some cases of each test, the same ones in every run. A run that names files, folders, words (``-k``) or
marks (``-m``) keeps everything that it names.
"""

from collections.abc import Sequence
from typing import Any, Final

import pytest

CASES: Final = 2
"""How many cases of a test are kept, the first and the last, unless it is marked ``whole(keeps=…)``."""
CASES_ON_POSTGRESQL: Final = 1
"""The cases of a rule differ in their values; the run on PostgreSQL is about the statements, which they share."""


def kept(items: Sequence[pytest.Item], *, on_postgresql: bool = False) -> list[pytest.Item]:
    """Return the tests that a selection keeps, in their order."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        name, _, _ = item.nodeid.partition("[")
        tests.setdefault(name, []).append(item)
    chosen: set[str] = set()
    for cases in tests.values():
        number = _number(cases[0], len(cases), on_postgresql=on_postgresql)
        chosen |= {item.nodeid for item in spread(cases, number)}
    return [item for item in items if item.nodeid in chosen]


def spread(values: Sequence[Any], number: int) -> list[Any]:
    """Return so many of *values*: the first, the last, and others at equal distances between them."""
    if len(values) <= number:
        return list(values)
    if number <= 1:
        return list(values[:number])
    last = len(values) - 1
    return [values[index * last // (number - 1)] for index in range(number)]


def _number(item: pytest.Item, count: int, *, on_postgresql: bool) -> int:
    """Return how many of the *count* cases of a test are kept, of which *item* is the first."""
    # No case of such a test runs on SQLite.
    only_on_postgresql = item.get_closest_marker("postgresql") is not None
    keeps = count if only_on_postgresql else CASES
    mark = item.get_closest_marker("whole")
    if mark is not None:
        keeps = count if mark.kwargs["keeps"] == "all" else mark.kwargs["keeps"]
    if on_postgresql and not only_on_postgresql:
        keeps = min(keeps, CASES_ON_POSTGRESQL)
    return keeps
