"""A person is erased: nothing that the registry stores about them as data remains, and they do not come back."""

import json
import zlib
from datetime import timedelta

import msgspec
import pytest
from django.conf import settings
from django.db import connection

from make.instances import everything, tables_with
from make.pictures import picture
from make.registry import agent_of, changes, document, item, keys, lines, link_names, owner, published, reviewer
from muniment import config
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Forbidden, NotFound
from muniment.registry.company import listings, pictures
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.imports import reports
from muniment.registry.models import (
    FeedTombstone,
    GivenSlug,
    HistoryEntry,
    ImportedRows,
    ImportMemory,
    ImportRun,
    Person,
    Petition,
    Picture,
    Position,
    Suppression,
)
from muniment.registry.own_data import PART
from muniment.registry.people import erasing, profiles, suppression
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.publishing.redaction import compact_database, compact_if_sparse, replace_due_tombstones
from muniment.registry.review import claims

NAME, SLUG = "Ottoline Ferrisbrook", "ottoline-ferrisbrook"
pytestmark = pytest.mark.django_db


@pytest.fixture
def company():
    """Return a public listing with two positions, one of them of the person."""
    mine = published(
        owner(),
        name="Harbour Board",
        positions=[{"title": "Chair", "person": {"name": NAME}}, {"person": {"name": "Bo"}}],
    )
    assert document("person", SLUG)["positions"][0]["title"] == "Chair"
    return mine


def bytes_of(file):
    """Return the content of the database's file and of its write-ahead log."""
    return b"".join(each.read_bytes() for each in sorted(file.parent.glob(f"{file.name}*")))


@pytest.mark.parametrize("stranger", ["visitor", "owner", "reviewer's token"])
def test_only_a_reviewer_at_work_erases_a_person(company, stranger):
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[stranger]()
    with pytest.raises(Forbidden):
        erase_person(actor, SLUG)
    assert document("person", SLUG)["name"] == NAME


def test_a_person_who_does_not_exist_cannot_be_erased():
    with pytest.raises(NotFound):
        erase_person(reviewer(), "missing")
    assert not Suppression.objects.exists()


def test_the_person_leaves_every_public_document_and_the_companies_remain(company):
    erased = erase_person(reviewer(), SLUG)
    assert erased.companies == [company.slug]
    assert document("person", SLUG) is None
    assert SLUG not in keys("person")
    assert [place["person"]["name"] for place in document("company", company.slug)["positions"]] == ["Bo"]
    assert item("company", company.slug)["teamSize"] == 1


def test_no_row_keeps_the_name_or_the_slug_but_the_latest_feed_entry(company):
    me = owner()
    positions = [{"person": {"name": NAME}}, {"title": "Cook", "person": {"name": "Bo"}}]
    listings.update_company(reviewer(), company.slug, CompanyChange(positions=positions))
    claims.claim_person(me, SLUG, "It is me.")
    claims.suggest_edit(
        owner(), company.slug, CompanyChange(positions=[{"title": "Head", "person": {"slug": SLUG, "name": NAME}}]), ""
    )
    assert len(tables_with(NAME, SLUG)) >= 5
    erase_person(reviewer(), SLUG)
    assert tables_with(NAME, SLUG) == ["published_change"]
    assert [change for kind, key, change in changes() if key == SLUG] == ["unlisted"]
    assert not Petition.objects.filter(kind="profile").exists()


def test_an_erasure_locks_the_person_before_it_reads_the_name(company, monkeypatch):
    """On PostgreSQL a name that the person took meanwhile would stay."""
    locks, find = [], erasing.find_person

    def noted(slug, *, lock=False):
        locks.append(lock)
        return find(slug, lock=lock)

    monkeypatch.setattr(erasing, "find_person", noted)
    erase_person(reviewer(), SLUG)
    assert locks == [True]


def test_no_row_keeps_what_an_import_brought(tmp_path):
    person = {"slug": SLUG, "name": NAME, "bio": "Collects pewterware."}
    company = {"id": "quay-trust", "slug": "quay-trust", "name": "Quay Trust"}
    lines(tmp_path / "in" / "people.jsonl", person)
    positions = [{"title": "Cook", "person": {"name": NAME, "slug": SLUG}}]
    lines(tmp_path / "in" / "companies.jsonl", {"company": company, "positions": positions})
    import_registry(tmp_path / "in")
    mine = owner()
    add_owner(reviewer(), "quay-trust", mine.account_id)
    edited = [{"title": "Chef", "person": {"name": NAME, "slug": SLUG}}, {"person": {"name": "Bo"}}]
    listings.update_company(mine, "quay-trust", CompanyChange(positions=edited))
    lines(tmp_path / "in" / "people.jsonl", {**person, "bio": "Collects barometers."})
    positions = [{"title": "Sous-chef", "person": {"name": NAME, "slug": SLUG}}]
    lines(tmp_path / "in" / "companies.jsonl", {"company": company, "positions": positions})
    import_registry(tmp_path / "in")
    assert ImportMemory.objects.exists()
    erase_person(reviewer(), SLUG)
    assert tables_with(NAME, SLUG, "pewterware", "barometers") == ["published_change"]
    assert [place["person"]["name"] for place in document("company", "quay-trust")["positions"]] == ["Bo"]


