"""Merging another registry into one's own: what it brings, what stays, and what happens when it changes."""

import json

import pytest
from django.conf import settings

from make.registry import owner, published
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest, Conflict
from muniment.mirror import merging
from muniment.mirror.copying import BehindTooFar
from muniment.mirror.merging import Merge
from muniment.mirror.origin import Origin
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import add_owner, update_company
from muniment.registry.imports.undoing import undo_import
from muniment.registry.models import Company, Framework, ImportRun, MergedPerson, Person, Position, State
from muniment.registry.people.erasing import erase_person
from services.origin import Given, company, framework, person

pytestmark = pytest.mark.django_db


def employing(slug, *people, **members):
    """Return a company with a position of each person."""
    held = []
    for number, who in enumerate(people):
        position = {"id": f"item{number}", "title": f"Keeper {number}"}
        held.append({**position, "person": {"name": f"Person {who}", "slug": who}})
    return {**company(slug, **members), "positions": held}


class Merging:
    """A merge of the origin in a data folder, and what it said."""

    def __init__(self, site, folder, wait):
        self.site, self.folder, self.wait = site, folder, wait
        self.told = []

    def run(self, **options):
        """Read what the origin has, as one run of the command does, and return the place."""
        origin = Origin(self.site.address, wait=self.wait, tells=self.told.append)
        merge = Merge(origin, self.folder, tells=self.told.append, **options)
        try:
            place = merge.place()
            if place is None:
                snapshot = merge.fetch()
                merge.build(snapshot, settings.SCHEMA)
                place = snapshot.place
            following = None
            while following != place:
                place = following or place
                following = merge.follow(place, settings.SCHEMA, waits=False)
            return place
        finally:
            origin.close()


@pytest.fixture
def merging_of(site, tmp_path, pauses):
    folder = tmp_path / "data"
    folder.mkdir()
    return Merging(site, folder, pauses)


def slugs(model=Company, **wanted):
    return set(model.objects.filter(**wanted).values_list("slug", flat=True))


def test_the_exports_are_merged_and_then_each_change(merging_of, site):
    place = merging_of.run()
    assert (slugs(), slugs(Person), slugs(Framework)) == ({"harbor-trust"}, {"ada-lund"}, {"river-score"})
    assert place.after == site.edition
    site.publish("company", "harbor-trust", company("harbor-trust", description="Deeper."))
    site.publish("company", "quay", employing("quay", "ada-lund"))
    site.asked.clear()
    assert merging_of.run().after == site.edition
    assert not any("/exports" in path for path in site.asked), "a further run reads the changes alone"
    assert Company.objects.get(slug="harbor-trust").description == "Deeper."
    assert Position.objects.get(company__slug="quay").person.slug == "ada-lund"
    assert slugs(state=State.PUBLISHED) == {"harbor-trust", "quay"}


def test_of_several_changes_of_a_document_the_last_counts(merging_of, site):
    merging_of.run()
    site.publish("company", "brief", company("brief"))
    site.unlist("company", "brief")
    site.unlist("company", "harbor-trust")
    site.publish("company", "harbor-trust", company("harbor-trust", description="Again."))
    merging_of.run()
    assert slugs() == {"harbor-trust"}
    assert Company.objects.get(slug="harbor-trust").state == State.PUBLISHED


def test_what_the_origin_unlists_is_unlisted_here_if_it_came_from_there(merging_of, site):
    site.publish("company", "ours", company("ours"))
    site.export()
    published(owner(), name="Ours")
    merging_of.run()
    for kind, key in (("company", "harbor-trust"), ("person", "ada-lund"), ("framework", "river-score")):
        site.unlist(kind, key)
    site.unlist("company", "ours")
    merging_of.run()
    assert slugs(state=State.PUBLISHED) == {"ours"}
    assert slugs(Person, published=True) == slugs(Framework, published=True) == set()
    assert "1 companies that the origin has unlisted are unlisted" in merging_of.told


def test_what_exists_here_under_the_same_slug_stays_and_nothing_refers_to_it(merging_of, site):
    ours = published(owner(), name="Harbor Trust", description="Ours.", positions=[{"person": {"name": "Ada Lund"}}])
    assert (ours.slug, slugs(Person)) == ("harbor-trust", {"ada-lund"})
    site.publish("company", "quay", employing("quay", "ada-lund", "bo-reef"))
    site.publish("person", "bo-reef", person("bo-reef"))
    site.publish(
        "framework", "tide", {**framework("tide"), "company": {"slug": "harbor-trust", "name": "Harbor Trust"}}
    )
    site.publish("framework", "quays", {**framework("quays"), "company": {"slug": "quay", "name": "Quay"}})
    site.export()
    merging_of.run()
    assert Company.objects.get(slug="harbor-trust").description == "Ours."
    holders = dict(Position.objects.filter(company__slug="quay").values_list("name", "person__slug"))
    assert set(holders.values()) == {None, "bo-reef"}
    assert holders["Person ada-lund"] is None
    owners = dict(Framework.objects.values_list("slug", "company__slug"))
    assert owners == {"river-score": None, "tide": None, "quays": "quay"}
    assert f"company harbor-trust is kept: it exists here, and did not come from {site.address}" in merging_of.told
    site.publish("company", "harbor-trust", company("harbor-trust", description="Theirs."))
    merging_of.run()
    assert Company.objects.get(slug="harbor-trust").description == "Ours."


