"""Guesses that no person has confirmed: a column is left out, and a guessed name ends the import."""

import pytest

from muniment.kernel.problems import BadRequest
from muniment.registry.tables.catalogue import COMPANIES
from muniment.registry.tables.fields import SKIP, Column
from muniment.registry.tables.mapping import FileMapping, TableMapping


def mapping(*columns: Column, kind: str = COMPANIES) -> FileMapping:
    return FileMapping([TableMapping("Members", kind, 1, list(columns))])


def test_guessed_columns_are_left_out():
    found = mapping(Column("Firm", "name"), Column("www", "website", check=True))
    found.leave_guesses_out()
    assert [(each.field, each.check) for each in found.table[0].column] == [("name", False), ("", False)]


def test_a_guessed_name_is_refused_with_how_to_confirm_it():
    found = mapping(Column("Firm", "name", check=True))
    with pytest.raises(BadRequest, match='Members: no heading means the name; it may be the column "Firm"') as refused:
        found.leave_guesses_out()
    assert "--accept-guesses" in refused.value.hint


def test_guesses_of_a_table_that_is_skipped_do_not_matter():
    found = mapping(Column("Firm", "name", check=True), kind=SKIP)
    found.leave_guesses_out()
    assert found.table[0].column[0].field == "name"
