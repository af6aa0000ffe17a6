"""
Tracing hook: :func:`span` marks units of work for the tracer that :func:`use` installs.

Without a tracer, a span costs one variable look-up.
"""

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Final

Attributes = Mapping[str, str | int | float | bool]
Follow = Callable[[str, Attributes], AbstractContextManager[object]]

_NOTHING: Final = nullcontext()
_follow: Follow | None = None


def span(name: str, attributes: Attributes) -> AbstractContextManager[object]:
    """Name the work in the context. Attributes contain no secrets and no user input."""
    return _NOTHING if _follow is None else _follow(name, attributes)


def use(follow: Follow | None) -> None:
    """Report every span to *follow* from now on; None turns tracing off."""
    global _follow  # noqa: PLW0603 - one tracer per process
    _follow = follow
