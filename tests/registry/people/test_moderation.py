"""Reviewers correct profiles and merge two people who are one."""

import pytest

from make.accounts import Letters
from make.registry import agent_of, changes, document, lines, owner, published, reviewer
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company.changes import BadFields
from muniment.registry.exchange.importer import import_registry
from muniment.registry.models import HistoryEntry, MergedPerson, Person
from muniment.registry.people import moderation, profiles
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.moderation import correct_person, merge_people, relist_person, unlist_person
from muniment.registry.people.profiles import ProfileChange

pytestmark = pytest.mark.django_db


@pytest.fixture
def twice():
    """Publish two people who are one: at two companies, and both at a third."""
    published(owner(), name="Harbour Board", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    published(owner(), name="Quay Trust", positions=[{"title": "Cook", "person": {"name": "A. Moss"}}])
    both = [{"title": "Clerk", "person": {"slug": "ada-moss"}}, {"title": "Clerk", "person": {"slug": "a-moss"}}]
    published(owner(), name="Tide House", positions=both)


@pytest.mark.parametrize("stranger", ["visitor", "owner", "reviewer's token"])
def test_only_a_reviewer_at_work_corrects_or_merges_people(twice, stranger):
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[stranger]()
    with pytest.raises(Forbidden):
        correct_person(actor, "ada-moss", ProfileChange(bio="Mine."))
    with pytest.raises(Forbidden):
        merge_people(actor, "a-moss", "ada-moss")
    assert document("person", "a-moss") is not None


def test_a_correction_is_public_at_once_and_in_the_history(twice):
    judge = reviewer()
    update = correct_person(judge, "a-moss", ProfileChange(name="Ada Moss", bio="Sails."))
    assert update.applied == ["name", "bio"]
    assert document("person", "a-moss")["bio"] == "Sails."
    assert document("company", "quay-trust")["positions"][0]["person"]["name"] == "Ada Moss"
    entry = HistoryEntry.objects.get(person__slug="a-moss", action="corrected")
    assert (entry.account_id, entry.before["name"], entry.after["name"]) == (judge.account_id, "A. Moss", "Ada Moss")
    before = len(changes())
    assert correct_person(judge, "a-moss", ProfileChange(bio="Sails.")).applied == []
    assert len(changes()) == before


def test_a_correction_refuses_what_a_profile_does_not_take(twice):
    with pytest.raises(BadFields):
        correct_person(reviewer(), "a-moss", ProfileChange(name=" "))
    with pytest.raises(NotFound):
        correct_person(reviewer(), "missing", ProfileChange(name="Bo"))


def test_a_reviewer_unlists_a_profile_which_only_a_reviewer_publishes_again(twice):
    me, judge = owner(), reviewer()
    profiles.join_person(judge, "a-moss", me.account_id)
    with pytest.raises(BadRequest):
        unlist_person(judge, "a-moss", " ")
    for _ in range(2):
        unlist_person(judge, "a-moss", "The name is in dispute.")
    assert document("person", "a-moss") is None
    assert document("company", "quay-trust")["positions"][0]["person"] == {"name": "A. Moss"}
    assert HistoryEntry.objects.filter(person__slug="a-moss", action="unlisted").count() == 1
    with pytest.raises(Forbidden):
        profiles.publish_profile(me)
    relist_person(judge, "a-moss")
    assert document("person", "a-moss") is not None
    profiles.unlist_profile(me)
    with pytest.raises(Conflict):
        relist_person(judge, "a-moss")


@pytest.mark.parametrize(
    "operation", [lambda actor: unlist_person(actor, "a-moss", "No."), lambda actor: relist_person(actor, "a-moss")]
)
def test_only_a_reviewer_unlists_and_relists_other_people(twice, operation):
    for actor in (VISITOR, owner(), agent_of(reviewer())):
        with pytest.raises(Forbidden):
            operation(actor)


@pytest.mark.django_db(transaction=True)
def test_the_account_of_an_unlisted_profile_is_told_why(twice, settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    letters, me = Letters(), owner("moss@harbour.example")
    profiles.join_person(reviewer(), "a-moss", me.account_id)
    unlist_person(reviewer(), "a-moss", "The name is in dispute.")
    relist_person(reviewer(), "a-moss")
    (first, text), (second, _) = letters.to("moss@harbour.example")
    assert (first, second) == ("[Muniment] Your profile was unlisted", "[Muniment] Your profile is public again")
    assert "The name is in dispute." in text


def test_a_merged_person_leaves_their_positions_profile_and_history_to_the_other(twice):
    correct_person(reviewer(), "a-moss", ProfileChange(bio="Sails."))
    before = len(changes())
    merge_people(reviewer(), "a-moss", "ada-moss")
    assert document("person", "a-moss") is None
    shown = document("person", "ada-moss")
    assert shown["bio"] == "Sails."
    places = {(place["company"]["id"], place["title"]) for place in shown["positions"]}
    assert places == {("harbour-board", "Chair"), ("quay-trust", "Cook"), ("tide-house", "Clerk")}
    assert [place["person"]["slug"] for place in document("company", "tide-house")["positions"]] == ["ada-moss"]
    assert ("person", "a-moss", "unlisted") in changes()[before:]
    assert HistoryEntry.objects.filter(person__slug="ada-moss", action="corrected").exists()
    assert HistoryEntry.objects.filter(company__slug="quay-trust", action="person merged").exists()


def test_the_account_moves_and_two_accounts_are_not_merged(twice):
    me, other = owner(), owner()
    profiles.join_person(reviewer(), "a-moss", me.account_id)
    profiles.join_person(reviewer(), "ada-moss", other.account_id)
    with pytest.raises(Conflict):
        merge_people(reviewer(), "a-moss", "ada-moss")
    Person.objects.filter(slug="ada-moss").update(account=None)
    merge_people(reviewer(), "a-moss", "ada-moss")
    assert profiles.get_profile(me).slug == "ada-moss"


def test_a_change_before_the_people_are_locked_is_kept(twice, monkeypatch):
    found = moderation.find_person

    def change_after(slug):
        person = found(slug)
        Person.objects.filter(slug="ada-moss", bio="").update(bio="Sails.")
        return person

    monkeypatch.setattr(moderation, "find_person", change_after)
    merge_people(reviewer(), "ada-moss", "a-moss")
    monkeypatch.undo()
    assert found("a-moss").bio == "Sails."


def test_a_merge_names_two_people(twice):
    with pytest.raises(BadRequest):
        merge_people(reviewer(), "a-moss", "a-moss")
    for pair in (("missing", "ada-moss"), ("ada-moss", "missing")):
        with pytest.raises(NotFound):
            merge_people(reviewer(), *pair)


def test_an_import_that_names_the_merged_person_means_the_other(twice, tmp_path):
    merge_people(reviewer(), "a-moss", "ada-moss")
    lines(tmp_path / "in" / "people.jsonl", {"slug": "a-moss", "name": "A. Moss"})
    company = {"id": "quay-trust", "slug": "quay-trust", "name": "Quay Trust"}
    positions = [{"title": "Cook", "person": {"name": "A. Moss", "slug": "a-moss"}}]
    lines(tmp_path / "in" / "companies.jsonl", {"company": company, "positions": positions})
    warnings = []
    summary = import_registry(tmp_path / "in", warn=lambda found: warnings.append(str(found)))
    assert (summary.bad, len(warnings)) == (0, 1)
    assert "was merged into 'ada-moss'" in warnings[0]
    assert [place["person"]["slug"] for place in document("company", "quay-trust")["positions"]] == ["ada-moss"]
    assert not Person.objects.filter(slug="a-moss").exists()


def test_an_erased_person_takes_the_slugs_merged_into_them_along(twice, tmp_path):
    merge_people(reviewer(), "a-moss", "ada-moss")
    erase_person(reviewer(), "ada-moss")
    assert not MergedPerson.objects.exists()
    lines(tmp_path / "people.jsonl", {"slug": "a-moss", "name": "A. Moss"})
    warnings = []
    import_registry(tmp_path / "people.jsonl", warn=lambda found: warnings.append(str(found)))
    assert "was erased" in warnings[0]
    assert not Person.objects.filter(slug="a-moss").exists()
