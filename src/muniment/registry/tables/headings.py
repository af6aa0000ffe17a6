"""
Recognize the headings of a table, and the kind of its rows.

A heading is read as it is written, without qualifiers and units, or nearly. The words are data
(:mod:`muniment.registry.tables.catalogue`); a heading only proposes, and
:mod:`muniment.registry.tables.proposing` checks that the values of the column fit.
"""

import functools
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, catalogue, key
from muniment.registry.tables.fields import EXTRA, fields_of, words_for

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
        quality: how well the heading says it; of two columns, the better one has the field.
    """

    fields: tuple[str, ...] = ()
    is_guess: bool = False
    is_left_out: bool = False
    quality: int = 0


NEAR: Final = 0
READ: Final = 1
KNOWN: Final = 2
EXACT: Final = 3
"""A heading is nearly a known one, has a known one as its part, is a known one, or is the name of its field."""
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
def _match(heading: str, kind: str, nearly: bool) -> Match:  # noqa: FBT001 - it is a part of the cache's key
    written = key(heading)
    if written in catalogue().headings[kind]:
        return _meaning_of_known(written, heading, kind)
    whole = key(_bare(heading))
    meaning = _meaning_of_word(whole, heading, kind)
    if meaning:
        # "Company 2" gives way to "Company".
        return meaning._replace(quality=READ if whole != written else KNOWN)
    if _is_private(heading):
        return _LEFT_OUT
    meaning = _meaning_of_readings(heading, kind)
    if meaning:
        return meaning
    tokens = _tokens_of(heading)
    if _has_left_out(tokens):
        return _LEFT_OUT
    meaning = _meaning_without_qualifiers(tokens, heading, kind) or _place_that_is_named(tokens, kind)
    if meaning is None and nearly:
        meaning = _day_that_begins(tokens, kind) or _near(whole, kind)
    return meaning or _NONE


def _tokens_of(heading: str) -> list[str]:
    """Return the words of a heading, without what is in brackets."""
    return [token for token in _TOKENS.split(_BRACKETS.sub(" ", heading)) if token]


def _meaning_of_known(word: str, heading: str, kind: str) -> Match:
    """Return what a heading means that a language has as it is written; a field that has its name comes first."""
    fields = catalogue().headings[kind][word]
    fields_of_the_name = [field for field in fields if key(field.rpartition(".")[2]) == word]
    own_first = list(dict.fromkeys([*fields_of_the_name, *fields]))
    return _match_of(own_first, heading)._replace(quality=EXACT if fields_of_the_name else KNOWN)


def _meaning_of_readings(heading: str, kind: str) -> Match | None:
    """Return what the first text that a heading can be read as means; None if no language has any of them."""
    for text in _readings(heading):
        meaning = _meaning_of_word(key(text), text, kind)
        if meaning:
            return meaning._replace(quality=READ)
    return None


def _meaning_without_qualifiers(tokens: Sequence[str], heading: str, kind: str) -> Match | None:
    """Return what a heading means without the words that add nothing; None if no language has what remains."""
    for rest in _without_qualifiers(tokens):
        meaning = _meaning_of_word(rest, heading, kind)
        # Words that leave a column out were looked for among all tokens.
        if meaning and not meaning.is_left_out:
            return meaning._replace(quality=READ)
    return None


def _meaning_of_word(word: str, heading: str, kind: str) -> Match | None:
    """Return what the key of a heading, or of a part of it, means; None if no language has the word."""
    words = catalogue()
    if word in words.headings[kind]:
        return _match_of(words.headings[kind][word], heading)
    if kind == COMPANIES and word in words.unsure:
        return Match((words.unsure[word],), is_guess=True)
    is_longitude = word == "lon" and heading.isascii()  # the key of the Swedish word for pay is the same
    if word in words.left_out and not is_longitude:
        return _LEFT_OUT
    return None


def _place_that_is_named(tokens: Sequence[str], kind: str) -> Match | None:
    """
    Return the part of an address whose name a heading says it holds: "province name", "libelle_region", "省份名".

    Only for places: the name of a product or of a file is no field.
    """
    labels = catalogue().labels
    words: list[str] = []
    rest = [token for token in tokens if key(token) not in labels]
    if len(rest) < len(tokens):
        words += _without_qualifiers(rest)
    whole = key("".join(tokens))
    # Compounds end with the word: "provincienaam", "시도명".
    words += [whole.removesuffix(label) for label in labels if whole.endswith(label)]
    for word in words:
        meaning = _meaning_of_word(word, word, kind) or _NONE
        places = [field for field in meaning.fields if field.startswith("address.")]
        if places:
            return Match(tuple(places), quality=READ)
    return None


def _day_that_begins(tokens: Sequence[str], kind: str) -> Match | None:
    """
    Return the day that the first words of a heading mean, for a person to check: "Joined program", "Beitritt Verband".

    Only for days: values of no other kind look like them, so that a wrong reading is noticed.
    """
    fields_by_word = catalogue().headings[kind]
    keys = [key(token) for token in tokens]
    for length in range(len(tokens) - 1, 0, -1):
        fields = fields_by_word.get("".join(keys[:length]), ())
        if fields and fields[0] in _DAYS:
            return _match_of(fields[:1], " ".join(tokens[:length]))._replace(is_guess=True)
    return None


def _match_of(fields: Sequence[str], heading: str) -> Match:
    """Return a match; of a position that languages write alike, the heading says it best."""
    titles = [field for field in fields if field.startswith("people:")]
    if len(titles) < 2:
        return Match(tuple(fields))
    title_of_heading = f"people:{' '.join(_bare(heading).split())}"
    others = [field for field in fields if field not in titles]
    first = fields.index(titles[0])
    return Match(tuple(dict.fromkeys([*fields[:first], title_of_heading, *others[first:]])))


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
    yield _bare(plain)
    yield _bare(last)
    yield _bare(plain.split("/")[0])
    levels = [part for part in _PARTS.split(plain) if part.strip()]
    if len(levels) > 1:
        yield _bare(levels[-1])
        languages = re.split(r"[/|\n]", plain)
        if len(languages) > 1:
            for language in languages:
                if language.strip():
                    yield _bare(language)
    for inner in _BRACKETS.findall(heading):
        is_unit = _UNITS.match(inner.strip())
        word = key(inner)
        if not is_unit and len(word) >= _LEAST_TOKEN and word not in catalogue().qualifiers:
            yield inner


def is_of_figures(heading: str) -> bool:
    """Return whether a heading is that of public figures that no field has, such as money that was raised."""
    words = [key(heading), *map(key, _readings(heading)), *_without_qualifiers(_tokens_of(heading))]
    return not catalogue().figures.isdisjoint(words) and not _is_private(heading)


def _is_private(heading: str) -> bool:
    """Return whether a bracket or a group says that a column is private."""
    for mark in (*_BRACKETS.findall(heading), group_of(heading)):
        if not _PRIVATE.isdisjoint(map(key, _TOKENS.split(mark))):
            return True
    return False


def _has_left_out(tokens: Sequence[str]) -> bool:
    """Return whether a word of a heading, or two of them, are such that leave a column out."""
    left_out = catalogue().left_out
    keys = [key(token) for token in tokens]
    # The keys of signs are empty, and make no pair.
    pairs = {first + second for first, second in pairwise(keys) if first and second}
    long_words = {word for word in keys if len(word) >= _LEAST_TOKEN}
    return not left_out.isdisjoint(pairs | (long_words - _GENERIC))


def _without_qualifiers(tokens: Sequence[str]) -> Iterator[str]:
    """Yield the keys of a heading without units and words that add nothing, fewest words removed first."""
    qualifiers = catalogue().qualifiers
    keys = [key(token) for token in tokens if not _UNITS.match(token)]
    keys = [word for word in keys if word]
    while keys and keys[-1].isdigit():
        keys.pop()
    joined = "".join(keys)
    yield joined
    yield from _without_first_words(keys)
    yield from _without_last_words(keys)
    yield "".join(word for word in keys if word not in qualifiers)
    yield from _ends_of_compound(joined)


def _without_first_words(keys: Sequence[str]) -> Iterator[str]:
    """Yield what remains of a heading while it begins with words that add nothing."""
    for start in range(1, len(keys)):
        if keys[start - 1] not in catalogue().qualifiers:
            return
        yield "".join(keys[start:])


def _without_last_words(keys: Sequence[str]) -> Iterator[str]:
    """Yield what remains of a heading while it ends with words that add nothing."""
    for end in range(len(keys) - 1, 0, -1):
        if keys[end] not in catalogue().qualifiers:
            return
        yield "".join(keys[:end])


def _ends_of_compound(word: str) -> Iterator[str]:
    """Yield a word without the qualifiers that it begins with: Firmenwebseite, 公司电话."""
    qualifiers = catalogue().qualifiers
    # Two signs of Chinese are a word, two letters of an alphabet are an ending.
    least_rest = _LEAST_REST if word.isascii() else 2
    for length in range(2, len(word) - least_rest + 1):
        if word[:length] in qualifiers:
            yield word[length:]


def _near(whole: str, kind: str) -> Match:
    """Return the field whose word differs from a heading by a letter or two, if none that is left out is as near."""
    from rapidfuzz import fuzz, process

    words = catalogue()
    if len(whole) < _LEAST_FUZZY or not whole.isascii():
        return _NONE
    similar = [word for word in words.headings[kind] if _is_near(word, whole)]
    nearest = process.extractOne(whole, similar, scorer=fuzz.ratio, score_cutoff=_FUZZY_SCORE)
    if nearest is None:
        return _NONE
    word, score, _ = nearest
    similar_left_out = [word for word in words.left_out if _is_near(word, whole)]
    if process.extractOne(whole, similar_left_out, scorer=fuzz.ratio, score_cutoff=score):
        return _NONE
    return _match_of(words.headings[kind][word], word)._replace(is_guess=True)


def _is_near(word: str, whole: str) -> bool:
    return word[:1] == whole[:1] and abs(len(word) - len(whole)) <= _FUZZY_LENGTHS and len(word) >= _LEAST_FUZZY


MAX_HEADER_ROW: Final = 30
_PERSON_SURE: Final = ("name.first", "name.last", "bio", "position.title", "position.company")
_OF_BOTH: Final = frozenset(
    {"name", "body", "description", "id", "people", "people.first", "people.last", "people.title"}
)
"""Fields of companies that say nothing about the kind of a table: tables of people have such columns too."""
_PERSON_TABLES: Final = re.compile(
    r"people|person|vorst[aä]nd|board|team|contact|kontakt|staff|ansprechpartner|mitarbeit|founders|gr[uü]nder"
    r"|dirigeants|contatti|contactos|contatos|osoby|styrelse|bestyrelse|bestuur|役員|人员|人員|임원",
    re.IGNORECASE,
)


def field_of(heading: str, kind: str) -> str:
    """Return the likeliest field that a heading means in a table of *kind*; empty if none."""
    return next(iter(meaning_of(heading, kind).fields), "")


def meaning_of(heading: str, kind: str, *, nearly: bool = True) -> Match:
    """
    Return what a heading means in a table of *kind*: a declared field by its key or label, or what the words say.

    Args:
        nearly: headings that differ from a word by a letter count too.
    """
    if len(heading) > MAX_CHARACTERS:
        return Match()
    names = words_for(kind)
    if names:
        plain = re.sub(r"[(\[].*?[)\]]", " ", heading)  # "Exhibits (pieces)", "Exhibits [required]"
        for text in (heading, plain, heading.rpartition(" / ")[2]):
            name = names.get(key(text))
            if name:
                return Match((name,), quality=EXACT)
    meaning = match(heading, kind, nearly=nearly)
    return meaning._replace(fields=tuple(_declared_name(name, kind) for name in meaning.fields))


def _declared_name(name: str, kind: str) -> str:
    """Return the field of the schema that has the name of an additional member, else *name*."""
    own = name.removeprefix(EXTRA)
    return own if own in fields_of(kind) else name


def _surely(heading: str, kind: str) -> str:
    """Return the field that a heading means, without near misses: cells of every row are asked for."""
    meaning = meaning_of(heading, kind, nearly=False)
    if meaning.is_guess or not meaning.fields:
        return ""
    return meaning.fields[0]


class HeaderRow(NamedTuple):
    """The index of the row with the headings, -1 if there is none; *is_guess*: rows above it may hold values."""

    at: int
    is_guess: bool = False


def header_row(rows: Sequence[Sequence[str]]) -> HeaderRow:
    """
    Return the row with the headings: the first one that is no title and holds no values, or a better known one below.

    A row below counts only if the first one has no known heading: cells of later rows, such as "Secretary", can be
    words that headings have.
    """
    wide_rows = _rows_that_are_no_titles(rows)
    candidates = [n for n in wide_rows if _may_have_headings(rows, n)]
    if not candidates:
        return HeaderRow(-1) if wide_rows else HeaderRow(0)
    at = candidates[0]
    if not _known(rows[at]):
        at = next((n for n in candidates[1:] if _is_known_row(rows[n])), at)
    if at + 1 in candidates and _is_over_headings(rows, at):
        at += 1
    rows_above = [rows[n] for n in wide_rows if n < at]
    return HeaderRow(at, is_guess=any(map(_may_be_of_values, rows_above)))


def _rows_that_are_no_titles(rows: Sequence[Sequence[str]]) -> list[int]:
    """Return the first rows of a table that have at least half of the cells that its rows have in the median."""
    typical = sorted(_width(row) for row in rows[:_TYPICAL_ROWS] if any(row))
    least = max(1, typical[len(typical) // 2] // 2) if typical else 1
    return [n for n, row in enumerate(rows[:MAX_HEADER_ROW]) if _width(row) >= least]


def _may_have_headings(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a row has no values, and others below it unless it is the first."""
    has_rows_below = at + 1 < len(rows)
    return (at == 0 or has_rows_below) and not _holds_values(rows, at)


