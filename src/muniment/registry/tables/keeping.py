"""
Columns without a field: the declared field that is proposed for each, by its values, and what declares it.

So nothing of a table is lost for want of a field: "Keep all" declares one for each such column.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from itertools import chain, count
from typing import Final

from django.conf import settings

from muniment import declared_fields
from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.declared.editing import apply_fields
from muniment.registry.settings.versions import follow, latest_version
from muniment.registry.tables.amounts import currency_in_heading, plain_number, unit_of_numbers
from muniment.registry.tables.catalogue import COMPANIES, PEOPLE, key
from muniment.registry.tables.dates import ORDERS, day_of, is_year
from muniment.registry.tables.fields import EXTRA, SKIP, Column, fields_of
from muniment.registry.tables.formats import Sheet
from muniment.registry.tables.headings import headings_of, match
from muniment.registry.tables.mapping import FileMapping, TableMapping
from muniment.registry.tables.values import is_link, is_mangled, is_yes_or_no, separator_of
from muniment.registry_toml.reading import InvalidSettings
from muniment.schema.declared.declarations import MAX_ENTRY, MAX_FIELDS, Declaration, parameters_of
from muniment.schema.declared.faults import FieldsError

_MOST: Final = 0.95
"""The share of values that have the kind of their column; the others are reported when they are imported."""
_MAX_CHOICES: Final = 20
_LEAST_USES: Final = 5
"""How often each word of a column is used, on average, if it is one of a few choices and no text."""
_LEAST_LISTS: Final = 0.2
"""The share of cells with several values, if a column holds lists."""
_MAX_KEY: Final = 40
_MAX_TEXT: Final = 2_000


def propose_kind(column: Column, values: Sequence[str]) -> None:
    """Let a column without a field have the kind of a field that could be declared for it; none if it has no value."""
    values = [value for value in values if not is_mangled(value)]
    if not values:
        return
    unit = unit_of_numbers(column.heading, values)
    column.kind = "number" if unit else _kind_of(column.heading, values)
    unit_of_heading, _ = currency_in_heading(column.heading)
    column.currency = "" if unit_of_heading else unit  # which the label then names already
    if column.kind == "choice":
        words = {" ".join(value.split()) for value in values}
        column.choices = sorted(words, key=str.casefold)


def _kind_of(heading: str, values: Sequence[str]) -> str:
    """Return the kind that nearly all values of a column have."""
    if _are_mostly(values, is_yes_or_no) and not any(map(_is_number_alone, values)):
        return "yesno"
    if _are_mostly(values, _is_number):
        return "text" if _are_identifiers(heading, values) else "number"
    if _are_mostly(values, _is_day):
        return "date"
    if _are_mostly(values, is_link):
        return "link"
    # An address is one value, though its parts repeat from cell to cell as those of lists do.
    if not _means_address(heading) and _are_lists(values):
        return "list"
    return "choice" if _are_choices(values) else "text"


def _is_number_alone(text: str) -> bool:
    """Return whether a text is a number and no yes or no: shares of 1 and 0.5 are numbers, though most are 1."""
    return _is_number(text) and not is_yes_or_no(text)


def _are_identifiers(heading: str, values: Sequence[str]) -> bool:
    """Return whether whole numbers are identifiers or years, which are never written as "1,923" and never counted."""
    are_whole = _are_mostly(values, str.isdecimal)
    return are_whole and (_means_identifiers(heading) or _are_mostly(values, is_year))


def _means_identifiers(heading: str) -> bool:
    begins_so = re.match(r"(?:id|code|cod|código|codice|kod|kód)(?=[A-Z_\s.-])", heading)
    return bool(begins_so or _OF_IDENTIFIERS.search(key(heading)))


_OF_IDENTIFIERS: Final = re.compile(
    r"(?:year|jahr|annee|anno|id|ids|code|codes|key|nr|no|num|number|nummer|numero|zip|plz|codigo|codice|siret|siren|cnpj|番号|番號|번호)$"
)


def _means_address(heading: str) -> bool:
    """Return whether a heading means an address, also in a table of people, who have none."""
    return any(field.partition(".")[0] == "address" for field in match(heading, COMPANIES).fields)


def _are_mostly(values: Sequence[str], is_one: Callable[[str], bool]) -> bool:
    return sum(map(is_one, values)) >= _MOST * len(values)


def _is_day(text: str) -> bool:
    return any(day_of(text, order) for order in ORDERS)


def _is_number(text: str) -> bool:
    """Return whether a text is a number, and no code such as "007" or a postal code."""
    is_code = bool(re.match(r"0\d", text.strip()))
    return not is_code and any(plain_number(text, decimal) for decimal in (".", ","))


def _are_choices(values: Sequence[str]) -> bool:
    """Return whether values are a few short words, each used often and always written in the same way."""
    words = {key(value) for value in values}
    is_short = max(map(len, values)) <= MAX_ENTRY
    is_few = 1 < len(words) <= _MAX_CHOICES and len(values) >= _LEAST_USES * len(words)
    return is_short and is_few and len({*values}) == len(words)


def _are_lists(values: Sequence[str]) -> bool:
    """Return whether many cells have several short texts."""
    separator = separator_of(values)
    if not separator:
        return False
    between = re.compile(f"[\n{re.escape(separator)}]")
    cells = [[entry.strip() for entry in between.split(value)] for value in values]
    with_several = [cell for cell in cells if len(cell) > 1]
    if len(with_several) < _LEAST_LISTS * len(values):
        return False
    entries = list(chain.from_iterable(cells))
    if max(map(len, entries)) > MAX_ENTRY:
        return False
    if separator not in {",", "，"}:
        return True
    # Sentences have commas too; the entries of lists are in several cells each.
    return 2 * len({*entries}) <= len(entries) and _have_no_places(cells)


def _have_no_places(cells: Sequence[Sequence[str]]) -> bool:
    """
    Return whether entries are first in some cells and later in others.

    The parts of one value have their places: "Portland, Oregon", "Danish, 1923 - 2013", and the decimals of "23,7 %".
    """
    first: set[str] = set()
    later: set[str] = set()
    for cell in cells:
        if len(cell) > 1:
            first.add(cell[0])
            later.update(cell[1:])
    return len(first & later) * 5 >= min(len(first), len(later))


def keep_all(mapping: FileMapping, sheets: Iterable[Sheet] = ()) -> int:
    """
    Let each column without a field, for which one is proposed, become a field to declare; return how many do.

    Args:
        sheets: of the file, if the columns of the mapping may have another order.
    """
    rows = {sheet.name: sheet.rows for sheet in sheets}
    kept = 0
    for table in mapping.table:
        if table.kind == SKIP:
            continue
        headings = headings_of(rows[table.name], table.header - 1) if table.name in rows else ()
        for place, name in names_to_keep(table, headings).items():
            column = table.column[place]
            if column.kind and not column.field:
                column.field = f"{EXTRA}{name}"
                kept += 1
    return kept


def names_to_keep(table: TableMapping, headings: Sequence[str] = ()) -> dict[int, str]:
    """
    Return the key under which each column could be kept as a field of its own, by its place in the mapping.

    Each is free: no other field has it, or a parameter that filters by one.

    Args:
        headings: of the file, by which columns are numbered; by default those of the mapping, in their order.
    """
    headings = headings or [column.heading for column in table.column]
    numbers = {heading: number for number, heading in enumerate(headings, 1)}
    of = _rows_of(table)
    used_names = _names_of_fields(table, of)
    keys: dict[int, str] = {}
    for place, column in enumerate(table.column):
        if column.field.startswith(EXTRA):
            continue
        kind = column.kind or "text"
        key_of_heading = key_of(column.heading, numbers.get(column.heading, place + 1))
        name = next(name for name in _names_like(key_of_heading) if _is_free(name, of, kind, used_names))
        used_names |= _names_of(name, of, kind)
        keys[place] = name
    return keys


def _is_free(name: str, of: str, kind: str, used_names: set[str]) -> bool:
    """Return whether a field of *kind* could have a key beside those that have the names."""
    if not used_names.isdisjoint(_names_of(name, of, kind)):
        return False
    # A field of this key that the other rows have must be of the same kind; the choices of two may differ.
    for declared in settings.DECLARED_FIELDS:
        if declared.of != of and declared.key == name and (declared.kind != kind or kind == "choice"):
            return False
    return _is_valid(name, of, kind)


def _rows_of(table: TableMapping) -> str:
    return "person" if table.kind == PEOPLE else "company"


def _names_of_fields(table: TableMapping, of: str) -> set[str]:
    """Return the names that the fields of a table and of the registry have, and the parameters that filter by them."""
    names = {name.removeprefix(EXTRA).casefold() for name in fields_of(table.kind)}
    for declared in settings.DECLARED_FIELDS:
        if declared.of == of:
            names |= _names_of(declared.key, of, declared.kind)
    for column in table.column:
        if column.field.startswith(EXTRA):
            names |= _names_of(column.field.removeprefix(EXTRA), of, column.kind or "text")
    return names


def _names_like(key_of_heading: str) -> Iterator[str]:
    yield key_of_heading
    stem = key_of_heading[: _MAX_KEY - 4]
    if stem[-1].isdigit():
        stem += "x"  # the second "field2019" is "field2019x2"
    for number in count(2):
        yield f"{stem}{number}"


@lru_cache(maxsize=4_096)
def _names_of(name: str, of: str, kind: str) -> frozenset[str]:
    """Return the names that a field and its parameters would have, in small letters: "price", "pricemin"."""
    declared = Declaration(of, name, name, kind, choices=(name,))
    return frozenset(map(str.casefold, (name, *parameters_of(declared))))


@lru_cache(maxsize=4_096)
def _is_valid(name: str, of: str, kind: str) -> bool:
    """Return whether a field could have a key, beside those of the schema."""
    table: JSONObject = {"of": of, "key": name, "label": name, "kind": kind}
    if kind == "choice":
        table["choices"] = [name]
    try:
        declared_fields.read([table])
    except FieldsError:
        return False
    return True


def key_of(heading: str, number: int = 0) -> str:
    """
    Return the key of a field, made of the first words of a heading.

    Args:
        number: of the column, which names a field whose heading has no Latin letter or digit.
    """
    words = [key(word) for word in re.split(r"[\s_/.\-:,;()]+", heading)]
    words = [word for word in words if word.isascii() and word]
    if not words and number:
        return f"column{number}"
    name = ""
    for word in words:
        longer = name + word.capitalize() if name else word
        if len(longer) > _MAX_KEY:
            break
        name = longer
    if re.fullmatch(r"[a-z][A-Za-z0-9]+", name):
        return name
    return f"field{name.capitalize()}"[:_MAX_KEY]


def declaration_of(column: Column, of: str) -> JSONObject:
    """Return the declaration of a column's field, as ``registry.toml`` has it."""
    key_of_field = column.field.removeprefix(EXTRA)
    declared: JSONObject = {"of": of, "key": key_of_field, "label": column.label, "kind": column.kind}
    if column.kind == "choice":
        declared["choices"] = column.choices
    if column.kind == "text":
        declared["max"] = _MAX_TEXT
    return declared


