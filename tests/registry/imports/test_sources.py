"""The second import of a source: rows are found by their keys, gone ones are named and unlisted, and undo is exact."""

from pathlib import Path
from typing import Any

import pytest

from make.registry import document, keys, owner
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner, update_company
from muniment.registry.exchange.importer import ImportOptions
from muniment.registry.imports import sources
from muniment.registry.imports.sources import SourceOptions, list_sources, memory_of, source_named
from muniment.registry.imports.undoing import list_imports, undo_import
from muniment.registry.models import Company, HistoryEntry, ImportedRows, Person
from muniment.registry.tables.operations import TableImport, import_table, prepare

pytestmark = pytest.mark.django_db

FIRST = "Company,Website,Country\nAlder,alder.example,NO\nBirch,birch.example,DE\nCedar,cedar.example,FR\n"
SECOND = "Company,Website,Country\nAlder,alder.example,NO\nBirch,birch.example,DE\nDogwood,dogwood.example,IT\n"
PEOPLE = "Name,Biography,Profile\nIda Alder,Grows trees.,https://a.example\nJoe Birch,Cuts trees.,https://b.example\n"


def bring(folder: Path, text: str, name: str = "members.csv", draft: bool = False, **more: Any) -> TableImport:
    (folder / name).write_text(text, "utf-8")
    prepared = prepare(folder / name)
    prepared.mapping.confirm_guesses()
    again = SourceOptions(more.pop("source", source_named(name)), limit=more.pop("limit", 10), **more)
    return import_table(prepared, ImportOptions(draft=draft), again)


def gone(found: TableImport) -> list[str]:
    return [row.slug for row in found.gone.rows]


