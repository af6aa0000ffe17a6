"""A person's profile: joined to one account by a reviewer, edited by that account alone."""

import pytest

from make.registry import (
    agent_of,
    changes,
    document,
    owner,
    published,
    reviewer,
)
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company.changes import BadFields
from muniment.registry.models import HistoryEntry, Person
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import decisions

pytestmark = pytest.mark.django_db
PORTRAIT = f"https://registry.example/pictures/{'a' * 32}-512.webp"


@pytest.fixture
def ada():
    """Return the slug of a public person without an account."""
    published(owner(), positions=[{"person": {"name": "Ada Moss"}}])
    return Person.objects.get(name="Ada Moss").slug


def test_a_visitor_creates_no_profile():
    with pytest.raises(Forbidden):
        profiles.create_profile(VISITOR, ProfileChange(name="Ada"))
    assert not Person.objects.exists()


def test_a_profile_needs_a_name():
    with pytest.raises(BadFields) as problem:
        profiles.create_profile(owner(), ProfileChange(bio="Sails."))
    assert [fault.field for fault in problem.value.faults] == ["name"]
    assert not Person.objects.exists()


@pytest.mark.parametrize("stranger", ["visitor", "another account", "reviewer"])
def test_only_the_account_of_a_profile_changes_it(ada, stranger):
    profiles.join_person(reviewer(), ada, owner().account_id)
    actor = {"visitor": lambda: VISITOR, "another account": owner, "reviewer": reviewer}[stranger]()
    assert profiles.get_profile(actor) is None
    with pytest.raises(BadRequest):
        profiles.update_profile(actor, ProfileChange(bio="Mine."))
    assert document("person", ada)["bio"] is None


def test_only_a_reviewer_at_work_joins_a_person_to_an_account(ada):
    me = owner()
    for actor in (me, VISITOR, agent_of(reviewer())):
        with pytest.raises(Forbidden):
            profiles.join_person(actor, ada, me.account_id)
    assert profiles.get_profile(me) is None


def test_a_person_who_does_not_exist_cannot_be_joined():
    with pytest.raises(NotFound):
        profiles.join_person(reviewer(), "missing", owner().account_id)


def test_a_person_and_an_account_are_joined_one_to_one(ada):
    me, other = owner(), owner()
    profiles.create_profile(other, ProfileChange(name="Bo Reef"))
    profiles.join_person(reviewer(), ada, me.account_id)
    for account in (other, owner()):
        with pytest.raises(Conflict):
            profiles.join_person(reviewer(), ada, account.account_id)
    with pytest.raises(Conflict):
        profiles.join_person(reviewer(), "bo-reef", me.account_id)
    assert (profiles.get_profile(me).slug, profiles.get_profile(other).slug) == (ada, "bo-reef")


def test_joining_makes_the_person_public_and_the_history_names_the_reviewer():
    me, judge = owner(), reviewer()
    slug = profiles.create_profile(me, ProfileChange(name="Bo Reef", bio="Mends boats.")).slug
    assert document("person", slug) is None
    profiles.join_person(judge, slug, me.account_id)
    assert document("person", slug)["bio"] == "Mends boats."
    entry = HistoryEntry.objects.filter(person__slug=slug).order_by("-pk").first()
    assert (entry.action, entry.account_id, entry.after) == ("joined", judge.account_id, {"account": me.account_id})