def declare_kept(actor: Actor, mapping: FileMapping, name: str) -> list[str]:
    """
    Declare the fields of the columns that are kept, unless they are declared; return their keys.

    A registry has at most 50 declared fields of each kind of rows: the values of further columns are kept as additional
    members, which pages show and lists do not filter.

    Args:
        name: of the file, for the note of the version.

    Raises:
        Forbidden: the actor is not an operator.
        BadRequest: the fields cannot be declared: stored values do not fit one, or its key is taken.
    """
    latest = latest_version()
    fields = list(latest.settings.fields)
    new_keys: list[str] = []
    for declaration in _declarations_of(mapping):
        own_fields = [field for field in fields if field.get("of", "company") == declaration["of"]]
        is_declared = any(field.get("key") == declaration["key"] for field in own_fields)
        if not is_declared and len(own_fields) < MAX_FIELDS:
            fields.append(declaration)
            new_keys.append(declaration["key"])
    if new_keys:
        try:
            apply_fields(actor, fields, note=str(Phrase("Fields of {name}", name=name)), expected_number=latest.number)
        except InvalidSettings as error:
            raise BadRequest(
                Phrase("The new fields cannot be declared. {faults}", faults=Joined(" ", error.faults.values())),
                'Give the column another key, for example field = "extra:price2", or leave it out.',
            ) from None
        follow()
    return new_keys


def _declarations_of(mapping: FileMapping) -> Iterator[JSONObject]:
    """Yield the declarations of the columns that are kept as fields."""
    for table in mapping.table:
        if table.kind == SKIP:
            continue
        for column in table.column:
            if column.kind and column.field.startswith(EXTRA):
                yield declaration_of(column, _rows_of(table))
