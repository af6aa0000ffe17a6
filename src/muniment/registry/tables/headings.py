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
def _match(heading: str, kind: str, nearly: bool) -> Match:  # noqa: FBT001, PLR0911 - one for each reading, in order
    known = catalogue().headings[kind]
    whole = key(_bare(heading))
    written = key(heading)
    if written in known:
        own = [field for field in known[written] if key(field.rpartition(".")[2]) == written]
        fields = [*dict.fromkeys([*own, *known[written]])]
        return _found(fields, heading)._replace(quality=EXACT if own else KNOWN)
    meaning = _meaning_of_word(whole, heading, kind)
    if meaning:
        return meaning._replace(quality=READ if whole != written else KNOWN)  # "Company 2" gives way to "Company"
    if _is_private(heading):
        return _LEFT_OUT
    for text in _readings(heading):
        meaning = _meaning_of_word(key(text), text, kind)
        if meaning:
            return meaning._replace(quality=READ)
    tokens = list(filter(None, _TOKENS.split(_BRACKETS.sub(" ", heading))))
    if _has_left_out(tokens):
        return _LEFT_OUT
    for rest in _without_qualifiers(tokens):
        meaning = _meaning_of_word(rest, heading, kind)
        # Words that leave a column out were looked for among all tokens.
        if meaning and not meaning.is_left_out:
            return meaning._replace(quality=READ)
    place = _place_that_is_named(tokens, kind)
    if not nearly:
        return place or _NONE
    return place or _day_that_begins(tokens, kind) or _near(whole, kind)


def _meaning_of_word(word: str, heading: str, kind: str) -> Match | None:
    """Return what the key of a heading, or of a part of it, means; None if no language has the word."""
    words = catalogue()
    if word in words.headings[kind]:
        return _found(words.headings[kind][word], heading)
    if kind == COMPANIES and word in words.unsure:
        return Match((words.unsure[word],), is_guess=True)
    is_longitude = word == "lon" and heading.isascii()  # the key of the Swedish word for pay is the same
    return _LEFT_OUT if word in words.left_out and not is_longitude else None


def _place_that_is_named(tokens: Sequence[str], kind: str) -> Match | None:
    """
    Return the part of an address whose name a heading says it holds: "province name", "libelle_region", "省份名".

    Only for places: the name of a product or of a file is no field.
    """
    labels = catalogue().labels
    rest = [token for token in tokens if key(token) not in labels]
    words = [*_without_qualifiers(rest)] if len(rest) < len(tokens) else []
    whole = key("".join(tokens))
    # Compounds end with the word: "provincienaam", "시도명".
    words += [whole.removesuffix(label) for label in labels if whole.endswith(label)]
    for word in filter(None, words):
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
        others = [field for field in fields if field not in titles]
        first = next(place for place, field in enumerate(fields) if field in titles)
        fields = [*dict.fromkeys([*fields[:first], own, *others[first:]])]
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
    levels = [part for part in _PARTS.split(plain) if part.strip()]
    if len(levels) > 1:
        yield _bare(levels[-1])
        languages = re.split(r"[/|\n]", plain)
        if len(languages) > 1:
            yield from (_bare(language) for language in languages if language.strip())
    for inner in _BRACKETS.findall(heading):
        is_unit = _UNITS.match(inner.strip())
        word = key(inner)
        if not is_unit and len(word) >= _LEAST_TOKEN and word not in catalogue().qualifiers:
            yield inner


def is_of_figures(heading: str) -> bool:
    """Return whether a heading is that of public figures that no field has, such as money that was raised."""
    tokens = [token for token in _TOKENS.split(_BRACKETS.sub(" ", heading)) if token]
    words = [key(heading), *map(key, _readings(heading)), *_without_qualifiers(tokens)]
    return not catalogue().figures.isdisjoint(words) and not _is_private(heading)


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
    keys = [key(token) for token in tokens if not _UNITS.match(token)]
    keys = list(filter(None, keys))
    while keys and keys[-1].isdigit():
        keys.pop()
    joined = "".join(keys)
    yield joined
    for start in range(1, len(keys)):
        if keys[start - 1] not in qualifiers:
            break
        yield "".join(keys[start:])
    for end in range(len(keys) - 1, 0, -1):
        if keys[end] not in qualifiers:
            break
        yield "".join(keys[:end])
    yield "".join(word for word in keys if word not in qualifiers)
    yield from _ends_of_compound(joined)


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
    found = match(heading, kind, nearly=nearly)
    return found._replace(fields=tuple(_declared_name(name, kind) for name in found.fields))


