"""Translated templates with the values of a phrase in their places."""

from collections.abc import Callable
from string import Formatter
from typing import Any, Final

from muniment.kernel.phrases.phrase import Phrase


class _Fields(Formatter):
    """
    Puts values into a translated template.

    A catalogue may name values, and say how they are written; it cannot reach into them, as ``str.format`` allows.

    Args:
        quoted: the values that the English text shows with quotes and escapes. Without the quotes, which differ between
            languages, they keep the escapes: so no character turns a line around or is invisible.
        number: writes a number in a format.
    """

    def __init__(self, quoted: frozenset[str], number: Callable[[float, str], str]) -> None:
        self._quoted, self._number = quoted, number

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:  # noqa: ARG002 - of Formatter
        value = kwargs[field_name]
        return (_Quoted(value) if field_name in self._quoted and isinstance(value, str) else value), field_name

    def convert_field(self, value: Any, conversion: str | None) -> Any:
        if conversion == "r" and isinstance(value, _Quoted):
            return repr(str(value))
        return super().convert_field(value, conversion)

    def format_field(self, value: Any, format_spec: str) -> str:
        if isinstance(value, _Quoted):
            return format(repr(str(value))[1:-1], format_spec)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return self._number(value, format_spec)
        return format(value, format_spec)


class _Quoted(str):
    __slots__ = ()


_ENGLISH: Final = Formatter()


def filled(template: str, phrase: Phrase, values: dict[str, Any], number: Callable[[float, str], str]) -> str:
    """
    Return *template*, the translation of that of *phrase*, with *values*.

    Raises:
        LookupError, ValueError, TypeError: the translation is not a template for these values.
    """
    if not phrase.values:
        return template
    quoted = frozenset(name for _, name, _, kind in _ENGLISH.parse(phrase.template) if name and kind == "r")
    return _Fields(quoted, number).vformat(template, (), values)
