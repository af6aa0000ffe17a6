"""Guesses that no person has confirmed end an import by command, which names each of them and how to confirm it."""

import pytest

from muniment.kernel.problems import BadRequest
from muniment.registry.tables.catalogue import COMPANIES
from muniment.registry.tables.fields import SKIP, Column
from muniment.registry.tables.mapping import FileMapping, TableMapping


def mapping(*columns: Column, kind: str = COMPANIES, check: tuple[str, ...] = ()) -> FileMapping:
    return FileMapping([TableMapping("Members", kind, 3, list(columns), list(check))])


def test_every_guess_is_named_with_how_to_confirm_it():
    found = mapping(Column("Firm", "name"), Column("www", "website", check=True), check=("kind", "header"))
    with pytest.raises(BadRequest, match="3 guesses need to be confirmed") as refused:
        found.refuse_guesses()
    for said in ("the rows may be companies", "the headings may be in row 3", "www may be website"):
        assert said in refused.value.message
    assert "--accept-guesses" in refused.value.hint
    found.confirm_guesses()
    found.refuse_guesses()
    assert found.doubts() == []


def test_guesses_of_a_table_that_is_skipped_do_not_matter():
    mapping(Column("Firm", "name", check=True), kind=SKIP).refuse_guesses()
