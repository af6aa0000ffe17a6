"""
Where work begins and ends, for whoever follows it.

Until somebody does, :func:`span` costs a look at a variable. Nothing here knows who that is.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

Attributes = Mapping[str, str | int | float | bool]
Follow = Callable[[str, Attributes], AbstractContextManager[object]]

_NOTHING: Final = nullcontext()
_follow: Follow | None = None


def span(name: str, attributes: Attributes) -> AbstractContextManager[object]:
    """Name the work that is done in the context. Attributes hold no secret and nothing that a person wrote."""
    return _NOTHING if _follow is None else _follow(name, attributes)


def use(follow: Follow | None) -> None:
    """Have *follow* told of every span from now on, or nobody."""
    global _follow  # noqa: PLW0603 - one process, one who follows
    _follow = follow
