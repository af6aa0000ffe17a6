"""Validation of an input: every fault with its path, and which broken limits only warn."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

if TYPE_CHECKING:
    from muniment.schema.kinds import Kind

MAX_FAULTS: Final = 50
"""An input of a hundred thousand wrong members is reported by its first faults."""

_KINDS: Final = {type(None): "null", bool: "a boolean", int: "a number", float: "a number", str: "text", list: "a list"}
T = TypeVar("T")
Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """One fault of an input: the path of the value and the rule that it breaks. ``{field} {reason}`` is a sentence."""

    field: str
    reason: str


class _Full(Exception):  # noqa: N818 - ends a validation, and is no error of its own
    """Enough faults were found."""


class Validation:
    """
    One validation of an input.

    Args:
        change: True for a change by an owner: absent members stay, null clears.
            False for an imported row, whose object is whole.

    Attributes:
        warns: whether a broken limit warns, for the value that is being read.
    """

    def __init__(self, *, change: bool) -> None:
        self.change = change
        self.warns = False
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def read(self, kind: "Kind", value: Any) -> Any:
        """Return what *kind* reads of *value*; it may be used only if there are no faults."""
        return self.collect(lambda: kind.read(value, (), self), None)

    def collect(self, read: Callable[[], T], otherwise: T) -> T:
        """Return what *read* returns, or *otherwise* once there are too many faults."""
        try:
            return read()
        except _Full:
            return otherwise

    def refuse(self, path: Path, reason: str) -> None:
        self.faults.append(Fault(text_of(path), reason))
        if len(self.faults) >= MAX_FAULTS:
            raise _Full

    def limit(self, path: Path, reason: str) -> None:
        if not self.warns:
            self.refuse(path, reason)
        elif len(self.warnings) < MAX_FAULTS:
            self.warnings.append(Fault(text_of(path), reason))


def text_of(path: Path) -> str:
    """Write a path as messages show it: ``positions[2].person.slug``."""
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text


def kind_of(value: object) -> str:
    """Name the JSON type of *value* with its article."""
    return _KINDS.get(type(value), "an object")


def shown(value: object) -> str:
    """Show *value* in a message: a long text or number by its beginning, an object or list by its type."""
    if isinstance(value, str):
        return repr(_beginning(value))
    return _beginning(repr(value).lower()) if isinstance(value, int | float) else kind_of(value)


def _beginning(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