def test_only_chosen_kinds_are_merged_and_others_are_read_when_they_are_chosen(merging_of, site):
    site.publish("company", "quay", employing("quay", "ada-lund"))
    site.export()
    merging_of.run(kinds=["company"])
    assert (slugs(), slugs(Person), slugs(Framework)) == ({"harbor-trust", "quay"}, set(), set())
    assert Position.objects.get(company__slug="quay").person is None
    site.publish("person", "bo-reef", person("bo-reef"))
    merging_of.run(kinds=["company"])
    assert slugs(Person) == set()
    site.export()
    merging_of.run(kinds=["company", "person"])
    assert slugs(Person) == {"ada-lund", "bo-reef"}


def test_what_people_changed_here_stays_and_what_was_erased_stays_erased(merging_of, site):
    merging_of.run()
    me = owner()
    add_owner(COMMAND, "harbor-trust", me.account_id)
    update_company(me, "harbor-trust", CompanyChange({"description": "By its owner."}))
    erase_person(COMMAND, "ada-lund")
    site.publish(
        "company", "harbor-trust", company("harbor-trust", description="By the origin.", website="https://h.example")
    )
    site.publish("person", "ada-lund", person("ada-lund", "Ada Lund-Moss"))
    merging_of.run()
    row = Company.objects.get(slug="harbor-trust")
    assert (row.description, row.website) == ("By its owner.", "https://h.example")
    assert slugs(Person) == set()


def test_one_run_is_one_import_that_can_be_undone(merging_of, site):
    site.publish("company", "quay", company("quay"))
    merging_of.run()
    run = ImportRun.objects.get()
    assert run.files == [site.address]
    undo_import(COMMAND, run.pk)
    assert slugs(state=State.PUBLISHED) == set()


def test_the_parts_of_a_run_are_one_entry_of_the_audit_log_and_one_result(merging_of, site):
    site.export()
    site.publish("company", "quay", company("quay"))
    merging_of.run()
    assert slugs() == {"harbor-trust", "quay"}
    assert SecurityEvent.objects.filter(event="records_imported").count() == 1
    run = ImportRun.objects.get()
    assert str(run.result) == (
        "people: 1 new, 0 changed, 0 unchanged; companies: 2 new, 0 changed, 0 unchanged; "
        "frameworks: 1 new, 0 changed, 0 unchanged; no invalid rows"
    )
    site.publish("company", "mole", company("mole"))
    merging_of.run()
    assert SecurityEvent.objects.filter(event="records_imported").count() == 2, "another run is another import"


def test_a_page_whose_place_was_not_noted_is_read_again_and_changes_nothing(merging_of, site, monkeypatch):
    merging_of.run()
    site.publish("company", "quay", company("quay"))
    with monkeypatch.context() as patched:
        patched.setattr(Merge, "_write_note", lambda *_: 1 / 0)  # the process is killed here
        with pytest.raises(ZeroDivisionError):
            merging_of.run()
    before = Company.objects.get(slug="quay").version
    merging_of.run()
    assert Company.objects.get(slug="quay").version == before
    assert not (next((merging_of.folder / merging.FOLDER).iterdir()) / "import").exists()


def test_another_history_ends_the_merge_and_restart_reads_it(merging_of, site):
    site.publish("company", "quay", company("quay"))
    site.export()
    merging_of.run()
    site.salt = "another"
    with pytest.raises(Conflict, match="another history than the one that was merged until change 4") as raised:
        merging_of.run()
    assert "--restart" in raised.value.hint
    site.unlist("company", "quay")
    site.export()
    with pytest.raises(BadRequest, match="more than a tenth"):
        merging_of.run(restarts=True)
    assert slugs(state=State.PUBLISHED) == {"harbor-trust", "quay"}
    merging_of.run(restarts=True, limit=1)
    assert slugs(state=State.PUBLISHED) == {"harbor-trust"}
    assert "company quay is unlisted: the origin no longer has it" in merging_of.told


