"""Former names of companies: kept when a public listing is renamed, hidden by owners, removed for good by reviewers."""

import pytest

from make.instances import emptied, tables_with
from make.registry import agent_of, document, draft, item, lines, owner, published, reviewer
from muniment import config
from muniment.backup.restoring import restore
from muniment.backup.snapshot import back_up
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.exchange.exporter import export_registry
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import Company, HistoryEntry, PendingChange
from muniment.registry.names import operations as names
from muniment.registry.people.erasing import find_mentions
from muniment.registry.publishing import republishing
from muniment.registry.review import workflow

FIRST = "Ottoline Ferrisbrook & Sons"
FOUND_BY = {"published_document", "published_item_company", "published_word_company", "published_text_company_content"}
pytestmark = pytest.mark.django_db


def rename(slug, name):
    listings.update_company(reviewer(), slug, CompanyChange(name=name))


def former(slug):
    """Return the public former names of a listing."""
    found = document("company", slug)
    return [each["name"] for each in found["company"].get("formerNames", [])] if found else None


def tables_with_first():
    """Return the tables with the first name; the permanent slug is made of it, and stays."""
    return {*tables_with("Ferrisbrook", "\u2235ottoline")}


@pytest.fixture
def renamed():
    me = owner()
    mine = published(me, name=FIRST)
    rename(mine.slug, "Quillmere")
    return me, mine.slug


def test_an_approved_change_of_name_keeps_the_former_one():
    me = owner()
    mine = published(me, name=FIRST)
    listings.update_company(me, mine.slug, CompanyChange(name="Quillmere"))
    assert former(mine.slug) == []
    workflow.decide_change(reviewer(), PendingChange.objects.get().pk, approve=True)
    assert document("company", mine.slug)["company"]["formerNames"] == [
        {"name": FIRST, "until": now().date().isoformat()}
    ]
    assert [each["name"] for each in item("company", mine.slug)["formerNames"]] == [FIRST]


def test_a_renamed_company_stays_at_its_address_and_its_slug_is_given_to_no_other(renamed):
    _, slug = renamed
    assert slug == "ottoline-ferrisbrook-sons"
    assert document("company", slug)["company"]["name"] == "Quillmere"
    other = published(owner(), name=FIRST)
    assert other.slug == f"{slug}-2"


def test_the_latest_comes_first_and_a_rename_back_removes_it(renamed):
    _, slug = renamed
    rename(slug, "Tern")
    assert former(slug) == ["Quillmere", FIRST]
    rename(slug, FIRST)
    assert former(slug) == ["Tern", "Quillmere"]
    latest = HistoryEntry.objects.filter(company__slug=slug, action="updated").latest("pk")
    listings.revert_company(reviewer(), slug, latest.pk)
    assert former(slug) == [FIRST, "Quillmere"]


def test_another_form_of_the_same_name_is_no_former_name(renamed):
    _, slug = renamed
    rename(slug, "QUILLMERE!")
    assert former(slug) == [FIRST]


def test_names_of_drafts_are_no_former_names():
    me = owner()
    mine = draft(me, name=FIRST)
    listings.update_company(me, mine.slug, CompanyChange(name="Quillmere"))
    workflow.submit_company(me, mine.slug)
    workflow.approve_company(reviewer(), mine.slug)
    assert former(mine.slug) == []


def test_a_listing_that_was_renamed_while_unlisted_shows_the_name_under_which_it_was_public():
    me = owner()
    mine = published(me, name=FIRST)
    workflow.unlist_own_company(me, mine.slug)
    rename(mine.slug, "Never Public")
    rename(mine.slug, "Quillmere")
    assert former(mine.slug) is None
    workflow.relist_own_company(me, mine.slug)
    assert former(mine.slug) == [FIRST]


def bring(path, name, **members):
    lines(path, {"company": {"id": "quillmere", "name": name, **members}})
    return import_registry(path)


def test_an_import_that_renames_keeps_the_former_name_and_takes_those_of_its_file(tmp_path):
    file = tmp_path / "companies.jsonl"
    bring(file, FIRST)
    bring(file, "Quillmere")
    assert former("quillmere") == [FIRST]
    given = [{"name": "Tern", "until": "2020-02-01", "hidden": "owner"}, {"name": "Quillmere"}]
    assert bring(file, "Quillmere", formerNames=given).counts["companies"].changed == 1
    assert former("quillmere") == [FIRST, "Tern"]
    assert bring(file, "Quillmere").counts["companies"].unchanged == 1
    assert former("quillmere") == [FIRST, "Tern"], "a file that says nothing of them changes nothing"


def test_an_import_brings_neither_hidden_nor_removed_names_back(tmp_path):
    file = tmp_path / "companies.jsonl"
    bring(file, "Quillmere", formerNames=[{"name": "Tern"}, {"name": FIRST}])
    assert former("quillmere") == ["Tern", FIRST]
    names.hide_former_name(reviewer(), "quillmere", "Tern")
    names.remove_former_name(reviewer(), "quillmere", FIRST)
    bring(file, "Quillmere", formerNames=[{"name": "Tern", "until": "2020-02-01"}, {"name": FIRST}])
    assert former("quillmere") == []
    Company.objects.all().delete()


def test_an_export_brings_them_to_another_instance(renamed, tmp_path):
    _, slug = renamed
    export_registry(tmp_path)
    before = document("company", slug)["company"]["formerNames"]
    emptied()
    import_registry(tmp_path)
    assert document("company", slug)["company"]["formerNames"] == before != []


