"""
Recognize the headings of a table, and the kind of its rows.

The words are data (:mod:`muniment.registry.tables.words.catalogue`); a heading only proposes, and
:mod:`muniment.registry.tables.mapping` checks that the values of the column fit.
"""

import re
from collections.abc import Sequence
from typing import Final

from muniment.registry.tables.fields import EXTRA, fields_of, words_for
from muniment.registry.tables.words.catalogue import COMPANIES, PEOPLE, key
from muniment.registry.tables.words.matching import MAX_CHARACTERS, Match, match

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
                return Match((name,))
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
    fields = max(len({_surely(cell, kind) for cell in cells} - {""}) for kind in (COMPANIES, PEOPLE))
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
        for n, cell in enumerate(rows[at]):
            group = above[n]
            is_grouped = group in groups and cell and group != cell
            row[n] = f"{group} / {cell}" if is_grouped else cell or group
    seen: dict[str, int] = {}
    headings = []
    for cell in row:
        seen[cell] = seen.get(cell, 0) + 1
        headings.append(cell if seen[cell] == 1 or not cell else f"{cell} ({seen[cell]})")
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
    has_company = "name" in as_companies and "position.company" in as_people
    has_bio = "bio" in as_people and "description" not in as_companies
    has_both_names = _has_both_names(meanings)
    of_companies_alone = as_companies - _OF_BOTH
    of_people_alone = len(as_people & {*_PERSON_SURE})
    if is_only and has_company and not has_bio and of_companies_alone - _of_vocabulary():
        return COMPANIES
    if has_both_names and not has_company and len(of_companies_alone) <= len(as_people):
        return PEOPLE
    if "name" in as_people and of_people_alone:
        is_named_for_people = bool(_PERSON_TABLES.search(name))
        if (is_named_for_people or of_people_alone >= 2) and len(of_companies_alone) <= of_people_alone:
            return PEOPLE
        if is_named_for_people and not of_companies_alone - _of_people_too():
            return PEOPLE
    if has_both_names and len(of_companies_alone) < len(as_people):
        return PEOPLE
    return COMPANIES


def _has_both_names(meanings: Sequence[Sequence[str]]) -> bool:
    """Return whether a table has first names and last names, in more than one column."""
    both = {"name.first", "name.last"}
    columns = [both.intersection(fields) for fields in meanings]
    return both == set().union(*columns) and sum(map(bool, columns)) > 1


def _of_vocabulary() -> set[str]:
    return {name for name, field in fields_of(COMPANIES).items() if field.is_of_vocabulary}


def _of_people_too() -> set[str]:
    """Return the fields of companies that tables of people have columns for, too."""
    fields = fields_of(COMPANIES).items()
    contact = {name for name, field in fields if field.group in {"socials", "address"}}
    return contact | _of_vocabulary() | {"listedAt", "themes"}