def test_no_import_keeps_the_person_among_what_it_left_out(company):
    groups = [
        {"reason": Phrase("{name!r} is named twice", name=NAME), "example": "", "rows": [3]},
        {"reason": "is no country", "example": f"home of {NAME}", "rows": [4]},
        {"reason": "is no country", "example": "Atlantis", "rows": [5]},
    ]
    run = ImportRun.objects.create(via="web", report={"groups": groups, "groups_total": 3, "bad": 2})
    other = ImportRun.objects.create(via="web", report={"groups": groups[2:], "groups_total": 1})
    erase_person(reviewer(), SLUG)
    left = ImportRun.objects.get(pk=run.pk).report
    assert [each["example"] for each in left["groups"]] == ["Atlantis"]
    assert (left["groups_total"], left["bad"]) == (3, 2), "it stays true how much there was"
    assert ImportRun.objects.get(pk=other.pk).report == other.report
    assert tables_with(NAME, SLUG) == ["published_change"]


def row_of(name, slug, kind="person", **more):
    return {"row": 2, "kind": kind, "slug": slug, "name": name, "result": "new", **more}


def reported(*lines):
    """Keep a report of an import with these lines; return how to read their names."""
    run = ImportRun.objects.create(via="web")
    content = b"".join(msgspec.json.encode(line) + b"\n" for line in lines)
    ImportedRows.objects.create(run=run, report=zlib.compress(content))
    return lambda: [line["name"] for line in reports.read_report(reports.report_of_run(run.pk))]


def test_reports_lose_the_rows_of_the_person_and_no_others(company):
    team = {"positions": [{"title": "Head", "person": {"slug": SLUG, "name": "O. F."}}]}
    left = reported(
        row_of(NAME, SLUG),
        row_of("Harbour Board", "harbour-board", "company", before=team, after={}, parts=None),
        row_of("Quay Trust", "quay-trust", "company", before={"body": f"By {NAME.upper()}."}, after={}, parts=None),
        row_of(f"{NAME}s", f"{SLUG}s"),
        row_of("Otto", "otto"),
    )
    erase_person(reviewer(), SLUG)
    assert left() == [f"{NAME}s", "Otto"]


@pytest.mark.parametrize("is_public", [False, True])
def test_an_account_that_leaves_takes_no_rows_of_others_out_of_reports(is_public):
    me = owner()
    made = profiles.create_profile(me, ProfileChange(name="Acme"))
    if is_public:
        profiles.publish_profile(me)
        profiles.unlist_profile(me)
    left = reported(
        row_of("Acme", "acme", "company"),
        row_of("Acme", "acme-works", "company", before={"body": "Acme"}, after={}, parts=None),
        row_of("Acme", made.slug),
    )
    PART.delete(Account.objects.get(pk=me.account_id))
    assert left() == ["Acme", "Acme"]


def test_no_row_keeps_what_owners_asked_of_a_claimed_profile(company):
    me, asking = owner(), owner()
    profiles.join_person(reviewer(), SLUG, me.account_id)
    published(asking, name="Quay Trust")
    for title in ("Cook", "Chef"):
        named = [{"title": title, "person": {"slug": SLUG}}]
        listings.update_company(asking, "quay-trust", CompanyChange(positions={"add": named}))
    assert document("company", "quay-trust")["positions"][0]["person"] == {"name": NAME}
    erase_person(reviewer(), SLUG)
    assert tables_with(NAME, SLUG) == ["published_change"]
    assert document("company", "quay-trust")["positions"] == []


def test_the_history_keeps_its_other_values_and_names_the_erasure(company):
    positions = [{"person": {"name": NAME}}, {"title": "Cook", "person": {"name": "Bo"}}]
    change = CompanyChange(positions=positions, description="Keeps the quay.")
    listings.update_company(reviewer(), company.slug, change)
    judge = reviewer()
    erase_person(judge, SLUG)
    entries = HistoryEntry.objects.filter(company__slug=company.slug).order_by("pk")
    updated = entries.get(action="updated")
    assert updated.after["description"] == "Keeps the quay."
    assert [place["person"]["name"] for place in updated.before["positions"]] == ["Bo"]
    assert [place.get("title") for place in updated.after["positions"]] == ["Cook"]
    last = entries.last()
    assert (last.action, last.account_id, last.before, last.after) == ("person erased", judge.account_id, {}, {})


