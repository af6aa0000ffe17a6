"""Read a question in plain words: whether a text is one, and which filters it means."""

import sqlite3
from datetime import UTC, date, datetime
from typing import Final

from muniment.store.published_document import KINDS
from muniment.store.reader import Reader
from muniment.store.search.questions.grammar import Grammar, UnreadError
from muniment.store.search.questions.language import understood
from muniment.store.search.questions.phrases import mark_texts, parts_of, translated
from muniment.store.search.questions.reading import Listings, Reading
from muniment.store.search.questions.registry_words import begins_a_name, is_name, values_of
from muniment.store.search.questions.sentence import Sentence
from muniment.store.search.questions.tokens import split

_QUOTES: Final = frozenset('"“„«»‹')


def question(reader: Reader, listings: Listings, text: str, today: date | None = None) -> Reading | None:
    """Return the filters that *text* means, as of :func:`read`; *today* in UTC by default."""
    with reader.snapshot() as (connection, _):
        return read(connection, listings, text, today or datetime.now(UTC).date())


def read(connection: sqlite3.Connection, listings: Listings, text: str, today: date) -> Reading | None:
    """
    Return the filters that *text* means, or None if it is no question but words to search for.

    A text that names a document is never a question, nor one that begins a name unless it begins like a question.
    A text with words that no filter has is a question only if something marks it as one: a word such as "which", a
    plural, a comparison. A text in quotation marks is no question.

    Args:
        listings: the lists by kind, whose filters a question may mean.
        today: the day that "last 30 days" counts from.
    """
    tokens = split(text)
    if not tokens or _is_quoted(text):
        return None
    language, phrases = understood(tokens)
    names = [name for name, (_, by) in listings["company"].filters.items() if by.several]
    values = values_of(connection, names, tokens, translated(phrases), language.code)
    parts = parts_of(tokens, language, phrases, values)
    mark_texts(parts, tokens)
    grammar = Grammar(connection, Sentence(text, tokens, parts, language), today)
    try:
        reading = grammar.read(listings)
        reading.query(listings[reading.kind], page_size=1)
    except (UnreadError, ValueError):
        return None
    is_marked = grammar.is_marked or grammar.is_asked
    means_something = reading.chips or (reading.q and grammar.has_noun)  # "fintech startups" means the kind
    if not means_something or not (is_marked or (len(reading.chips) > 1 and not reading.q)):
        return None
    if is_name(connection, KINDS, text) or (not grammar.is_asked and begins_a_name(connection, KINDS, text)):
        return None
    return reading


def quoted(text: str) -> str:
    """Return *text* so that its words are searched for, even if they are a question."""
    return f'"{text}"'


def _is_quoted(text: str) -> bool:
    return text.strip()[:1] in _QUOTES
