"""The parts of a question: phrases of a language, values of the registry, numbers, days and other words."""

from collections.abc import Sequence
from datetime import date
from decimal import Decimal, InvalidOperation
from typing import Final

import msgspec

from muniment.store.search.questions.language import Language, Meaning, Span
from muniment.store.search.questions.registry_words import Value
from muniment.store.search.questions.tokens import Token

TOPICS: Final = frozenset({"theme", "industry", "city", "country"})
"""Filters whose values are common words: beside another word, they are part of what is searched for."""
MAX_DIGITS: Final = 15
_PREFIX: Final = "value"


class Part(msgspec.Struct, gc=False):
    """
    A run of tokens that means one thing.

    Args:
        roles: the lists of the language that have it, with their entries.
        values: the values that it is, the most frequent first.
        amount: of a number.
        is_money: the number has the sign of a currency or a suffix such as ``m``.
        is_text: it is searched for.
    """

    start: int
    end: int
    roles: dict[str, str]
    values: Sequence[Value] = ()
    amount: Decimal | None = None
    is_money: bool = False
    day: date | None = None
    is_text: bool = False

    def has(self, *roles: str) -> bool:
        return any(role in self.roles for role in roles)


def translated(phrases: dict[Span, frozenset[Meaning]]) -> list[tuple[Span, str, str]]:
    """Return the phrases that are other words for values, each with the filter and the value."""
    return [
        (span, *entry.split("=", 1))  # type: ignore[misc] # there is one equals sign at least
        for span, meanings in phrases.items()
        for role, entry in meanings
        if role == _PREFIX
    ]


def parts_of(
    tokens: Sequence[Token],
    language: Language,
    phrases: dict[Span, frozenset[Meaning]],
    values: dict[Span, list[Value]],
) -> list[Part]:
    """Divide *tokens* into parts, the longest first; a single word is rather a phrase than a value."""
    spans = {
        span for span in {*phrases, *values} if span in values or any(role != _PREFIX for role, _ in phrases[span])
    }
    taken: dict[int, Span] = {}
    for span in sorted(spans, key=lambda span: (span[0] - span[1], span[0])):
        if not any(place in taken for place in range(*span)):
            taken.update(dict.fromkeys(range(*span), span))
    parts: list[Part] = []
    place = 0
    while place < len(tokens):
        start, end = taken.get(place, (place, place + 1))
        roles = {role: entry for role, entry in phrases.get((start, end), ()) if role != _PREFIX}
        part = Part(start, end, roles, values.get((start, end), ()), day=tokens[start].day)
        if tokens[start].digits:
            part.amount = _amount(tokens[start], language)
            part.is_money = tokens[start].has_currency or bool(tokens[start].suffix)
        elif "number" in roles:
            part.amount = Decimal(roles["number"])
        parts.append(part)
        place = end
    return parts


def _amount(token: Token, language: Language) -> Decimal | None:
    """Return a number in digits; None if its suffix is no power of ten, so that it is a word."""
    group = "." if language.decimal == "," else ","
    digits = token.digits.rstrip(".,'’").replace("'", "").replace("’", "")
    whole, _, fraction = digits.rpartition(language.decimal)
    if language.decimal in digits and group not in fraction and len(fraction) != 3:
        digits = f"{whole.replace(group, '')}.{fraction}"
    else:  # either sign divides thousands, or the other one stands before a fraction
        head, _, tail = digits.rpartition(group)
        digits = (
            f"{head}.{tail}"
            if group in digits and len(tail) != 3
            else digits.replace(group, "").replace(language.decimal, "")
        )
    power = 0 if not token.suffix else language.suffixes.get(token.suffix)
    try:
        number = Decimal(digits)
    except InvalidOperation:
        return None
    if power is None or number.adjusted() + power >= MAX_DIGITS:
        return None
    return number.scaleb(power)


def mark_texts(parts: list[Part], tokens: Sequence[Token]) -> None:
    """Mark what is searched for: unknown words, and values of topics in one run with them or with their like."""
    run: list[Part] = []
    for part in parts:
        if part.roles or part.amount is not None or part.day is not None or _is_plain(part):
            _close(run)
            run = []
            continue
        run.append(part)
        if tokens[part.end - 1].closes:
            _close(run)
            run = []
    _close(run)


def _is_plain(part: Part) -> bool:
    """Return whether *part* is a value that has its meaning beside any word."""
    return any(value.name not in TOPICS for value in part.values)


def _close(run: list[Part]) -> None:
    names = [part.values[0].name if part.values else "" for part in run]
    if "" in names or len(set(names)) < len(names):
        for part in run:
            part.is_text = True