def test_an_owner_hides_a_former_name_and_shows_it_again(renamed):
    me, slug = renamed
    names.hide_former_name(me, slug, FIRST)
    assert former(slug) == []
    assert not FOUND_BY & tables_with_first()
    assert [each["name"] for each in names.list_former_names(me, slug)] == [FIRST]
    rename(slug, "Tern")
    assert former(slug) == ["Quillmere"], "a hidden one stays hidden"
    names.show_former_name(me, slug, FIRST)
    assert former(slug) == ["Quillmere", FIRST]


def test_an_owner_does_not_show_what_a_reviewer_hid(renamed):
    me, slug = renamed
    names.hide_former_name(me, slug, FIRST)
    names.hide_former_name(reviewer(), slug, FIRST)
    names.hide_former_name(me, slug, FIRST)
    with pytest.raises(Forbidden, match="A reviewer hid"):
        names.show_former_name(me, slug, FIRST)
    assert former(slug) == []
    names.show_former_name(reviewer(), slug, FIRST)
    assert former(slug) == [FIRST]


def test_a_name_that_a_listing_has_not_had_is_not_found(renamed):
    me, slug = renamed
    for change in (names.hide_former_name, names.show_former_name):
        with pytest.raises(NotFound, match="no such former name"):
            change(me, slug, "Quillmere")


@pytest.mark.parametrize("stranger", ["visitor", "other owner", "reviewer's token"])
def test_a_stranger_learns_nothing_and_changes_nothing(renamed, stranger):
    _, slug = renamed
    made = {"visitor": lambda: VISITOR, "other owner": owner, "reviewer's token": lambda: agent_of(reviewer())}
    actor = made[stranger]()
    for attempt in (
        lambda: names.list_former_names(actor, slug),
        lambda: names.hide_former_name(actor, slug, FIRST),
        lambda: names.show_former_name(actor, slug, FIRST),
    ):
        with pytest.raises(NotFound, match="no company with the slug"):
            attempt()
    with pytest.raises(Forbidden):
        names.remove_former_name(actor, slug, FIRST)
    assert former(slug) == [FIRST]


def test_an_owner_does_not_remove_a_former_name(renamed):
    me, slug = renamed
    with pytest.raises(Forbidden):
        names.remove_former_name(me, slug, FIRST)


def test_nothing_of_a_removed_name_stays(renamed, tmp_path):
    me, slug = renamed
    names.hide_former_name(me, slug, FIRST)
    names.show_former_name(me, slug, FIRST)
    listings.update_company(me, slug, CompanyChange(name=FIRST))
    workflow.decide_change(reviewer(), PendingChange.objects.latest("pk").pk, approve=False, note="No.")
    assert {"registry_company", "registry_historyentry", "registry_pendingchange"} <= tables_with_first()
    names.remove_former_name(reviewer(), slug, FIRST)
    assert tables_with_first() == set()
    assert former(slug) == []
    entries = list(HistoryEntry.objects.filter(company__slug=slug))
    assert all({*each.changed} <= {*each.before, *each.after} for each in entries)
    rename(slug, "Tern")
    rename(slug, "Quillmere")
    export_registry(tmp_path)
    assert "Ferrisbrook" not in (tmp_path / "companies.jsonl").read_text()


def test_every_change_of_a_former_name_locks_the_listing_first(renamed, monkeypatch):
    """On PostgreSQL a change that read the listing without its lock could be lost."""
    me, slug = renamed
    locks, find = [], names.owned

    def noted(actor, slug, *, lock=False):
        locks.append(lock)
        return find(actor, slug, lock=lock)

    monkeypatch.setattr(names, "owned", noted)
    names.hide_former_name(me, slug, FIRST)
    names.show_former_name(me, slug, FIRST)
    names.remove_former_name(reviewer(), slug, FIRST)
    assert locks == [True, True, True]


def test_what_was_removed_does_not_come_back_by_a_rename(renamed):
    _, slug = renamed
    names.remove_former_name(reviewer(), slug, FIRST)
    rename(slug, FIRST)
    rename(slug, "Tern")
    assert former(slug) == ["Quillmere"]


def test_an_unlisted_listing_shows_none(renamed):
    _, slug = renamed
    workflow.unlist_company(reviewer(), slug, "Not one.")
    assert former(slug) is None
    assert not FOUND_BY & tables_with_first()


def test_a_former_name_with_the_name_of_a_person_is_told_when_the_person_is_erased(renamed):
    _, slug = renamed
    assert ("company", slug, "former_names", f"/review/companies/{slug}") in find_mentions("Ottoline Ferrisbrook")


def test_what_is_published_is_what_the_source_says(renamed):
    _, slug = renamed
    assert list(republishing.differences("company", [Company.objects.get(slug=slug).pk])) == []


def test_the_history_of_a_removed_name_can_be_read_and_reverted(renamed):
    me, slug = renamed
    listings.update_company(me, slug, CompanyChange(description="Boats."))
    names.remove_former_name(reviewer(), slug, FIRST)
    page = listings.company_history(me, slug)
    assert page.items[0].action == "former name removed"
    assert all(each.is_loaded for each in page.items)
    described = next(each for each in page.items if each.changed == ["description"])
    listings.revert_company(me, slug, described.pk)
    assert former(slug) == []


def restored(backup, slug):
    emptied()
    restore(config.current(), backup)
    return former(slug)


@pytest.mark.django_db(transaction=True)
def test_a_restore_of_an_older_backup_does_not_bring_a_removed_name_back(tmp_path):
    slug = published(owner(), name=FIRST).slug
    rename(slug, "Quillmere")
    back_up(config.current(), tmp_path / "b")
    assert restored(tmp_path / "b", slug) == [FIRST]
    names.remove_former_name(reviewer(), slug, FIRST)
    assert restored(tmp_path / "b", slug) == []
    assert tables_with_first() == set()
