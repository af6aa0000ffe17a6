"""What people take back: changes of their profile, and its publication."""

import pytest

from make.registry import agent_of, changes, document, keys, link_names, owner, published, reviewer
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.models import HistoryEntry, Person
from muniment.registry.people import profiles
from muniment.registry.people.profiles import ProfileChange

pytestmark = pytest.mark.django_db
PORTRAIT = f"/pictures/{'a' * 32}-512.webp"


@pytest.fixture
def ada():
    """Return a person with a claimed profile, named by a company of another owner."""
    me = owner()
    published(
        owner(),
        name="Harbour",
        positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}, {"person": {"name": "Bo"}}],
    )
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    return me


def actions(actor):
    return [entry.action for entry in profiles.profile_history(actor).items]


def test_a_person_unlists_their_profile_and_companies_keep_the_name_alone(ada):
    order = keys("person")
    profiles.unlist_profile(ada)
    assert document("person", "ada-moss") is None
    assert keys("person") == ["bo"]
    assert ("person", "ada-moss", "unlisted") in changes()
    first, second = document("company", "harbour")["positions"]
    assert (first["title"], first["person"]) == ("Chair", {"name": "Ada Moss"})
    assert second["person"] == {"name": "Bo", "slug": "bo"}
    assert document("company", "harbour")["company"]["teamSize"] == 2
    profiles.unlist_profile(ada)  # repeating succeeds
    profiles.publish_profile(ada)
    profiles.publish_profile(ada)
    assert keys("person") == order
    assert document("company", "harbour")["positions"][0]["person"] == {"name": "Ada Moss", "slug": "ada-moss"}
    assert actions(ada) == ["relisted", "unlisted", "joined"]


def test_a_private_profile_is_published_by_its_account():
    me = owner()
    profiles.create_profile(me, ProfileChange(name="Cy Wren"))
    assert document("person", "cy-wren") is None
    profiles.publish_profile(me)
    profiles.publish_profile(me)  # repeating succeeds
    assert document("person", "cy-wren")["name"] == "Cy Wren"
    profiles.unlist_profile(me)
    assert document("person", "cy-wren") is None
    assert actions(me) == ["unlisted", "published", "created"]


def test_an_unlisted_person_stays_unlisted_whatever_names_them(ada):
    profiles.unlist_profile(ada)
    profiles.update_profile(ada, ProfileChange(bio="Sails."))
    with pytest.raises(BadFields, match="no person has the slug 'ada-moss'"):
        published(owner(), positions=[{"person": {"name": "Ada Moss", "slug": "ada-moss"}}])
    assert document("person", "ada-moss") is None


def test_an_owner_s_write_back_of_a_name_alone_changes_nothing(ada):
    holder = Person.objects.get(slug="ada-moss").positions.get().company.owners.get().actor("web")
    profiles.unlist_profile(ada)
    read = listings.get_company(holder, "harbour").bundle["positions"]
    assert listings.update_company(holder, "harbour", CompanyChange(positions=read)).applied == []
    assert Person.objects.get(slug="ada-moss").positions.count() == 1


def test_namesakes_are_told_apart_by_the_position_when_one_is_unlisted():
    me, mine = owner(), owner()
    published(owner(), positions=[{"person": {"name": "Ada Moss"}}])
    link_names(published(owner(), positions=[{"person": {"name": "Ada Moss", "isNew": True}}]).slug)
    slug = published(mine, positions=[{"person": {"slug": "ada-moss"}}, {"person": {"slug": "ada-moss-2"}}]).slug
    profiles.join_person(reviewer(), "ada-moss-2", me.account_id)
    profiles.unlist_profile(me)
    read = listings.get_company(mine, slug).bundle["positions"]
    assert [each["person"].get("slug") for each in read] == ["ada-moss", None]
    assert listings.update_company(mine, slug, CompanyChange(positions=read)).applied == []


