"""
Read the words of tables, which are data: one file for each language. Pure.

A file has these parts, each a name with words that are separated by commas:

- ``companies`` and ``people``: the headings of each field;
- ``unsure``: headings that only may mean a field, which a person should check;
- ``titles``: the headings over names of people that say a position;
- ``words``: ``qualifiers`` that add nothing to a heading; ``labels``, which say that a column has the name of a place;
  headings that are ``left_out`` because they are private, internal, or have no field; and ``figures``, such as money
  that was raised and its currency, which have no field and are public;
- ``values``: what cells say: statuses, blanks, totals, scales of numbers, and the twelve months;
- ``names``: usual ``given`` names of people, and words in names of ``organizations``.

To add a language, add a file.
"""

import functools
import tomllib
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Final

COMPANIES: Final = "companies"
PEOPLE: Final = "people"
_LETTERS: Final = str.maketrans({"ł": "l", "ø": "o", "đ": "d", "ð": "d", "æ": "ae", "œ": "oe", "ı": "i", "þ": "th"})
_SPELLED: Final = str.maketrans({"ä": "ae", "ö": "oe", "ü": "ue", "å": "aa", "ø": "oe"})
_SCALES: Final = {"thousand": 10**3, "million": 10**6, "billion": 10**9}
_STATUSES: Final = ("active", "upcoming", "inactive")


def key(text: str) -> str:
    """Return a heading without spaces, signs and accents; words run together are the same heading."""
    if text.strip() == "%":
        return "percent"
    plain = unicodedata.normalize("NFKD", text.casefold().translate(_LETTERS))
    return "".join(sign for sign in plain if sign.isalnum())


@dataclass(slots=True)
class Catalogue:
    """
    All words of all languages.

    Args:
        headings: by kind of table and key, the fields that a heading means, the likeliest first; ``people:Title`` is a
            list of people with a position.
        unsure: the fields that a heading may mean, by key.
    """

    headings: dict[str, dict[str, list[str]]] = field(default_factory=lambda: {COMPANIES: {}, PEOPLE: {}})
    unsure: dict[str, str] = field(default_factory=dict)
    titles: set[str] = field(default_factory=set)
    qualifiers: set[str] = field(default_factory=set)
    labels: set[str] = field(default_factory=set)
    left_out: set[str] = field(default_factory=set)
    figures: set[str] = field(default_factory=set)
    statuses: dict[str, str] = field(default_factory=dict)
    blanks: set[str] = field(default_factory=set)
    totals: set[str] = field(default_factory=set)
    scales: dict[str, int] = field(default_factory=dict)
    months: dict[str, int] = field(default_factory=dict)
    given_names: set[str] = field(default_factory=set)
    organizations: set[str] = field(default_factory=set)


def _words(text: str) -> Iterator[str]:
    for word in " ".join(text.split()).split(","):
        if word.strip():
            yield word.strip()


def words_in(text: str) -> frozenset[str]:
    """Return the keys of words that are separated by commas."""
    return frozenset(map(key, _words(text)))


def _keys(text: str) -> Iterator[str]:
    """Yield the keys of words: with plain letters, and with umlauts spelled out."""
    for word in _words(text):
        if not key(word):
            continue
        yield key(word)
        spelled = word.casefold().translate(_SPELLED)
        if spelled != word.casefold():
            yield key(spelled)


@functools.cache
def catalogue() -> Catalogue:
    """Return the words of all languages; English has the first say about what a word means."""
    all_words = Catalogue()
    folder = files(__package__) / "words"
    names = [file.name for file in folder.iterdir() if file.name.endswith(".toml")]
    for name in sorted(names, key=_rank):
        _add(all_words, tomllib.loads((folder / name).read_text("utf-8")))
    for kind in all_words.headings.values():
        for word in kind:
            all_words.left_out.discard(word)
    all_words.left_out -= all_words.unsure.keys()
    return all_words


def _rank(name: str) -> tuple[bool, bool, str]:
    return (name != "en.toml", name != "de.toml", name)


def _add(all_words: Catalogue, said: dict[str, dict[str, Any]]) -> None:
    _add_headings(all_words, said)
    _add_values(all_words, said.get("values", {}))
    names_of = said.get("names", {})
    all_words.given_names |= {*_keys(names_of.get("given", ""))}
    all_words.organizations |= {*_keys(names_of.get("organizations", ""))}
    words_of = said.get("words", {})
    all_words.qualifiers |= {*_keys(words_of.get("qualifiers", ""))}
    all_words.labels |= {*_keys(words_of.get("labels", ""))}
    all_words.left_out |= {*_keys(words_of.get("left_out", ""))} - {""}
    figures = {*_keys(words_of.get("figures", ""))}
    all_words.figures |= figures
    all_words.left_out |= figures


def _add_headings(all_words: Catalogue, said: dict[str, dict[str, Any]]) -> None:
    for kind in (COMPANIES, PEOPLE):
        for field_name, words in said.get(kind, {}).items():
            for word in _keys(words):
                fields = all_words.headings[kind].setdefault(word, [])
                if field_name not in fields:
                    fields.append(field_name)
    for title, words in said.get("titles", {}).items():
        all_words.titles |= {*_keys(words), key(title)}
        for word in _keys(words):
            fields = all_words.headings[COMPANIES].setdefault(word, [])
            if f"people:{title}" not in fields:
                fields.append(f"people:{title}")
    for field_name, words in said.get("unsure", {}).items():
        all_words.unsure |= dict.fromkeys(_keys(words), field_name)


def _add_values(all_words: Catalogue, values: dict[str, Any]) -> None:
    for status in _STATUSES:
        for word in _keys(values.get(status, "")):
            all_words.statuses.setdefault(word, status)
    all_words.blanks |= {word.casefold() for word in _words(values.get("blank", ""))}
    all_words.totals |= {*_keys(values.get("totals", ""))}
    for name, factor in _SCALES.items():
        for word in _words(values.get(name, "")):
            all_words.scales.setdefault(word.casefold(), factor)
    for number, names in enumerate(_words(values.get("months", "")), 1):
        for word in names.split():
            all_words.months.setdefault(key(word), number)
