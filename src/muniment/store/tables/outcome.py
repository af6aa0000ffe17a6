"""What became of the statement of a page: the server asks it, and hands this to the page in the request's state."""

from typing import Final

import msgspec

from muniment.kernel.problems import Problem
from muniment.store.tables.answering import Answered

STATE: Final = "statement"
QUERY: Final = "/data/query"
SAVED: Final = "/data/queries/"
OF_PAGE: Final = frozenset({"sql", "_sort", "_chart", "_page"})
"""Parameters of the address that are the page's: all others are the statement's."""
Value = str | int | float | bool | None


class Outcome(msgspec.Struct, frozen=True):
    """
    The answer to a statement, or why there is none.

    Args:
        is_kept: it was answered from memory.
    """

    sql: str
    parameters: dict[str, Value]
    answered: Answered | None = None
    problem: Problem | None = None
    is_kept: bool = False
