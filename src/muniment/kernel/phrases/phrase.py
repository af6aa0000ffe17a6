"""
Phrases: texts in English that remember how they were made, so that a page can show them in another language.

A phrase is a ``str``, and every surface that speaks English uses it as one. What is made of it by other means than
these classes, such as an f-string or a slice, is plain text and stays English.
"""

from collections.abc import Iterable, Sequence
from datetime import date
from typing import Any, Final, Self

_KEPT: Final = (str, int, float, date)
"""Types of values whose form a translation may choose."""


class Phrase(str):
    """
    A text made of an English template and named values.

    ``Phrase("No person has the slug {slug!r}.", slug=slug)`` is the text with the slug in its place. Without values,
    the template is the text as it is: so ``Phrase(rule)`` says that a text which the code has elsewhere is translated
    as a part of another one.

    Args:
        template: the text in the catalogues, with fields as of ``str.format`` that name a value.
        values: the values by name; those that are phrases are translated too.
    """

    __slots__ = ("template", "values")
    template: str
    values: dict[str, Any]

    def __new__(cls, template: str, /, **values: Any) -> Self:
        return cls._made(template.format_map(values) if values else template, template, values)

    @classmethod
    def of(cls, text: str) -> "Phrase":
        """Return a text as a phrase, which it may be already: so its translation is looked up."""
        return text if isinstance(text, Phrase) else Phrase(text)

    @classmethod
    def _made(cls, text: str, template: str, values: dict[str, Any]) -> Self:
        made = super().__new__(cls, text)
        made.template = str(template)
        # An error keeps the frames that it went through, so that of other objects only the text is kept.
        made.values = {}
        for name, value in values.items():
            made.values[name] = value if isinstance(value, _KEPT) else str(value)
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _again, (type(self), str(self), self._state())

    def _state(self) -> dict[str, Any]:
        return {"template": self.template, "values": self.values}


class Counted(Phrase):
    """
    A text that depends on a number, which is its value ``count``.

    Args:
        one: the template for the number 1.
        several: the template for every other number.
    """

    __slots__ = ("several",)
    several: str

    def __new__(cls, one: str, several: str, /, count: int, **values: Any) -> Self:
        named = {"count": count, **values}
        made = cls._made((one if count == 1 else several).format_map(named), one, named)
        made.several = several
        return made

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "several": self.several}


class Joined(Phrase):
    """
    Texts one after another, such as the sentences of a notice.

    Args:
        separator: what is between two of them, the same in every language.
        parts: phrases are translated, and so are plain texts that a catalogue has.
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, separator: str, parts: Iterable[str], /) -> Self:
        found = tuple(parts)
        made = cls._made(separator.join(found), separator, {})
        made.parts = found
        return made

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "parts": self.parts}


class Verbatim(str):
    """A text that is never translated, although a catalogue may have the same: what a person wrote."""

    __slots__ = ()


def _again(kind: type[Phrase], text: str, state: dict[str, Any]) -> Phrase:
    made = str.__new__(kind, text)
    for name, value in state.items():
        setattr(made, name, value)
    return made


def either(texts: Sequence[str]) -> str:
    """Return *texts*, names that are never translated, with or between them."""
    found: str = Verbatim(texts[0])
    for each in texts[1:]:
        found = Phrase("{one} or {other}", one=found, other=Verbatim(each))
    return found


def plain(value: object) -> str:
    """
    Return a phrase as plain text, for an encoder that knows no subclass of str.

    Raises:
        NotImplementedError: it is something else.
    """
    if isinstance(value, str):
        return str(value)
    raise NotImplementedError


def marked(text: str) -> str:
    """Return *text*: it is in the catalogues, since it is shown through a variable."""
    return text
