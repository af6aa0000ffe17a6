"""
Validation of an input: every fault with its path, and which broken limits only warn.

Reading judges types. The rules about values (lengths, ranges, the form of a link) are judged apart, on values in wire
form: so a stored value that broke a rule before the rule existed can stay, and a list is judged after an edit of it.
"""

from collections.abc import Callable, Iterable
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from muniment.kernel.phrases.phrase import Joined, Phrase, Verbatim

if TYPE_CHECKING:
    from muniment.schema.kinds import Kind

MAX_FAULTS: Final = 50
"""An input of a hundred thousand wrong members is reported by its first faults."""

_OBJECT: Final = Phrase("an object")
_KINDS: Final = {
    type(None): Verbatim("null"),
    bool: Phrase("a boolean"),
    int: Phrase("a number"),
    float: Phrase("a number"),
    str: Phrase("text"),
    list: Phrase("a list"),
}
T = TypeVar("T")
Path = tuple[str | int, ...]


class Fault(NamedTuple):
    """One fault of an input: the path of the value and the rule that it breaks. ``{field} {reason}`` is a sentence."""

    field: str
    reason: str

    @property
    def hint(self) -> str:
        """Return the value or form to send instead; "" where the rule or the form options say it."""
        return ""

    @property
    def sentence(self) -> Joined:
        """The field and what is wrong with it, without a full stop."""
        return Joined(" ", (Verbatim(self.field), self.reason))


class HintedFault(Fault):
    """A fault with a hint of its own."""

    hint: str = ""

    @classmethod
    def of(cls, field: str, reason: str, hint: str) -> Fault:
        """Return a fault, with *hint* if there is one."""
        if not hint:
            return Fault(field, reason)
        fault = cls(field, reason)
        fault.hint = hint
        return fault


class ChoiceFault(Fault):
    """A fault that ends with a choice between existing things; ``choices`` are their slugs."""

    choices: tuple[str, ...] = ()


class Absent(Enum):
    """The type of :data:`ABSENT`: nothing is stored, which differs from a stored null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class Breach(NamedTuple):
    """
    A rule that a value breaks.

    Args:
        is_limit: the rule bounds a size. An import may exceed it where its record says so.
        warns: an import only warns of it.
        hint: as that of a fault.
    """

    path: Path
    reason: str
    is_limit: bool = False
    warns: bool = False
    hint: str = ""

    @property
    def fault(self) -> Fault:
        return HintedFault.of(text_of(self.path), self.reason, self.hint)


class _Full(Exception):  # noqa: N818 - ends a validation, and is no error of its own
    """Enough faults were found."""


class Validation:
    """
    One validation of an input.

    Args:
        change: True for a change by an owner: absent members stay, null clears.
            False for an imported row, whose object is whole.
    """

    def __init__(self, *, change: bool) -> None:
        self.change = change
        self.faults: list[Fault] = []
        self.warnings: list[Fault] = []

    def read(self, kind: "Kind", value: Any) -> Any:
        """Return what *kind* reads of *value*; it may be used only if there are no faults."""
        stored_form = self.parse(kind, value)
        self.judge_too(kind, value)
        return stored_form

    def parse(self, kind: "Kind", value: Any) -> Any:
        """Read *value* without judging it by the rules about values."""
        return self.collect(lambda: kind.read(value, (), self), None)

    def judge_too(self, kind: "Kind", value: Any) -> None:
        """Report the rules that *value* breaks, after what was reported of its types."""
        if len(self.faults) < MAX_FAULTS:
            self.collect(lambda: self.judge(kind.breaches(value, ())), None)

    def judge(self, breaches: Iterable[Breach]) -> None:
        """Report *breaches*."""
        for breach in breaches:
            if not breach.warns or self.change:
                self.refuse(breach.path, breach.reason, breach.hint)
            elif len(self.warnings) < MAX_FAULTS:
                self.warnings.append(breach.fault)

    def collect(self, read: Callable[[], T], otherwise: T) -> T:
        """Return what *read* returns, or *otherwise* once there are too many faults."""
        try:
            return read()
        except _Full:
            return otherwise

    def refuse(self, path: Path, reason: str, hint: str = "") -> None:
        self.faults.append(HintedFault.of(text_of(path), reason, hint))
        if len(self.faults) >= MAX_FAULTS:
            raise _Full


def text_of(path: Path) -> str:
    """Write a path as messages show it: ``positions[2].person.slug``."""
    text = ""
    for part in path:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            text += f".{part}" if text else part
    return text


def kind_of(value: object) -> str:
    """Name the JSON type of *value* with its article."""
    return _KINDS.get(type(value), _OBJECT)


def shown(value: object) -> str:
    """Show *value* in a message: a long text or number by its beginning, an object or list by its type."""
    if isinstance(value, str):
        return repr(_beginning(value))
    if isinstance(value, int | float):
        return _beginning(repr(value).lower())  # in lower case, as JSON writes true and false
    return kind_of(value)


def _beginning(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:79]}…"
