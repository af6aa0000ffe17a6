"""Tables in several languages and shapes: what is mapped at once, exact values, and that nothing is invented."""

import re
import unicodedata
from collections.abc import Iterator
from typing import Any

import pytest

from make.foreign_tables import FOREIGN_TABLES, ForeignTable
from muniment.registry.tables.catalogue import catalogue, key
from muniment.registry.tables.dates import day_of
from muniment.registry.tables.formats import Sheet, read_sheets
from muniment.registry.tables.mapping import FileMapping, read_mapping, write_mapping
from muniment.registry.tables.proposing import propose
from muniment.registry.tables.records import KnownRows, Records, records_of
from muniment.registry.tables.values import code_of_country

pytestmark = pytest.mark.django_db
each_table = pytest.mark.parametrize("table", FOREIGN_TABLES, ids=[each.name for each in FOREIGN_TABLES])


def sheets_of(table: ForeignTable) -> list[Sheet]:
    return read_sheets(table.content, table.name)


def proposed(table: ForeignTable) -> FileMapping:
    mapping = propose(sheets_of(table), table.name)
    for each in mapping.table:
        for column in each.column:
            if column.heading == "created_at":
                assert column.order == "?"  # seconds, days or nothing: only a person knows
                column.order = "UNIX"
            if column.currency == "?":
                column.currency = table.currency
    return mapping


def converted(table: ForeignTable, mapping: FileMapping) -> Records:
    return records_of(sheets_of(table), mapping, KnownRows.read(), table.currency)


def said(position: dict[str, Any]) -> str:
    title = position.get("title")
    return f"{position['person']['name']} ({title})" if title else position["person"]["name"]


@each_table
def test_columns_are_mapped_at_once_and_values_are_exact(table):
    mapping = proposed(table)
    columns = [each for one in mapping.table for each in one.column if each.heading]
    assert {each.heading: each.field for each in columns} == table.fields
    assert tuple(each.heading for each in columns if each.check) == table.guesses
    _, line = converted(table, mapping).companies[0]
    line["company"].pop("id")
    assert line["company"] == table.first
    assert tuple(said(each) for each in line.get("positions", [])) == table.people


@each_table
def test_a_mapping_survives_its_file(table):
    mapping = proposed(table)
    assert converted(table, read_mapping(write_mapping(mapping, sheets_of(table)))) == converted(table, mapping)


def leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for each in value.values():
            yield from leaves(each)
    elif isinstance(value, list):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def reduced(text: str) -> str:
    return re.sub(r"[\W_]", "", unicodedata.normalize("NFKC", text)).casefold()


def is_derivable(value: Any, cells: set[str], titles: set[str]) -> bool:
    """Return whether a stored value is a cell, a part of one, or a cell in another form."""
    text = str(value)
    plain = reduced(text.removeprefix("https://"))
    if any(plain in reduced(cell) for cell in cells) or key(text) in titles:
        return True
    digits = text.partition(".")[0]
    return (
        any(code_of_country(cell) == text for cell in cells)
        or any(catalogue().statuses.get(key(cell)) == text for cell in cells)
        or any(str(day_of(cell, order)) == text for cell in cells for order in ("DMY", "MDY", "YMD", "UNIX"))
        or all(word in " ".join(cells) for word in text.split())  # "Last, First", and names of two columns
        or any(digits.rstrip("0") == reduced(cell).rstrip("0") for cell in cells if digits.isdigit())
        or any(re.sub(r"[億万円]", "", unicodedata.normalize("NFKC", cell)).rstrip("0") in digits for cell in cells)
    )


@each_table
def test_no_value_is_invented(table):
    cells = {cell for sheet in sheets_of(table) for row in sheet.rows for cell in row if cell}
    titles = catalogue().titles
    found = converted(table, proposed(table))
    for _, line in (*found.companies, *found.people):
        company = {name: value for name, value in line.get("company", line).items() if name not in {"id", "slug"}}
        people = [[each.get("title", ""), each["person"]["name"]] for each in line.get("positions", [])]
        for value in leaves([company, people]):
            assert value in {"", table.currency} or is_derivable(value, cells, titles), value


@each_table
def test_every_row_and_column_is_imported_or_reported(table):
    found = converted(table, proposed(table))
    lost = {loss.column for loss in found.losses}
    tables = {loss.table for loss in found.losses if not loss.column}
    for sheet, one in zip(sheets_of(table), proposed(table).table, strict=True):
        for n, column in enumerate(one.column):
            has_values = any(row[n] for row in sheet.rows[one.header :])
            assert column.field or not has_values or column.heading in lost or sheet.name in tables


def test_what_is_not_meant_for_the_public_is_left_out():
    headings = (
        "IBAN,Geburtstag,Bemerkungen,Handy privat,Telefon (privat),N° adhérent,DNI,Codice fiscale,PESEL,手机,会費,메모"
    )
    sheet = Sheet("t", [["Name", *headings.split(",")], ["Alder", *["+49 30 123456"] * 12], ["Birch", *["x"] * 12]])
    [table] = propose([sheet], "t.csv").table
    assert {each.heading: each.field for each in table.column if each.field} == {"Name": "name"}


@pytest.mark.parametrize(
    ("heading", "values", "field"),
    [
        ("Estado", ["activo", "baja"], "status"),
        ("Estado", ["São Paulo", "Bahia"], "address.state"),
        ("Land", ["Hessen", "Bayern"], "address.state"),
        ("Kraj", ["Polska", "Czechy"], "address.country"),
        ("Kraj", ["Plzeňský", "Zlínský"], "address.state"),
        ("Actif", ["1 200 €", "3 €"], "treasury"),
        ("Activo", ["sí", "no"], "status"),
        ("Sede", ["Via Su 1, Roma", "Via Giù 2, Bari"], "address"),
        ("Sede", ["Roma", "Bari"], "address.city"),
        ("Ort", ["50667 Köln", "8010 Graz"], "address.zip_city"),
        ("Website", ["yes", "no"], ""),
        ("Mitarbeiter", ["Ida Alder", "Joe Birch"], ""),
        ("Web site", ["alder.example", "birch.example"], "website"),
    ],
)
def test_values_decide_what_an_ambiguous_heading_means(heading, values, field):
    sheet = Sheet("t", [["Company", heading], *([f"Company {n}", value] for n, value in enumerate(values))])
    [table] = propose([sheet], "t.csv").table
    assert table.column[1].field == field


def test_a_misspelled_heading_is_a_guess():
    sheet = Sheet("t", [["Organistion", "Webiste"], ["Alder", "alder.example"]])
    [table] = propose([sheet], "t.csv").table
    assert [(each.field, each.check) for each in table.column] == [("name", True), ("website", True)]
