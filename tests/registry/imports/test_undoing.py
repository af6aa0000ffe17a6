"""Undo of an import: former values are restored, new rows unpublished, and rows changed since are kept."""

import pytest

from make.registry import document, lines, owner, published, reviewer
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.imports.undoing import list_imports, undo_import
from muniment.registry.models import Company, HistoryEntry, Person, State
from muniment.registry.review.pruning import plan_pruning
from muniment.registry.review.workflow import unlist_company

pytestmark = pytest.mark.django_db

FIRST = {
    "company": {
        "id": "alder",
        "name": "Alder",
        "description": "First",
        "website": "https://a.example",
        "socials": {"email": "o@a.example"},
        "address": [{"city": "Rome"}, {"city": "Oslo"}],
        "founded": "1998",
    },
    "positions": [{"title": "Chair", "person": {"name": "Ida Alder", "slug": "ida-alder"}}],
    "capTable": [{"name": "Ida", "percentage": 60}, {"name": "Joe", "percentage": 40}],
    "fundingRounds": [{"name": "Seed", "target": "$1M", "opened": "2020-01-01", "closed": "2020-06-01"}],
    "proposals": [{"title": "Plant", "status": "passed"}],
}
SECOND = {
    "company": {
        "id": "alder",
        "name": "Alder Two",
        "description": "Second",
        "socials": {"twitter": "alder"},
        "address": [{"city": "Oslo"}],
        "lei": "X",
    },
    "positions": [{"title": "Clerk", "person": {"name": "Joe Birch", "slug": "joe-birch"}}],
    "capTable": [{"name": "Ida", "percentage": 100}],
    "fundingRounds": [],
    "proposals": [],
}
IDA = {"slug": "ida-alder", "name": "Ida Alder", "bio": "First"}
JOE = {"slug": "joe-birch", "name": "Joe Birch"}


def bring(folder, companies=(), people=(), **options):
    lines(folder / "companies.jsonl", *companies)
    lines(folder / "people.jsonl", *people)
    return import_registry(folder, ImportOptions(**options)).import_run


def shown(kind="company", slug="alder"):
    """Return a published document without the times and ids that every change renews."""

    def plain(value):
        if isinstance(value, dict):
            return {key: plain(each) for key, each in value.items() if key not in {"updatedAt", "id", "formerNames"}}
        return [plain(each) for each in value] if isinstance(value, list) else value

    return plain(document(kind, slug))


def test_an_import_is_undone_and_redone(tmp_path):
    bring(tmp_path, [FIRST], [IDA])
    before, person = shown(), shown("person", "ida-alder")
    second = bring(tmp_path, [SECOND], [{**IDA, "bio": "Second"}, JOE])
    after = shown()
    undone = undo_import(COMMAND, second)
    assert (undone.restored, undone.unpublished, undone.kept) == (2, 1, [])
    assert shown() == before
    assert shown("person", "ida-alder") == person
    assert "formerNames" not in document("company", "alder")["company"]
    assert document("person", "joe-birch") is None
    redone = undo_import(COMMAND, undone.key)
    assert (redone.restored, redone.kept) == (3, [])
    assert shown() == after
    assert shown("person", "joe-birch")["name"] == "Joe Birch"
    first, *_ = reversed(list_imports())
    undo_import(COMMAND, redone.key)
    assert undo_import(COMMAND, first.key).unpublished == 2  # what was undone since is no change
    assert document("company", "alder") is None
    bring(tmp_path, [FIRST], [IDA])  # drafts of an import are published by the next
    assert shown() == before


def test_rows_that_changed_since_are_kept_and_named(tmp_path):
    run = bring(tmp_path, [FIRST, {"company": {"id": "birch", "name": "Birch"}}], [IDA])
    update_company(reviewer(), "alder", CompanyChange(description="By a person"))
    Person.objects.filter(slug="ida-alder").update(account=owner().account_id)
    undone = undo_import(COMMAND, run)
    assert {(each.slug, each.reason) for each in undone.kept} == {
        ("alder", "it was changed since"),
        ("ida-alder", "the profile belongs to an account"),
    }
    assert document("company", "alder")["company"]["description"] == "By a person"
    assert Company.objects.get(slug="birch").state == State.DRAFT


def test_what_a_person_wrote_before_the_import_stays_theirs(tmp_path):
    company = published(owner(), name="Harbour", description="Owner's")
    row = {"company": {"id": company.slug, "name": "Harbour", "description": "Table's"}}
    run = bring(tmp_path, [row], overwrite=True)
    assert document("company", company.slug)["company"]["description"] == "Table's"
    undo_import(COMMAND, run)
    assert document("company", company.slug)["company"]["description"] == "Owner's"


def test_a_listing_that_an_import_published_is_unlisted_again(tmp_path):
    bring(tmp_path, [FIRST])
    unlist_company(reviewer(), "alder", "a reason")
    run = bring(tmp_path, [FIRST], relist=True)
    assert document("company", "alder")
    undo_import(COMMAND, run)
    company = Company.objects.get(slug="alder")
    assert (company.state, company.unlisted_by) == (State.UNLISTED, "reviewer")
    assert document("company", "alder") is None


def test_frameworks_are_kept_and_named(tmp_path):
    for name in ("F", "G"):
        lines(
            tmp_path / "frameworks.jsonl", {"framework": {"frameworkId": "f", "frameworkName": name, "kind": "score"}}
        )
        run = import_registry(tmp_path).import_run
    (kept,) = undo_import(COMMAND, run).kept
    assert (kept.kind, kept.slug) == ("framework", "f")


def test_a_framework_that_an_import_unlisted_is_listed_again_and_counted_once(tmp_path):
    names = ("one", "two")
    frameworks = [{"framework": {"frameworkId": name, "frameworkName": name, "kind": "score"}} for name in names]
    lines(tmp_path / "frameworks.jsonl", *frameworks)
    import_registry(tmp_path)
    lines(tmp_path / "frameworks.jsonl", frameworks[0])
    run = import_registry(tmp_path).import_run
    plan_pruning(tmp_path, limit=5).unlist(COMMAND, run)
    assert document("framework", "two") is None
    undone = undo_import(COMMAND, run)
    assert (undone.restored, undone.kept) == (1, [])
    assert document("framework", "two")


def test_an_unknown_import_and_one_that_is_undone_are_refused(tmp_path):
    with pytest.raises(NotFound, match="There is no import 7"):
        undo_import(COMMAND, 7)
    run = bring(tmp_path, [FIRST])
    undo_import(COMMAND, run)
    with pytest.raises(BadRequest, match="is undone"):
        undo_import(COMMAND, run)
    latest, first = list_imports()
    assert (latest.undoes, first.undone_by) == (run, str(latest.key))


def test_the_next_import_is_not_held_back_by_an_undo(tmp_path):
    bring(tmp_path, [FIRST])
    undo_import(COMMAND, bring(tmp_path, [SECOND]))
    bring(tmp_path, [{**FIRST, "company": {**FIRST["company"], "description": "Third"}}])
    assert document("company", "alder")["company"]["description"] == "Third"
    assert set(HistoryEntry.objects.values_list("action", flat=True)) == {"imported"}