def test_a_change_that_was_only_about_the_person_leaves_an_empty_entry(company):
    (row, _) = document("company", company.slug)["positions"]
    change = {"set": [{"id": row["id"], "title": "President"}]}
    listings.update_company(reviewer(), company.slug, CompanyChange(positions=change))
    erase_person(reviewer(), SLUG)
    updated = HistoryEntry.objects.get(company__slug=company.slug, action="updated")
    assert (updated.before, updated.after) == ({}, {})


def test_another_person_of_the_same_name_elsewhere_is_untouched(company):
    link_names(published(owner(), name="Other Board", positions=[{"person": {"name": NAME, "isNew": True}}]).slug)
    other = Position.objects.get(company__slug="other-board").person.slug
    assert other != SLUG
    erase_person(reviewer(), SLUG)
    assert document("person", other)["name"] == NAME
    assert document("company", "other-board")["positions"][0]["person"]["slug"] == other


def test_the_picture_goes_unless_another_shows_the_same(company):
    me, other = owner(), owner()
    profiles.join_person(reviewer(), SLUG, me.account_id)
    mine, shared = pictures.store_picture(picture(side=300)), pictures.store_picture(picture(side=200))
    profiles.set_portrait(me, mine)
    listings.set_icon(reviewer(), company.slug, shared)
    erase_person(reviewer(), SLUG)
    assert [f"/pictures/{digest}-512.webp" for digest in Picture.objects.values_list("digest", flat=True)] == [shared]
    profiles.create_profile(other, ProfileChange(name="Ada Moss"))
    profiles.set_portrait(other, shared)
    erase_person(reviewer(), "ada-moss")
    assert Picture.objects.count() == 1


def test_a_private_profile_is_erased_too_and_the_account_is_named():
    me = owner("ottoline@harbour.example")
    profiles.create_profile(me, ProfileChange(name=NAME))
    erased = erase_person(reviewer(), SLUG)
    assert (erased.account, erased.companies) == ("ottoline@harbour.example", [])
    assert profiles.get_profile(me) is None
    assert [key for _, key, _ in changes()] == [changes()[-1][1]]
    assert changes()[-1][1].startswith("erased:")


def test_texts_that_name_the_person_are_listed_for_the_operator(company):
    text = f"Founded by {NAME.upper()}."
    listings.update_company(reviewer(), company.slug, CompanyChange(description=text))
    published(owner(), name="Quay Trust", capTable=[{"name": NAME, "percentage": 5}])
    dry = erase_person(reviewer(), SLUG, dry_run=True)
    erased = erase_person(reviewer(), SLUG)
    found = {(mention.what, mention.where, mention.field) for mention in erased.mentions}
    assert found == {
        ("company", company.slug, "description"),
        ("history", company.slug, "after"),
        ("token holder", "quay-trust", "document"),
        ("history", "quay-trust", "after"),
    }
    assert found <= {(mention.what, mention.where, mention.field) for mention in dry.mentions}
    assert document("company", company.slug)["company"]["description"] == text


def test_a_dry_run_changes_nothing(company):
    before = everything()
    erased = erase_person(reviewer(), SLUG, dry_run=True)
    after = everything()
    assert erased.companies == [company.slug]
    assert {name for name in after if after[name] != before[name]} <= {"accounts_account"}


def test_followers_see_the_slug_for_30_days_and_then_a_random_id(company):
    erase_person(reviewer(), SLUG)
    replacement = changes()[-1][1]
    assert replacement.startswith("erased:")
    assert changes()[-1] == ("person", replacement, "unlisted")
    assert [key for kind, key, _ in changes() if kind == "person"].count(SLUG) == 1
    assert replace_due_tombstones(at=now() + timedelta(days=29)) == 0
    assert replace_due_tombstones(at=now() + timedelta(days=31)) == 1
    assert tables_with(NAME, SLUG) == []
    assert not FeedTombstone.objects.exists()
    assert {key for kind, key, change in changes() if change == "unlisted"} == {replacement}


def test_an_erasure_under_a_secret_key_that_is_gone_is_told(company):
    erase_person(reviewer(), SLUG)
    assert suppression.warnings() == []
    [told] = suppression.warnings([suppression.SuppressionKey(b"another")])
    assert told.startswith("3 suppressions of erased people were made with another secret key and have no effect; set")


