"""
Texts that were stored in English, such as the error of a job, in the language in which texts are now made.

What is stored is plain text. It is found again by the templates of the catalogue, from whose values it was made.
"""

import ast
import re
from functools import lru_cache
from string import Formatter
from typing import Any, Final, NamedTuple

from django.utils.translation import trans_real

from muniment.kernel.phrases.phrase import Phrase
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language
from muniment.languages.translated import translated

MAX_CHARACTERS: Final = 1_000
"""Longer texts are shown as they are."""
_MOST_FIELDS: Final = 6
_LEAST_LETTERS: Final = 6
"""A template of fewer letters besides its values would fit texts by chance."""
_DEPTH: Final = 2
_BETWEEN: Final = "; "
"""Between sentences that are stored as one text."""
_MOST_PARTS: Final = 8
_TEXT: Final = r"(?:'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")"
_FORMS: Final = {
    ",": r"-?\d{1,3}(?:,\d{3})*",
    "04X": r"[0-9A-F]{4,6}",
    ",.15g": r"-?\d{1,3}(?:,\d{3})*(?:\.\d+)?",
    "g": r"-?\d+(?:\.\d+)?",
    ".0f": r"-?\d+",
    ",.0f": r"-?\d{1,3}(?:,\d{3})*",
    ".1f": r"-?\d+\.\d",
    ".2f": r"-?\d+\.\d\d",
}


class _Template(NamedTuple):
    text: str
    pattern: re.Pattern[str]
    styles: dict[str, str]


def recalled(text: str) -> str:
    """Return a text that was stored in English as it would be shown now; as it is if no template is known for it."""
    if not text or language() == SOURCE or len(text) > MAX_CHARACTERS:
        return text
    return _recalled(language(), text)


@lru_cache(maxsize=1024)
def _recalled(code: str, text: str) -> str:
    parts = text.split(_BETWEEN, _MOST_PARTS)
    if (known := _all_known(code, parts)) is not None:
        return _BETWEEN.join(known)
    shown = [_phrase(code, part) for part in parts]
    return _BETWEEN.join(translated(each) if each else part for each, part in zip(shown, parts, strict=True))


def _all_known(code: str, parts: list[str]) -> list[str] | None:
    """Return the sentences that *parts* are, in the fewest parts each; None if one of them is not known."""
    if not parts:
        return []
    for n in range(1, len(parts) + 1):
        found = _phrase(code, _BETWEEN.join(parts[:n]))
        if found is not None and (rest := _all_known(code, parts[n:])) is not None:
            return [translated(found), *rest]
    return None


def _phrase(code: str, text: str, depth: int = 0) -> Phrase | None:
    """Return the phrase that *text* was made of, or None."""
    if translated(text) != text:
        return Phrase(text)
    for template in _templates(code):
        match = template.pattern.fullmatch(text)
        if match is None:
            continue
        try:
            values = {name: _value(code, match[name], style, depth) for name, style in template.styles.items()}
            found = Phrase(template.text, **values)
        except (ValueError, SyntaxError):
            continue
        if found == text:
            return found
    return None


def _value(code: str, text: str, style: str, depth: int) -> Any:
    if style == "r":
        return ast.literal_eval(text)
    if style in {",", "04X"}:
        return int(text.replace(",", ""), 16 if style == "04X" else 10)
    if style in _FORMS:
        return float(text.replace(",", ""))
    nested = _phrase(code, text, depth + 1) if " " in text and depth < _DEPTH else None
    return text if nested is None else nested


@lru_cache(maxsize=16)
def _templates(code: str) -> tuple[_Template, ...]:
    """Return the templates of a catalogue with values, the longest first."""
    texts = {each for each in trans_real.translation(code)._catalog.keys() if isinstance(each, str) and "{" in each}  # type: ignore[attr-defined]  # Django offers no list  # noqa: SIM118, SLF001 - of its catalogue
    found = [made for text in texts if (made := _template(text)) is not None]
    return tuple(sorted(found, key=lambda each: (-len(each.text), each.text)))


def _template(text: str) -> _Template | None:
    try:
        parts = list(Formatter().parse(text))
    except ValueError:
        return None
    pattern, styles = "", {}
    for literal, name, style, conversion in parts:
        pattern += re.escape(literal)
        if name is None:
            continue
        kind = "r" if conversion == "r" else style or ""
        form = _TEXT if kind == "r" else _FORMS.get(kind, "" if kind else ".+?")
        if not name.isidentifier() or not form:
            return None
        if name in styles:
            pattern += f"(?P={name})"
            continue
        styles[name] = kind
        pattern += f"(?P<{name}>{form})"
    letters = sum(each.isalpha() for literal, *_ in parts for each in literal)
    if not styles or len(styles) > _MOST_FIELDS or letters < _LEAST_LETTERS:
        return None
    return _Template(text, re.compile(pattern, re.DOTALL), styles)