def test_a_feed_that_no_longer_reaches_back_asks_for_the_exports(merging_of, site):
    merging_of.run()
    for number in range(5):
        site.publish("company", f"quay-{number}", company(f"quay-{number}"))
    site.export()
    site.oldest = site.edition
    with pytest.raises(BehindTooFar):
        merging_of.run()


def test_a_damaged_note_says_how_to_begin_again(merging_of):
    merging_of.run()
    note = next((merging_of.folder / merging.FOLDER).iterdir()) / "note.json"
    note.write_bytes(b'{"origin": 1}')
    with pytest.raises(BadRequest, match="is damaged") as raised:
        merging_of.run()
    assert "--restart" in raised.value.hint
    merging_of.run(restarts=True)
    assert json.loads(note.read_bytes())["after"] == 3


@pytest.mark.parametrize(
    ("content", "rows", "said"),
    [(b'{"company":{"id":"a","name":"A"}}\n', 2, "has 1 rows, and its list says 2"), (b"[]\n", 1, "is no company")],
)
def test_exports_that_are_not_what_their_list_says_bring_nothing(merging_of, site, content, rows, said):
    site.put_export("companies", content, rows)
    with pytest.raises(BadRequest, match=said):
        merging_of.run()
    assert slugs() == set()


def test_an_invalid_document_is_reported_and_the_others_are_merged(merging_of, site):
    merging_of.run()
    site.publish("company", "bad", {"company": {"id": "bad"}})
    site.publish("company", "good", company("good"))
    merging_of.run()
    assert slugs() == {"harbor-trust", "good"}
    assert any(told.startswith("warning: companies.jsonl.gz:1") for told in merging_of.told), merging_of.told


def test_a_registry_that_sends_something_else_is_refused(merging_of, site):
    merging_of.run()
    site.publish("company", "quay", company("quay"))
    site.answers["/api/v1/changes"] = lambda _, given: Given(
        200, given.body.replace(b'"sequence": 4', b'"sequence": 7')
    )
    with pytest.raises(BadRequest, match="not consecutive"):
        merging_of.run()
    assert slugs() == {"harbor-trust"}


def test_no_line_reaches_a_row_under_another_name_than_that_by_which_it_is_known(merging_of, site):
    published(owner(), name="Ours", description="Ours.")
    merging_of.run()
    theirs = company("ours", description="Theirs.")
    theirs["company"]["slug"] = "harmless"
    site.publish("company", "harmless", theirs)
    site.publish(
        "framework", "river-score", {**framework("river-score"), "company": {"slug": "harbor-trust", "id": "ours"}}
    )
    merging_of.run()
    assert Company.objects.get(slug="ours").description == "Ours."
    assert Framework.objects.get(slug="river-score").company is None


def test_a_person_who_was_merged_into_another_here_is_not_changed_by_the_line_of_the_former(merging_of, site):
    published(owner(), name="Quay", positions=[{"person": {"name": "Ada Lund"}}])
    ours = Person.objects.get()
    MergedPerson.objects.create(slug="ada-of-old", person=ours)
    site.publish("person", "ada-of-old", person("ada-of-old", "Forged"))
    site.export()
    merging_of.run()
    ours.refresh_from_db()
    assert ours.name == "Ada Lund"
    assert any(told.startswith("person ada-of-old is kept") for told in merging_of.told)


def test_a_listing_that_has_an_owner_here_is_not_unlisted_by_the_origin(merging_of, site):
    merging_of.run()
    add_owner(COMMAND, "harbor-trust", owner().account_id)
    site.unlist("company", "harbor-trust")
    merging_of.run()
    site.export()
    merging_of.run(restarts=True)
    assert slugs(state=State.PUBLISHED) == {"harbor-trust"}
    assert "company harbor-trust (has an owner) stays public, and the origin no longer has it" in merging_of.told


@pytest.mark.parametrize(
    "hostile",
    [
        {"company": {"id": "bad", "name": "Bad"}, "positions": "text"},
        {"company": {"id": "bad", "name": "Bad"}, "positions": ["text", {"person": "text"}, {"person": {"slug": []}}]},
    ],
)
def test_positions_of_another_form_are_left_to_the_importer(merging_of, site, hostile):
    merging_of.run()
    site.publish("company", "bad", hostile)
    site.publish("company", "good", company("good"))
    merging_of.run()
    assert "good" in slugs()


@pytest.mark.parametrize("line", [{"company": []}, {"company": {"id": 7}}, [], {"company": {"slug": "no-id"}}])
def test_a_document_without_a_slug_ends_the_merge(merging_of, site, line):
    merging_of.run()
    site.publish("company", "bad", line)
    with pytest.raises(BadRequest, match="is no company"):
        merging_of.run()
