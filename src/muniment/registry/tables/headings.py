"""
Recognize the headings of a table, its kind, and the fields that it can hold, the declared ones included.

The words are data (:mod:`muniment.registry.tables.words.catalogue`); a heading only proposes, and
:mod:`muniment.registry.tables.mapping` checks that the values of the column fit.
"""

import re
from collections.abc import Sequence
from typing import Final

from muniment.registry.declared.columns import fields_of, words_for
from muniment.registry.tables.words.catalogue import COMPANIES, PEOPLE, key
from muniment.registry.tables.words.matching import MAX_CHARACTERS, Match, match

__all__ = [
    "COMPANIES",
    "EXTRA",
    "FIELDS",
    "PEOPLE",
    "SKIP",
    "field_of",
    "fields_in",
    "header_row",
    "headings_of",
    "key",
    "kind_of_table",
    "meaning_of",
]

SKIP: Final = "skip"
EXTRA: Final = "extra:"
"""Before the name of an additional member."""
MAX_HEADER_ROW: Final = 30
FIELDS: Final = {
    COMPANIES: (
        *("id", "name", "symbol", "teamSize", "treasury", "status", "type", "industry", "orgKind", "themes"),
        *("description", "body", "website", "dao_website", "listedAt", "icon"),
        *("extra:founded", "extra:lei", "extra:registrationNumber"),
        *("people", "people.first", "people.last", "people.title"),
        *("socials.email", "socials.phone_number", "socials.facebook", "socials.instagram", "socials.tiktok"),
        *("socials.linkedin", "socials.youtube", "socials.twitter"),
        *(
            "address",
            "address.address_1",
            "address.address_2",
            "address.city",
            "address.state",
            "address.zip",
            "address.zip_city",
        ),
        *("address.country", "createdAt"),
    ),
    PEOPLE: ("slug", "name", "name.first", "name.last", "bio", "position.title", "position.company"),
}
"""The fields that a column can hold, by kind."""
_PERSON_SURE: Final = ("name.first", "name.last", "bio", "position.title", "position.company")
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
    declared = words_for(kind, key)
    if declared:
        plain = re.sub(r"[(\[].*?[)\]]", " ", heading)  # "Exhibits (pieces)", "Exhibits [required]"
        for text in (heading, plain, heading.rpartition(" / ")[2]):
            if field := declared.get(key(text)):
                return Match((field,))
    return match(heading, kind, nearly=nearly)


def _surely(heading: str, kind: str) -> str:
    """Return the field that a heading means, without near misses: cells of every row are asked for."""
    found = meaning_of(heading, kind, nearly=False)
    return found.fields[0] if found.fields and not found.is_guess else ""


def fields_in(kind: str) -> tuple[str, ...]:
    """Return the fields that a column of a table of *kind* can hold, the declared ones last."""
    return (*FIELDS.get(kind, ()), *fields_of(kind))


def header_row(rows: Sequence[Sequence[str]]) -> int:
    """Return the index of the row with the headings: the one with most known headings, else the first full one."""
    best, most = -1, 0
    known = [_known(row) for row in rows[:MAX_HEADER_ROW]]
    for at, row in enumerate(rows[:MAX_HEADER_ROW]):
        if known[at] > most and 3 * known[at] >= len({*row} - {""}):
            best, most = at, known[at]
    if best >= 0:
        is_of_groups = any(_groups(rows[best])) and known[best + 1 : best + 2] > [1]
        return best + 1 if is_of_groups else best
    widths = [sum(map(bool, row)) for row in rows[:MAX_HEADER_ROW]]
    return next((at for at, width in enumerate(widths) if width >= max(widths)), 0)


def _known(row: Sequence[str]) -> int:
    """Return how many headings of *row* are known: the fields that they mean, and columns that are left out."""
    cells = [cell for cell in row if cell]
    fields = max(len({_surely(cell, kind) for cell in cells} - {""}) for kind in FIELDS)
    return fields and fields + sum(match(cell, COMPANIES, nearly=False).is_left_out for cell in cells)


def _groups(row: Sequence[str]) -> set[str]:
    """Return the headings of several columns, as a merged cell makes them."""
    return {cell for at, cell in enumerate(row) if cell and cell in row[at + 1 : at + 2]}


def headings_of(rows: Sequence[Sequence[str]], at: int) -> list[str]:
    """Return the headings in row *at*, each once; a row of groups over them, which a merged cell makes, is joined."""
    row = list(rows[at])
    above = rows[at - 1] if at else []
    groups = _groups(above)
    if groups and len({cell for cell in above if cell}) > 1:
        row = [
            f"{above[n]} / {cell}" if above[n] in groups and cell and above[n] != cell else cell or above[n]
            for n, cell in enumerate(row)
        ]
    seen: dict[str, int] = {}
    found = []
    for cell in row:
        seen[cell] = seen.get(cell, 0) + 1
        found.append(cell if seen[cell] == 1 or not cell else f"{cell} ({seen[cell]})")
    return found


def kind_of_table(headings: Sequence[str], name: str, *, is_only: bool = False) -> str:
    """
    Return the kind of rows that a table has, by its headings and its name.

    Args:
        is_only: the file has no other table that could hold the companies of people.
    """
    found = [match(each, PEOPLE).fields for each in headings]
    as_people = {fields[0] for fields in found if fields}
    parts = {each for fields in found for each in fields} & {"name.first", "name.last"}
    has_parts = len(parts) == 2 and sum(bool({*fields} & parts) for fields in found) > 1
    as_companies = {field_of(each, COMPANIES).partition(":")[0] for each in headings} - {""}
    has_company = "name" in as_companies and "position.company" in as_people
    rest = as_companies - {"name", "body", "description", "id", "people", "people.first", "people.last", "people.title"}
    sure = len(as_people & {*_PERSON_SURE})
    has_bio = "bio" in as_people and "description" not in as_companies
    if is_only and has_company and not has_bio and rest - {"status", "type", "orgKind"}:
        return COMPANIES
    if has_parts and not has_company and len(rest) <= len(as_people):
        return PEOPLE
    if "name" in as_people and sure and (_PERSON_TABLES.search(name) or sure >= 2) and len(rest) <= sure:
        return PEOPLE
    if "name" in as_people and sure and _PERSON_TABLES.search(name) and not rest - _OF_PEOPLE_TOO:
        return PEOPLE
    if has_parts and len(rest) < len(as_people):
        return PEOPLE
    return COMPANIES


_OF_PEOPLE_TOO: Final = {"status", "type", "listedAt", "themes", "extra:founded", "orgKind"} | {
    each for each in FIELDS[COMPANIES] if each.startswith(("socials.", "address"))
}
"""Fields of companies that tables of people have columns for, too."""