def _is_over_headings(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a row has groups, which merged cells make, and the row below it is that of the headings."""
    return bool(_groups(rows[at])) and _known(rows[at + 1]) > 1


def _may_be_of_values(row: Sequence[str]) -> bool:
    """Return whether a row above the headings is neither a text in one cell nor a row of groups."""
    return _width(row) > 1 and not _groups(row)


def _width(row: Sequence[str]) -> int:
    """Return how many different cells of a row have a value."""
    return len({*row} - {""})


_TYPICAL_ROWS: Final = 200
_COMPARED_ROWS: Final = 50
"""Rows below one that show whether its cells are values, as theirs are."""
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_VALUE: Final = re.compile(
    r"[^\s@]+@[^\s@]+\.\w{2,}|https?://\S+|(?:[\w-]+\.)+(?:com|org|net|de|gov|eu|io|uk|fr|at|ch)(?:/\S*)?"
    r"|[-+]?\d[\d.,/ :-]*|[0-9a-f]{8}-[0-9a-f-]{20,}",
    re.IGNORECASE,
)


def _holds_values(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a row has an address of mail or of the web, a number or a date, as the cells below it have."""
    below = [row for row in rows[at + 1 : at + 1 + _COMPARED_ROWS] if any(row)]
    for n, cell in enumerate(rows[at]):
        if not _VALUE.fullmatch(cell):
            continue
        values = [row[n] for row in below if row[n]]
        values_alike = [value for value in values if _VALUE.fullmatch(value)]
        if 2 * len(values_alike) > len(values) and not _is_year_heading(cell, values):
            return True
    return False


def _is_year_heading(cell: str, values: Sequence[str]) -> bool:
    """Return whether a cell is a year over figures, as "2023" is over amounts."""
    return bool(_YEAR.fullmatch(cell)) and not all(map(_YEAR.fullmatch, values))


def _is_known_row(row: Sequence[str]) -> bool:
    """Return whether at least two, and a third, of the cells of a row are known headings, and no positions."""
    cells = {*row} - {""}
    most_fields = 0
    for kind in (COMPANIES, PEOPLE):
        fields = {_surely(cell, kind) for cell in cells} - {""}
        # Titles that are headings are also what cells of a column of positions say.
        no_positions = [field for field in fields if not field.startswith("people:")]
        most_fields = max(most_fields, len(no_positions))
    return most_fields > 1 and 3 * most_fields >= len(cells)


def _known(row: Sequence[str]) -> int:
    """Return how many headings of *row* are known: the fields that they mean, and columns that are left out."""
    cells = [cell for cell in row if cell]
    most_fields = 0
    for kind in (COMPANIES, PEOPLE):
        fields = {_surely(cell, kind) for cell in cells} - {""}
        most_fields = max(most_fields, len(fields))
    if not most_fields:
        return 0
    return most_fields + sum(match(cell, COMPANIES, nearly=False).is_left_out for cell in cells)


def _groups(row: Sequence[str]) -> set[str]:
    """Return the headings of several columns, as a merged cell makes them."""
    return {cell for at, cell in enumerate(row) if cell and cell in row[at + 1 : at + 2]}


def are_groups(row: Sequence[str]) -> bool:
    """Return whether a row has headings of groups of columns, and is no title over all of them."""
    return bool(_groups(row)) and len({cell for cell in row if cell}) > 1


def width_of_headings(rows: Sequence[Sequence[str]], at: int) -> int:
    """Return the number of columns up to the last one that has a heading in row *at*, or in a row of groups above."""
    headings = rows[at]
    if at and are_groups(rows[at - 1]):
        headings = [heading or group for heading, group in zip(rows[at], rows[at - 1], strict=False)]
    width = 0
    for number, heading in enumerate(headings, 1):
        if heading:
            width = number
    return width


def headings_of(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """
    Return the headings in row *at*, each once; a row of groups over them, which a merged cell makes, is joined.

    Without a row of headings, *at* is -1, and columns have their numbers.
    """
    if at < 0:
        return [f"Column {n}" for n in range(1, len(rows[0]) + 1)]
    headings = list(rows[at])
    if at and are_groups(rows[at - 1]):
        headings = _below_groups(headings, rows[at - 1])
    for n, heading in enumerate(headings):
        if not heading and any(row[n] for row in rows[at + 1 :]):
            headings[n] = f"Column {n + 1}"
    return _numbered(headings)


def _below_groups(headings: Sequence[str], above: Sequence[str]) -> list[str]:
    """Return headings with the group that is over each: "Board / Name". A cell of one column is a heading above it."""
    groups = _groups(above)
    joined = []
    for heading, group in zip(headings, above, strict=True):
        if heading and group in groups and group != heading:
            joined.append(f"{group} / {heading}")
        else:
            joined.append(heading or group)
    return joined


def group_of(heading: str) -> str:
    """Return the heading of the group that a heading is under; "" if it is under none."""
    return heading.rpartition(" / ")[0]


def meanings_of(headings: Sequence[str], kind: str) -> list[Match]:
    """Return what the headings of a table mean: a group over several columns does not say what each of them is."""
    columns_of_groups = Counter(map(group_of, headings))
    meanings = []
    for heading in headings:
        meaning = meaning_of(heading, kind)
        group = group_of(heading)
        if group and columns_of_groups[group] > 1 and meaning.fields == meaning_of(group, kind).fields:
            meaning_of_part = meaning_of(heading.rpartition(" / ")[2], kind)
            if not meaning_of_part.fields:
                meaning = Match(is_left_out=meaning.is_left_out)
        meanings.append(meaning)
    return meanings


def _numbered(row: Sequence[str]) -> list[str]:
    """Return headings each once: a second "Name" is "Name (2)"; blank ones stay blank."""
    counts: Counter[str] = Counter()
    headings = []
    for heading in row:
        counts[heading] += 1
        if heading and counts[heading] > 1:
            headings.append(f"{heading} ({counts[heading]})")
        else:
            headings.append(heading)
    return headings


def kind_of_table(headings: Sequence[str], name: str, *, is_only: bool = False) -> str:
    """
    Return the kind of rows that a table has, by its headings and its name.

    Args:
        is_only: the file has no other table that could hold the companies of people.
    """
    meanings = [match(heading, PEOPLE).fields for heading in headings]
    as_people = {fields[0] for fields in meanings if fields}
    as_companies = {field_of(heading, COMPANIES).partition(":")[0] for heading in headings} - {""}
    of_companies_alone = as_companies - _OF_BOTH
    has_company = "name" in as_companies and "position.company" in as_people
    # A company with a person in each row is a table of companies, unless another table has the companies.
    if is_only and has_company and _describes_companies(as_people, as_companies):
        return COMPANIES
    if _has_both_names(meanings):
        surplus = len(as_people) - len(of_companies_alone)
        if surplus > 0 or (surplus == 0 and not has_company):
            return PEOPLE
    return PEOPLE if _is_of_people(as_people, of_companies_alone, name) else COMPANIES


def _describes_companies(as_people: set[str], as_companies: set[str]) -> bool:
    """Return whether a table has columns about companies beside their names and words, and none about the persons."""
    has_bio = "bio" in as_people and "description" not in as_companies
    return not has_bio and bool(as_companies - _OF_BOTH - _of_vocabulary())


def _is_of_people(as_people: set[str], of_companies_alone: set[str], name: str) -> bool:
    """Return whether the columns that only people have, and the name of a table, outweigh those of companies."""
    of_people_alone = len(as_people & {*_PERSON_SURE})
    if "name" not in as_people or not of_people_alone:
        return False
    is_named_for_people = bool(_PERSON_TABLES.search(name))
    if is_named_for_people and not of_companies_alone - _of_people_too():
        return True
    is_likely = is_named_for_people or of_people_alone >= 2
    return is_likely and len(of_companies_alone) <= of_people_alone


def _has_both_names(meanings: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has first names and last names, in more than one column."""
    parts_of_columns = [{"name.first", "name.last"}.intersection(fields) for fields in meanings]
    columns_of_names = [parts for parts in parts_of_columns if parts]
    # One heading can mean either of them.
    return len(columns_of_names) > 1 and len(set().union(*columns_of_names)) == 2


def _of_vocabulary() -> set[str]:
    return {name for name, field in fields_of(COMPANIES).items() if field.is_of_vocabulary}


def is_of_people_too(field: str) -> bool:
    """Return whether a field of companies says nothing against a table of people."""
    return field in _OF_BOTH or field in _of_people_too()


def _of_people_too() -> set[str]:
    """Return the fields of companies that tables of people have columns for, too."""
    fields = fields_of(COMPANIES).items()
    contact = {name for name, field in fields if field.group in {"socials", "address"}}
    return contact | _of_vocabulary() | {"listedAt", "themes"}
