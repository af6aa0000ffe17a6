"""
Find the fields that a heading can mean: as it is written, without qualifiers and units, or nearly. Pure.

A heading only proposes: :mod:`muniment.registry.tables.cells.profiles` says whether the values of the column fit.
"""

import functools
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from muniment.registry.tables.words.catalogue import COMPANIES, catalogue, key

_BRACKETS: Final = re.compile(r"[(\[（【｛{](.*?)[)\]）】｝}]")
_PARTS: Final = re.compile(r"[./:>|\n／・]|(?<=[a-z])(?=[A-Z])")
_TOKENS: Final = re.compile(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])|[\s_.\-/:>|,;&+'’()\[\]（）#*]+")
_NUMBERING: Final = re.compile(r"^\s*(?:\d{1,2}|[A-Za-z])[.)]\s+|[\s_.\-]*#?\d{1,2}\s*$|[\s*:：]+$")
_UNITS: Final = re.compile(
    r"^(?:eur|usd|gbp|chf|sek|nok|dkk|pln|czk|jpy|cny|krw|cad|aud|inr|brl|euros?|dollars?|teur|tsd|keur|kusd|meur|musd"
    r"|mio|mrd|mln|[km]?[€$£¥]|[€$£¥][km]?|円|元|원|万元|億円|百万円|千円|万円|만원|억원|人|名|required|optional)$",
    re.IGNORECASE,
)
MAX_CHARACTERS: Final = 120
_LEAST_FUZZY: Final = 6
_DAYS: Final = ("listedAt", "extra:founded")
_FUZZY_SCORE: Final = 90
_FUZZY_LENGTHS: Final = 2
_LEAST_TOKEN: Final = 4
_LEAST_REST: Final = 3
_GENERIC: Final = frozenset(
    [
        "number",
        "nummer",
        "numero",
        "name",
        "code",
        "codigo",
        "codice",
        "index",
        "rank",
        "rang",
        "line",
        "linha",
        "linea",
        "ligne",
        "riga",
        "wiersz",
        "regel",
        "zeile",
        "radek",
        "source",
        "quelle",
        "bron",
        "zdroj",
        "fuente",
        "account",
        "language",
        "updated",
        "languages",
        "currency",
        "langue",
        "lingua",
        "idioma",
        "parent",
        "particular",
        "label",
        "votes",
        "stimmen",
        "rating",
        "score",
        "paid",
        "contribution",
        "discount",
        "opened",
        "offen",
        "interno",
        "private",
        "privado",
    ]
)
"""Words that leave a column out only as its whole heading."""
_PRIVATE: Final = frozenset(
    [
        "private",
        "privat",
        "privee",
        "prive",
        "privado",
        "privada",
        "privato",
        "privata",
        "prywatny",
        "prywatne",
        "soukromy",
        "soukrome",
        "personal",
        "personale",
        "pessoal",
        "particular",
        "intern",
        "interne",
        "interno",
        "internal",
        "confidential",
        "vertraulich",
        "home",
    ]
)
"""Words in brackets or over a group that leave a column out."""


class Match(NamedTuple):
    """
    The fields that a heading may mean.

    Args:
        fields: the likeliest first.
        is_guess: a person should check it.
    """

    fields: tuple[str, ...] = ()
    is_guess: bool = False
    is_left_out: bool = False


_NONE: Final = Match()
_LEFT_OUT: Final = Match(is_left_out=True)


def match(heading: str, kind: str, *, nearly: bool = True) -> Match:
    """
    Return what a heading means in a table of *kind*.

    Args:
        nearly: headings that differ by a letter count too.
    """
    heading = heading.strip()
    return _match(heading, kind, nearly) if 0 < len(heading) <= MAX_CHARACTERS else _NONE


@functools.lru_cache(maxsize=20_000)
def _match(heading: str, kind: str, nearly: bool) -> Match:  # noqa: C901, FBT001, PLR0911, PLR0912 - one for each reading, in order
    words = catalogue()
    known = words.headings[kind]
    whole = key(_bare(heading))
    for word in (key(heading), whole):
        if word in known:
            return _found(known[word], heading)
    if kind == COMPANIES and whole in words.unsure:
        return Match((words.unsure[whole],), is_guess=True)
    if whole in words.left_out or _is_private(heading):
        return _LEFT_OUT
    for text in _readings(heading):
        found = key(text)
        if found in known:
            return _found(known[found], text)
        if kind == COMPANIES and found in words.unsure:
            return Match((words.unsure[found],), is_guess=True)
        if found in words.left_out:
            return _LEFT_OUT
    tokens = [token for token in _TOKENS.split(_BRACKETS.sub(" ", heading)) if token]
    if _has_left_out(tokens):
        return _LEFT_OUT
    for rest in _without_qualifiers(tokens):
        if rest in known:
            return _found(known[rest], heading)
        if kind == COMPANIES and rest in words.unsure:
            return Match((words.unsure[rest],), is_guess=True)
    if not nearly:
        return _NONE
    return _day_that_begins(tokens, kind) or _near(whole, kind)


def _day_that_begins(tokens: Sequence[str], kind: str) -> Match | None:
    """
    Return the day that the first words of a heading mean, for a person to check: "Joined program", "Beitritt Verband".

    Only for days: values of no other kind look like them, so that a wrong reading is noticed.
    """
    known = catalogue().headings[kind]
    for length in range(len(tokens) - 1, 0, -1):
        fields = known.get("".join(key(each) for each in tokens[:length]), ())
        if fields and fields[0] in _DAYS:
            return _found(fields[:1], " ".join(tokens[:length]))._replace(is_guess=True)
    return None


def _found(fields: Sequence[str], heading: str) -> Match:
    """Return a match; of a position that languages write alike, the heading says it best."""
    titles = {each for each in fields if each.startswith("people:")}
    if len(titles) > 1:
        own = f"people:{' '.join(_bare(heading).split())}"
        fields = [*dict.fromkeys(own if each in titles else each for each in fields)]
    return Match(tuple(fields))


def _bare(heading: str) -> str:
    """Return a heading without numbering and marks: "2. Name *" and "Founder 3" are "Name" and "Founder"."""
    before = None
    while before != heading:
        before, heading = heading, _NUMBERING.sub("", heading)
    return heading or before


def _readings(heading: str) -> Iterator[str]:
    """Yield the texts that a heading can be read as: without units in brackets, below its group, in two languages."""
    plain = _BRACKETS.sub(" ", heading)
    last = plain.rpartition(" / ")[2]
    yield from (_bare(plain), _bare(last), _bare(plain.split("/")[0]))
    parts = [each for each in _PARTS.split(plain) if each.strip()]
    if len(parts) > 1:
        yield _bare(parts[-1])
        if len(plain.split("/")) > 1 or "|" in plain or "\n" in plain:
            yield from (_bare(each) for each in re.split(r"[/|\n]", plain) if each.strip())
    for inner in _BRACKETS.findall(heading):
        if (
            not _UNITS.match(inner.strip())
            and len(key(inner)) >= _LEAST_TOKEN
            and key(inner) not in catalogue().qualifiers
        ):
            yield inner


def _is_private(heading: str) -> bool:
    """Return whether a bracket or a group says that a column is private."""
    group = heading.rpartition(" / ")[0]
    marks = [*_BRACKETS.findall(heading), group]
    return any(key(token) in _PRIVATE for mark in marks for token in _TOKENS.split(mark))


def _has_left_out(tokens: Sequence[str]) -> bool:
    """Return whether a word of a heading, or two of them, are such that leave a column out."""
    left_out = catalogue().left_out
    keys = [key(each) for each in tokens]
    singles = {each for each in keys if len(each) >= _LEAST_TOKEN} - _GENERIC
    pairs = {one + other for one, other in pairwise(keys) if one and other}
    return bool(left_out & (singles | pairs))


def _without_qualifiers(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the keys of a heading without units and words that add nothing, fewest words removed first."""
    qualifiers = catalogue().qualifiers
    keys = [each for each in (key(token) for token in tokens if not _UNITS.match(token)) if each]
    while keys and keys[-1].isdigit():
        keys.pop()
    yield "".join(keys)
    start = 0
    while start < len(keys) - 1 and keys[start] in qualifiers:
        start += 1
        yield "".join(keys[start:])
    end = len(keys)
    while end > 1 and keys[end - 1] in qualifiers:
        end -= 1
        yield "".join(keys[:end])
    yield "".join(each for each in keys if each not in qualifiers)
    joined = "".join(keys)
    for length in range(2, len(joined) - 1):  # compounds: Firmenwebseite, 公司电话
        if joined[:length] in qualifiers and (len(joined) - length >= _LEAST_REST or not joined.isascii()):
            yield joined[length:]


def _near(whole: str, kind: str) -> Match:
    """Return the field whose word differs from a heading by a letter or two, if none that is left out is as near."""
    from rapidfuzz import fuzz, process

    words = catalogue()
    if len(whole) < _LEAST_FUZZY or not whole.isascii():
        return _NONE
    known = [each for each in words.headings[kind] if _is_near(each, whole)]
    found = process.extractOne(whole, known, scorer=fuzz.ratio, score_cutoff=_FUZZY_SCORE)
    if found is None:
        return _NONE
    others = [each for each in words.left_out if _is_near(each, whole)]
    if process.extractOne(whole, others, scorer=fuzz.ratio, score_cutoff=found[1]):
        return _NONE
    return _found(words.headings[kind][found[0]], found[0])._replace(is_guess=True)


def _is_near(word: str, whole: str) -> bool:
    return word[:1] == whole[:1] and abs(len(word) - len(whole)) <= _FUZZY_LENGTHS and len(word) >= _LEAST_FUZZY