def test_the_reserved_slug_is_a_digest_and_is_not_given_again(company):
    erase_person(reviewer(), SLUG)
    assert not GivenSlug.objects.filter(slug=SLUG).exists()
    assert profiles.create_profile(owner(), ProfileChange(name=NAME)).slug == f"{SLUG}-2"


def test_the_list_is_written_beside_known_backups_and_a_folder_that_is_gone_is_named(company, tmp_path):
    data, kept, gone = config.current().data, tmp_path / "kept", tmp_path / "gone"
    kept.mkdir()
    for folder in (kept, gone, kept):
        suppression.remember_folder(data, folder)
    assert suppression.folders_of(data) == [kept, gone]
    erased = erase_person(reviewer(), SLUG)
    assert erased.unwritten == [str(gone)]
    beside = (kept / suppression.FILE_NAME).read_text()
    assert beside == (data / suppression.FILE_NAME).read_text()
    assert len(beside.splitlines()) == Suppression.objects.count() == 3
    assert "ottoline" not in beside
    suppression.write_beside(kept)
    assert (kept / suppression.FILE_NAME).read_text() == beside


def test_folders_of_backups_are_remembered_also_by_a_node_without_a_data_folder(tmp_path):
    suppression.remember_folder(tmp_path / "new" / "data", tmp_path)
    assert suppression.folders_of(tmp_path / "new" / "data") == [tmp_path]


def test_a_list_beside_the_import_is_respected(company, tmp_path):
    erase_person(reviewer(), SLUG)
    suppression.write_beside(tmp_path)
    Suppression.objects.all().delete()
    (config.current().data / suppression.FILE_NAME).unlink()
    import_registry(lines(tmp_path / "people.jsonl", {"slug": SLUG, "name": NAME}))
    assert not Person.objects.filter(slug=SLUG).exists()


def test_the_next_import_does_not_bring_the_person_back(company, tmp_path):
    me = Person.objects.get(slug=SLUG)
    folder = tmp_path / "in"
    lines(
        folder / "people.jsonl",
        {"slug": SLUG, "name": NAME},
        {"slug": "o-f", "name": NAME, "documentId": me.document_id},
    )
    positions = [{"person": {"name": NAME, "slug": SLUG}}, {"person": {"name": "Bo", "slug": "bo"}}]
    by_name = [{"person": {"name": "  ottoline  FERRISBROOK "}}, {"person": {"name": "Bo", "slug": "bo"}}]
    erase_person(reviewer(), SLUG)
    for given in (positions, by_name):
        row = {"company": {"id": company.slug, "slug": company.slug, "name": "Harbour Board"}, "positions": given}
        lines(folder / "companies.jsonl", row)
        warnings = []
        for dry_run in (True, False):
            summary = import_registry(folder, ImportOptions(dry_run=dry_run), warn=warnings.append)
            assert summary.bad == 0
        assert len([warning for warning in warnings if "was erased" in str(warning)]) == 6
        assert [place["person"]["name"] for place in document("company", company.slug)["positions"]] == ["Bo"]
    assert not Person.objects.filter(name__icontains="ferrisbrook").exists()
    assert "Ottoline" not in json.dumps([each[1] for each in changes()])


@pytest.mark.sqlite  # the file of PostgreSQL is not ours to read
@pytest.mark.django_db(transaction=True)
def test_space_goes_back_to_the_disk_when_a_fifth_of_the_file_is_free():
    def count(name):
        return cursor.execute(f"PRAGMA {name}").fetchone()[0]

    with connection.cursor() as cursor:
        compact_database()
        cursor.execute("CREATE TABLE drift AS SELECT zeroblob(3000000) AS content")
        assert not compact_if_sparse()
        size = count("page_count")
        cursor.execute("DROP TABLE drift")
        assert compact_if_sparse()
        assert count("freelist_count") == 0
        assert count("page_count") * count("page_size") < size * count("page_size") - 2_900_000
        assert not compact_if_sparse()


@pytest.mark.sqlite  # the file of PostgreSQL is not ours to read
@pytest.mark.django_db(transaction=True)
def test_nothing_is_left_in_the_file_of_the_database(company):
    me = owner()
    profiles.join_person(reviewer(), SLUG, me.account_id)
    profiles.update_profile(me, ProfileChange(bio="Collects pewterware."))
    profiles.update_profile(me, ProfileChange(bio="Collects barometers."))
    connection.close()
    file = settings.DATABASES["default"]["NAME"]
    assert b"pewterware" in bytes_of(file)
    erase_person(reviewer(), SLUG)
    replace_due_tombstones(at=now() + timedelta(days=31))
    compact_database()
    for word in (b"ottoline", b"ferrisbrook", b"pewterware", b"barometers"):
        assert word not in bytes_of(file).lower()