def _declared_name(name: str, kind: str) -> str:
    """Return the field of the schema that has the name of an additional member, else *name*."""
    own = name.removeprefix(EXTRA)
    return own if own in fields_of(kind) else name


def _surely(heading: str, kind: str) -> str:
    """Return the field that a heading means, without near misses: cells of every row are asked for."""
    found = meaning_of(heading, kind, nearly=False)
    return found.fields[0] if found.fields and not found.is_guess else ""


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
    widths = [_width(row) for row in rows[:MAX_HEADER_ROW]]
    typical = sorted(_width(row) for row in rows[:_TYPICAL_ROWS] if any(row))
    # A title has fewer cells than half of those that rows have in the median.
    least = max(1, typical[len(typical) // 2] // 2) if typical else 1
    wide = [n for n, width in enumerate(widths) if width >= least]
    has_rows_below = [n for n in wide if n + 1 < len(rows) or not n]
    candidates = [n for n in has_rows_below if not _holds_values(rows, n)]
    if not candidates:
        return HeaderRow(-1) if wide else HeaderRow(0)
    at = candidates[0]
    if not _known(rows[at]):
        at = next((n for n in candidates[1:] if _is_known_row(rows[n])), at)
    # A row of groups, which a merged cell makes, is over the headings.
    if any(_groups(rows[at])) and at + 1 in candidates and _known(rows[at + 1]) > 1:
        at += 1
    rows_above = [rows[n] for n in wide if n < at]
    may_be_values = [row for row in rows_above if _width(row) > 1 and not any(_groups(row))]
    return HeaderRow(at, is_guess=bool(may_be_values))


def _width(row: Sequence[str]) -> int:
    """Return how many different cells of a row have a value."""
    return len({*row} - {""})


_TYPICAL_ROWS: Final = 200
_YEAR: Final = re.compile(r"(?:19|20)\d\d")
_VALUE: Final = re.compile(
    r"[^\s@]+@[^\s@]+\.\w{2,}|https?://\S+|(?:[\w-]+\.)+(?:com|org|net|de|gov|eu|io|uk|fr|at|ch)(?:/\S*)?"
    r"|[-+]?\d[\d.,/ :-]*|[0-9a-f]{8}-[0-9a-f-]{20,}",
    re.IGNORECASE,
)


def _holds_values(rows: Sequence[Sequence[str]], at: int) -> bool:
    """Return whether a row has an address of mail or of the web, a number or a date, as the cells below it have."""
    below = [row for row in rows[at + 1 : at + 51] if any(row)]
    for n, cell in enumerate(rows[at]):
        if not (cell and _VALUE.fullmatch(cell)):
            continue
        values = [row[n] for row in below if row[n]]
        alike = sum(bool(_VALUE.fullmatch(value)) for value in values)
        if values and 2 * alike > len(values) and not _is_year_heading(cell, values):
            return True
    return False


def _is_year_heading(cell: str, values: Sequence[str]) -> bool:
    """Return whether a cell is a year over figures, as "2023" is over amounts."""
    return bool(_YEAR.fullmatch(cell)) and not all(map(_YEAR.fullmatch, values))


def _is_known_row(row: Sequence[str]) -> bool:
    """Return whether at least two, and a third, of the cells of a row are known headings, and no positions."""
    cells = {*row} - {""}
    fields = [{_surely(cell, kind) for cell in cells} - {""} for kind in (COMPANIES, PEOPLE)]
    known = max(sum(not field.startswith("people:") for field in of_kind) for of_kind in fields)
    return known > 1 and 3 * known >= len(cells)


def _known(row: Sequence[str]) -> int:
    """Return how many headings of *row* are known: the fields that they mean, and columns that are left out."""
    cells = [cell for cell in row if cell]
    fields = max(len({_surely(cell, kind) for cell in cells} - {""}) for kind in (COMPANIES, PEOPLE))
    return fields and fields + sum(match(cell, COMPANIES, nearly=False).is_left_out for cell in cells)


def _groups(row: Sequence[str]) -> set[str]:
    """Return the headings of several columns, as a merged cell makes them."""
    return {cell for at, cell in enumerate(row) if cell and cell in row[at + 1 : at + 2]}


def are_groups(row: Sequence[str]) -> bool:
    """Return whether a row has headings of groups of columns, and is no title over all of them."""
    return bool(_groups(row)) and len({cell for cell in row if cell}) > 1


def width_of_headings(rows: Sequence[Sequence[str]], at: int) -> int:
    """Return the number of columns up to the last one that has a heading in row *at*, or in a row of groups above."""
    headings = list(rows[at])
    if at and are_groups(rows[at - 1]):
        headings = [heading or group for heading, group in zip(headings, rows[at - 1], strict=False)]
    return max((n + 1 for n, heading in enumerate(headings) if heading), default=0)


def headings_of(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """
    Return the headings in row *at*, each once; a row of groups over them, which a merged cell makes, is joined.

    Without a row of headings, *at* is -1, and columns have their numbers.
    """
    if at < 0:
        return [f"Column {n}" for n in range(1, len(rows[0]) + 1)]
    row = list(rows[at])
    above = rows[at - 1] if at else []
    groups = _groups(above)
    if are_groups(above):
        for n, cell in enumerate(rows[at]):
            group = above[n]
            is_grouped = group in groups and cell and group != cell
            row[n] = f"{group} / {cell}" if is_grouped else cell or group
    for n, heading in enumerate(row):
        if not heading and any(below[n] for below in rows[at + 1 :]):
            row[n] = f"Column {n + 1}"
    return _numbered(row)


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
            part = meaning_of(heading.rpartition(" / ")[2], kind)
            meaning = meaning if part.fields else Match(is_left_out=meaning.is_left_out)
        meanings.append(meaning)
    return meanings


def _numbered(row: Sequence[str]) -> list[str]:
    """Return headings each once: a second "Name" is "Name (2)"; blank ones stay blank."""
    counts: Counter[str] = Counter()
    headings = []
    for heading in row:
        counts[heading] += 1
        is_again = bool(heading) and counts[heading] > 1
        headings.append(f"{heading} ({counts[heading]})" if is_again else heading)
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
    has_bio = "bio" in as_people and "description" not in as_companies
    # A company with a person in each row is a table of companies, unless another table has the companies.
    names_companies = is_only and has_company and not has_bio
    if names_companies and of_companies_alone - _of_vocabulary():
        return COMPANIES
    if _has_both_names(meanings):
        surplus = len(as_people) - len(of_companies_alone)
        if surplus > 0 or (surplus == 0 and not has_company):
            return PEOPLE
    is_of_people = "name" in as_people and _is_of_people(as_people, of_companies_alone, name)
    return PEOPLE if is_of_people else COMPANIES


def _is_of_people(as_people: set[str], of_companies_alone: set[str], name: str) -> bool:
    """Return whether the columns that only people have, and the name of a table, outweigh those of companies."""
    of_people_alone = len(as_people & {*_PERSON_SURE})
    if not of_people_alone:
        return False
    is_named_for_people = bool(_PERSON_TABLES.search(name))
    if is_named_for_people and not of_companies_alone - _of_people_too():
        return True
    is_likely = is_named_for_people or of_people_alone >= 2
    return is_likely and len(of_companies_alone) <= of_people_alone


def _has_both_names(meanings: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has first names and last names, in more than one column."""
    both = {"name.first", "name.last"}
    columns = [both.intersection(fields) for fields in meanings]
    return both == set().union(*columns) and sum(map(bool, columns)) > 1


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