@pytest.mark.parametrize("stranger", ["visitor", "other owner", "reviewer", "reviewer's token"])
def test_no_other_account_takes_a_profile_back(ada, stranger):
    profiles.update_profile(ada, ProfileChange(bio="Sails."))
    entry = HistoryEntry.objects.latest("pk").pk
    actor = {
        "visitor": lambda: VISITOR,
        "other owner": owner,
        "reviewer": reviewer,
        "reviewer's token": lambda: agent_of(reviewer()),
    }[stranger]()
    assert profiles.profile_history(actor).items == []
    for attempt in (
        lambda: profiles.revert_profile(actor, entry),
        lambda: profiles.unlist_profile(actor),
        lambda: profiles.publish_profile(actor),
    ):
        with pytest.raises(BadRequest, match="no profile"):
            attempt()
    if actor.account_id:
        profiles.create_profile(actor, ProfileChange(name="Bo Reef"))
        with pytest.raises(NotFound):
            profiles.revert_profile(actor, entry)
    assert document("person", "ada-moss")["bio"] == "Sails."


def test_a_profile_that_a_reviewer_unlisted_is_not_published_by_the_person(ada):
    Person.objects.filter(slug="ada-moss").update(unlisted_by="reviewer")
    for attempt in (profiles.publish_profile, profiles.unlist_profile):
        with pytest.raises(Forbidden, match="A reviewer unlisted"):
            attempt(ada)
    assert Person.objects.get(slug="ada-moss").unlisted_by == "reviewer"


def test_a_change_of_a_profile_is_undone_with_its_name_on_companies(ada):
    profiles.update_profile(ada, ProfileChange(name="Ada M. Moss", bio="Sails."))
    renamed = HistoryEntry.objects.latest("pk")
    assert document("company", "harbour")["positions"][0]["person"]["name"] == "Ada M. Moss"
    done = profiles.revert_profile(ada, renamed.pk)
    assert done.applied == ["name", "bio"]
    assert document("company", "harbour")["positions"][0]["person"]["name"] == "Ada Moss"
    assert document("person", "ada-moss")["bio"] is None
    assert actions(ada) == ["reverted", "updated", "joined"]


def test_a_former_picture_comes_back(ada):
    profiles.set_portrait(ada, PORTRAIT)
    profiles.set_portrait(ada, "")
    profiles.revert_profile(ada, HistoryEntry.objects.latest("pk").pk)
    assert document("person", "ada-moss")["picture"] == PORTRAIT
    profiles.revert_profile(ada, HistoryEntry.objects.latest("pk").pk)
    assert "picture" not in document("person", "ada-moss")


def test_undoing_another_change_keeps_the_picture(ada):
    profiles.set_portrait(ada, PORTRAIT)
    profiles.update_profile(ada, ProfileChange(bio="Sails."))
    assert profiles.revert_profile(ada, HistoryEntry.objects.latest("pk").pk).applied == ["bio"]
    assert document("person", "ada-moss")["picture"] == PORTRAIT


def test_undoing_an_old_change_of_a_profile_warns_of_later_ones(ada):
    for bio in ("Sails.", "Sails and rows."):
        profiles.update_profile(ada, ProfileChange(bio=bio))
    first = HistoryEntry.objects.filter(person__slug="ada-moss", action="updated").earliest("pk")
    with pytest.raises(Conflict, match="Later changes touched the same fields: bio"):
        profiles.revert_profile(ada, first.pk)
    assert document("person", "ada-moss")["bio"] == "Sails and rows."
    profiles.revert_profile(ada, first.pk, overwrite=True)
    assert document("person", "ada-moss")["bio"] is None


def test_a_claim_cannot_be_reverted(ada):
    joined = HistoryEntry.objects.get(person__slug="ada-moss", action="joined")
    with pytest.raises(BadRequest, match="no change that can be reverted"):
        profiles.revert_profile(ada, joined.pk)


def test_a_lost_update_of_a_profile_is_refused(ada):
    version = profiles.get_profile(ada).version
    profiles.update_profile(ada, ProfileChange(bio="Sails."), expected_version=version)
    for stale in (
        lambda: profiles.update_profile(ada, ProfileChange(bio="Rows."), expected_version=version),
        lambda: profiles.update_profile(ada, ProfileChange(bio="Rows."), expected_version=version, dry_run=True),
        lambda: profiles.revert_profile(ada, HistoryEntry.objects.latest("pk").pk, expected_version=version),
    ):
        with pytest.raises(Conflict, match=f"is at version {version + 1}, not {version}"):
            stale()
    assert document("person", "ada-moss")["bio"] == "Sails."