def test_a_profile_is_edited_by_its_own_account_alone_and_is_public_at_once():
    me, judge = owner(), reviewer()
    mine = published(me, positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    with pytest.raises(BadRequest, match="This account has no profile"):
        profiles.update_profile(me, ProfileChange(bio="Me."))
    profiles.join_person(judge, "ada-moss", me.account_id)
    update = profiles.update_profile(me, ProfileChange(name="Ada M. Moss", bio="Sails."))
    assert update.applied == ["name", "bio"]
    assert document("person", "ada-moss")["bio"] == "Sails."
    assert document("company", mine.slug)["positions"][0]["person"]["name"] == "Ada M. Moss"
    profiles.update_profile(me, ProfileChange(bio=None))
    assert document("person", "ada-moss")["bio"] is None
    assert profiles.update_profile(me, ProfileChange(bio="Dry."), dry_run=True).diff == {
        "bio": {"before": None, "after": "Dry."}
    }
    assert document("person", "ada-moss")["bio"] is None
    stranger = owner()
    assert profiles.get_profile(stranger) is None
    with pytest.raises(BadRequest):
        profiles.update_profile(stranger, ProfileChange(bio="Theirs."))
    with pytest.raises(Conflict):
        profiles.join_person(judge, "ada-moss", stranger.account_id)
    decisions.unlist_company(judge, mine.slug, "Closed.")
    assert document("person", "ada-moss")["positions"] == []


@pytest.mark.parametrize("change", [{"name": " "}, {"name": None}, {"bio": 5}, {"bio": "x" * 20_001}, {"bio": "\0"}])
def test_a_profile_refuses_what_its_fields_do_not_take(change):
    me = owner()
    person = profiles.create_profile(me, ProfileChange(name="Bo"))
    assert document("person", person.slug) is None
    with pytest.raises(BadFields):
        profiles.update_profile(me, ProfileChange(**change))
    with pytest.raises(Conflict):
        profiles.create_profile(me, ProfileChange(name="Bo again"))


def test_joining_again_changes_nothing_for_others_and_is_accepted(ada):
    me = owner()
    for _ in range(2):
        assert profiles.join_person(reviewer(), ada, me.account_id).account_id == me.account_id


def test_a_created_profile_has_an_id_and_a_history():
    me = owner()
    person = profiles.create_profile(me, ProfileChange(name="Bo Reef", bio="Mends boats."))
    assert len(person.document_id) >= 20
    entry = HistoryEntry.objects.get(person=person)
    assert (entry.action, entry.account_id, entry.before) == ("created", me.account_id, {})
    assert entry.after == {"name": "Bo Reef", "bio": "Mends boats."}


def test_a_new_name_is_published_with_the_listings_that_show_it_and_no_others(ada):
    me = owner()
    profiles.join_person(reviewer(), ada, me.account_id)
    published(owner(), positions=[{"person": {"name": "Bo Reef"}}])
    showing = Person.objects.get(slug=ada).positions.get().company.slug
    before = len(changes())
    profiles.update_profile(me, ProfileChange(bio="Sails."))
    assert [each[:2] for each in changes()[before:]] == [("person", ada)]
    before = len(changes())
    profiles.update_profile(me, ProfileChange(name="Ada M. Moss"))
    assert sorted(each[:2] for each in changes()[before:]) == [("company", showing), ("person", ada)]


def test_a_portrait_is_shown_with_the_person_and_taken_away_again():
    me = owner()
    published(me, positions=[{"person": {"name": "Ada Moss"}}])
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    version = profiles.set_portrait(me, PORTRAIT).version
    assert document("person", "ada-moss")["picture"] == PORTRAIT
    assert profiles.set_portrait(me, "").version == version + 1
    assert "picture" not in document("person", "ada-moss")
    entries = HistoryEntry.objects.filter(person__slug="ada-moss", action="updated").order_by("pk")
    assert [(entry.before, entry.after) for entry in entries] == [
        ({"picture": None}, {"picture": PORTRAIT}),
        ({"picture": PORTRAIT}, {"picture": None}),
    ]


@pytest.mark.parametrize("stranger", ["visitor", "account without a profile"])
def test_a_portrait_belongs_to_an_account_with_a_profile(stranger):
    published(owner(), positions=[{"person": {"name": "Ada Moss"}}])
    with pytest.raises(BadRequest):
        profiles.set_portrait(VISITOR if stranger == "visitor" else owner(), PORTRAIT)
    assert "picture" not in Person.objects.get(slug="ada-moss").extra