def state() -> dict[str, Any]:
    """Return everything that is public, without the times that every change renews."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key != "updatedAt"}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return {(kind, key): plain(document(kind, key)) for kind in ("company", "person") for key in keys(kind)}


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("members.csv", "members"),
        ("Members (2).XLSX", "members"),
        ("members-2026-11-28.csv", "members"),
        ("2026-11 members.csv", "members"),
        ("members_28.11.2026_v2.csv", "members"),
        ("Mitglieder - Kopie.ods", "mitglieder"),
        ("2026.csv", "2026"),
        ("2026-11-28.csv", "2026-11-28"),
        ("berlin.csv", "berlin"),
        ("https://data.example/a/members.csv?day=3", "https://data.example/a/members"),
        ("https://other.example/a/members.csv", "https://other.example/a/members"),
    ],
)
def test_a_later_download_of_a_file_is_the_same_source(name, source):
    assert source_named(name) == source


def test_rows_that_are_gone_are_named_and_stay_until_a_person_chooses(tmp_path):
    bring(tmp_path, FIRST)
    second = bring(tmp_path, SECOND, "members (1).csv")
    assert gone(second) == ["cedar"]
    assert (second.summary.unlisted, document("company", "cedar") is not None) == (0, True)
    assert [(row.name, row.result) for row in second.results] == [
        ("Alder", "unchanged"),
        ("Birch", "unchanged"),
        ("Dogwood", "new"),
    ]
    assert gone(bring(tmp_path, SECOND)) == ["cedar"]


def test_what_is_gone_is_unlisted_and_an_undo_restores_it_exactly(tmp_path):
    bring(tmp_path, FIRST)
    add_owner(COMMAND, "cedar", owner("keeper@example.org").account_id)
    before = state()
    text = SECOND.replace("birch.example,DE", "birch.example,AT")
    second = bring(tmp_path, text, unlists=True)
    after = state()
    assert document("company", "cedar") is None
    assert str(second.summary) == "companies: 1 new, 1 changed, 1 unchanged; no invalid rows; 1 unlisted"
    assert list_imports()[0].result == str(second.summary)
    changed = next(row for row in second.results if row.result == "changed")
    countries = [values["address"][0]["country"] for values in (changed.entry.before, changed.entry.after)]
    assert (changed.slug, countries) == ("birch", ["DE", "AT"])
    undone = undo_import(COMMAND, second.summary.import_run)
    assert (undone.restored, undone.unpublished, undone.kept) == (2, 1, [])
    assert state() == before
    assert Company.objects.get(slug="cedar").reviewer_note == ""
    redone = undo_import(COMMAND, undone.key)
    assert (redone.restored, redone.kept) == (3, [])
    assert state() == after


def test_the_memory_is_that_of_the_last_import_that_is_not_undone(tmp_path):
    first = bring(tmp_path, FIRST).summary.import_run
    second = bring(tmp_path, SECOND, unlists=True).summary.import_run
    assert memory_of("members").run == second
    undo_import(COMMAND, second)
    assert memory_of("members").run == first
    assert gone(bring(tmp_path, SECOND)) == ["cedar"]
    assert [source for source, _ in list_sources()] == ["members"]


def test_what_was_unlisted_is_not_named_again_and_its_row_says_so_when_it_returns(tmp_path):
    bring(tmp_path, FIRST)
    bring(tmp_path, SECOND, unlists=True)
    assert gone(bring(tmp_path, SECOND)) == []
    returned = bring(tmp_path, FIRST)
    assert gone(returned) == ["dogwood"]
    assert "'cedar' is unlisted and stays so; --relist publishes it" in [str(each.reason) for each in returned.losses]


def test_other_sources_are_compared_only_with_a_full_list(tmp_path):
    bring(tmp_path, FIRST)
    other = "Company,Website\nElm,elm.example\n"
    assert gone(bring(tmp_path, other, "others.csv")) == []
    assert gone(bring(tmp_path, other, "others.csv", is_complete=True)) == ["alder", "birch", "cedar"]
    assert gone(bring(tmp_path, other, "renamed.csv", source="members")) == ["alder", "birch", "cedar"]
    assert document("company", "cedar") is not None


def test_a_kind_without_rows_is_not_compared(tmp_path):
    bring(tmp_path, FIRST)
    people = bring(tmp_path, PEOPLE, "people.csv", is_complete=True)
    assert gone(people) == []
    fewer = bring(tmp_path, PEOPLE.rpartition("Joe")[0], "people.csv", unlists=True)
    assert gone(fewer) == ["joe-birch"]
    assert (document("person", "joe-birch"), len(keys("company"))) == (None, 3)
    undo_import(COMMAND, fewer.summary.import_run)
    assert document("person", "joe-birch")["name"] == "Joe Birch"
    empty = bring(tmp_path, "Name,Biography,Profile\n", "people.csv", unlists=True)
    assert (gone(empty), len(keys("person"))) == ([], 2)


def test_a_row_is_found_again_although_its_name_was_changed_here(tmp_path):
    bring(tmp_path, FIRST)
    update_company(COMMAND, "birch", CompanyChange(name="Birch Group"))
    second = bring(tmp_path, FIRST)
    assert (second.summary.counts["companies"].new, gone(second)) == (0, [])
    assert document("company", "birch")["company"]["name"] == "Birch Group"


def test_rows_of_one_name_keep_their_listings(tmp_path):
    text = "Company,Website\nAlder,a.example\nAlder,b.example\n"
    bring(tmp_path, text)
    again = bring(tmp_path, text)
    assert [(row.slug, row.result) for row in again.results] == [("alder", "unchanged"), ("alder-2", "unchanged")]
    assert gone(bring(tmp_path, text.replace("Alder,b.example\n", ""))) == ["alder-2"]


def test_more_than_a_tenth_or_the_limit_is_refused_before_anything_is_written(tmp_path):
    bring(tmp_path, FIRST)
    for limit in (None, 0):
        with pytest.raises(BadRequest, match="This would unlist 1 "):
            bring(tmp_path, SECOND, unlists=True, limit=limit)
    with pytest.raises(BadRequest, match="An import of drafts leaves published rows unchanged"):
        bring(tmp_path, SECOND, unlists=True, draft=True)
    assert (document("company", "cedar") is not None, document("company", "dogwood")) == (True, None)


def test_rows_that_changed_since_they_were_unlisted_are_kept(tmp_path):
    bring(tmp_path, FIRST)
    second = bring(tmp_path, SECOND, unlists=True)
    update_company(COMMAND, "cedar", CompanyChange(description="Gone"))
    undone = undo_import(COMMAND, second.summary.import_run)
    assert [(row.slug, row.reason) for row in undone.kept] == [("cedar", "it was changed since")]


def test_the_memory_is_bounded_and_holds_no_names(tmp_path, monkeypatch):
    monkeypatch.setattr(sources, "KEPT_SOURCES", 2)
    runs = [bring(tmp_path, PEOPLE, "people.csv").summary.import_run for _ in range(5)]
    kept = ImportedRows.objects.order_by("run_id").values_list("run_id", flat=True)
    assert [*kept] == runs[-sources.KEPT_IMPORTS :]
    assert set(memory_of("people").rows["person"].values()) == {*Person.objects.values_list("pk", flat=True)}
    bring(tmp_path, FIRST, "a.csv")
    bring(tmp_path, FIRST, "b.csv")
    assert [source for source, _ in list_sources()] == ["b", "a"]
    monkeypatch.setattr(sources, "KEPT_ROWS", 3)
    bring(tmp_path, SECOND, "b.csv")
    assert len(memory_of("b").rows["company"]) == 3


def test_an_import_that_remembers_nothing_has_no_source(tmp_path):
    found = bring(tmp_path, FIRST, source="")
    assert (memory_of("").run, list_sources()) == (None, [])
    assert HistoryEntry.objects.filter(import_run=found.summary.import_run).count() == 3


KEYED = "Org ID,Company,Website\nK7,Alder,alder.example\nK9,Birch,birch.example\n"


def test_a_row_with_the_key_of_an_earlier_one_is_the_same_though_its_name_is_new(tmp_path):
    bring(tmp_path, KEYED)
    renamed = bring(tmp_path, KEYED.replace("K7,Alder", "K7,Alder Trust"))
    assert [(row.slug, row.name, row.result) for row in renamed.results] == [
        ("alder", "Alder Trust", "changed"),
        ("birch", "Birch", "unchanged"),
    ]
    assert gone(renamed) == []
    assert gone(bring(tmp_path, KEYED.replace("K7,Alder", "K8,Elm"))) == ["alder"]


def test_the_first_version_with_keys_finds_the_rows_of_the_one_before_by_their_names(tmp_path):
    bring(tmp_path, "Company,Website\nAlder,alder.example\nBirch,birch.example\n")
    Company.objects.filter(slug="alder").update(name="Alder Society")
    found = bring(tmp_path, KEYED)
    assert [row.slug for row in found.results] == ["alder", "birch"]
    assert gone(found) == []
