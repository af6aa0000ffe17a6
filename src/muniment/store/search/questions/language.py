"""The words of a language: one file each in ``languages/``, read once."""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from muniment.store.search.questions.tokens import Token, split

FOLDER: Final = Path(__file__).parent / "languages"


class LanguageFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """
    A language's file. A word may be in several lists; where they differ in length, the longer wins.

    Args:
        decimal: the sign before the fraction of a number.
        ask: words that begin a question, and mark it as one.
        skip: words without a meaning of their own.
        join: words between two values of which any matches.
        deny: words that turn what follows into its opposite; ``without`` does so for what a company has.
        place: words before a city or country; ``topic``, before a theme; ``of``, before the name of a company.
        past: words before a number of days; ``last`` without a number is the calendar month or year before.
        most: words for the first of an order; the subject says of which.
        begun: words of another time than that of the listing, such as a founding: no filter has it.
        one: nouns in the singular, which mark no question; ``noun`` has the plural.
        number: the words of numbers; ``magnitude``, of powers of ten.
        title: words for a person's title, by the title.
        value: other words for values of the registry, by filter and value.
    """

    name: str
    decimal: str
    ask: list[str]
    skip: list[str]
    join: list[str]
    deny: list[str]
    having: list[str]
    without: list[str]
    place: list[str]
    topic: list[str]
    of: list[str]
    works: list[str]
    more: list[str]
    at_least: list[str]
    less: list[str]
    at_most: list[str]
    or_more: list[str]
    or_less: list[str]
    between: list[str]
    to: list[str]
    since: list[str]
    after: list[str]
    before: list[str]
    until: list[str]
    during: list[str]
    past: list[str]
    last: list[str]
    this: list[str]
    listed: list[str]
    updated: list[str]
    begun: list[str]
    treasury: list[str]
    team: list[str]
    most: list[str]
    currency: list[str]
    ordinal: list[str]
    days_ago: dict[str, list[str]]
    unit: dict[str, list[str]]
    month: dict[str, list[str]]
    number: dict[str, list[str]]
    magnitude: dict[str, list[str]]
    flag: dict[str, list[str]]
    noun: dict[str, list[str]]
    one: dict[str, list[str]]
    sort: dict[str, list[str]]
    title: dict[str, list[str]]
    value: dict[str, dict[str, list[str]]]


Meaning = tuple[str, str]
"""The name of a list, and the entry of it; of a list without entries, empty."""
Span = tuple[int, int]


class Language(msgspec.Struct, frozen=True):
    """
    A language, ready to be looked up.

    Args:
        code: the name of its file.
        phrases: the phrases that begin with a word, with their meanings.
        suffixes: powers of ten by the letters behind a number.
        ordinals: the letters behind the day of a month.
    """

    code: str
    decimal: str
    phrases: dict[str, tuple[tuple[tuple[str, ...], frozenset[Meaning]], ...]]
    suffixes: dict[str, int]
    ordinals: frozenset[str]

    def spans(self, words: tuple[str, ...]) -> dict[Span, frozenset[Meaning]]:
        """Return the phrases in *words*."""
        return {
            (start, start + len(phrase)): meanings
            for start, word in enumerate(words)
            for phrase, meanings in self.phrases.get(word, ())
            if words[start : start + len(phrase)] == phrase
        }


def parse(code: str, raw: bytes) -> Language:
    """Return the language of a file; raises msgspec.ValidationError naming a list that is missing or unknown."""
    words = msgspec.toml.decode(raw, type=LanguageFile)
    phrases: dict[tuple[str, ...], set[Meaning]] = {}

    def add(phrase: str, role: str, entry: str) -> None:
        phrases.setdefault(tuple(token.word for token in split(phrase)), set()).add((role, entry))

    for role in LanguageFile.__struct_fields__:
        given = getattr(words, role)
        if isinstance(given, list) and role != "ordinal":
            for phrase in given:
                add(phrase, role, "")
        elif isinstance(given, dict):
            for entry, each in (_by_value(given) if role == "value" else given).items():
                for phrase in each:
                    add(phrase, role, entry)
    beginning: dict[str, list[tuple[tuple[str, ...], frozenset[Meaning]]]] = {}
    for phrase_words, meanings in phrases.items():
        beginning.setdefault(phrase_words[0], []).append((phrase_words, frozenset(meanings)))
    return Language(
        code,
        words.decimal,
        {first: tuple(each) for first, each in beginning.items()},
        {suffix: int(power) for power, suffixes in words.magnitude.items() for suffix in suffixes},
        frozenset(words.ordinal),
    )


def _by_value(given: dict[str, dict[str, list[str]]]) -> dict[str, list[str]]:
    return {f"{name}={value}": phrases for name, values in given.items() for value, phrases in values.items()}


@functools.cache
def languages() -> tuple[Language, ...]:
    """Return all languages; English first, then by code."""
    found = [parse(file.stem, file.read_bytes()) for file in sorted(FOLDER.glob("*.toml"))]
    return tuple(sorted(found, key=lambda each: (each.code != "en", each.code)))


def understood(tokens: Sequence[Token]) -> tuple[Language, dict[Span, frozenset[Meaning]]]:
    """Return the language that knows most of *tokens*, the first of several, and its phrases in them."""
    words = tuple(token.word for token in tokens)
    found = [(language, language.spans(words)) for language in languages()]
    return max(found, key=lambda each: len({place for span in each[1] for place in range(*span)}))
