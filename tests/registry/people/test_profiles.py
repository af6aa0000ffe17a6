"""A person's profile: joined to one account by a reviewer, edited by that account alone."""

import pytest

from make import registry as make
from make.accounts import account, signed_in
from make.registry import (
    agent_of,
    changes,
    document,
    owner,
    published,
    reviewer,
)
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.frameworks.authoring import create_framework
from muniment.registry.models import Company, HistoryEntry, Person
from muniment.registry.people import positions, profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review import workflow
from muniment.registry.review.claims import decide_request, suggest_edit
from services.manage import manage

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
    for other_account in (other, owner()):
        with pytest.raises(Conflict):
            profiles.join_person(reviewer(), ada, other_account.account_id)
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
    workflow.unlist_company(judge, mine.slug, "Closed.")
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


TITLE = "Convicted fraudster"
NAMED = [{"title": TITLE, "person": {"slug": "tia-reef", "name": "Tia Reef"}}]


@pytest.fixture
def tia():
    """Return the account of a private profile."""
    actor = make.owner()
    profiles.create_profile(actor, ProfileChange(name="Tia Reef", bio="Private."))
    return actor


@pytest.fixture
def stranger(tia):
    return account("stranger@tidal.example")


@pytest.fixture
def listing(stranger):
    return make.published(stranger.actor("web"), name="Tidal")


def stays_private(tia):
    assert make.document("person", "tia-reef") is None
    assert [each.title for each in positions.list_positions(tia) if each.state == positions.CONFIRMED] == []
    assert not [change for change in make.changes() if change[1] == "tia-reef"]


def test_by_a_tool_a_private_profile_is_an_unknown_slug(tia, stranger, listing):
    token = tokens.create_token(stranger.actor("web"), "laptop", permitted=SCOPES).text
    with manage() as server:
        error = server.error(token, "update_my_company", slug=listing.slug, changes={"positions": {"add": NAMED}})
    assert "no person has the slug 'tia-reef'" in error["message"]
    stays_private(tia)


def test_by_the_form_a_private_profile_is_an_unknown_slug(tia, stranger, listing):
    path = f"/manage/companies/{listing.slug}/edit/team"
    given = {"positions-0-title": TITLE, "positions-0-name": "Tia Reef", "positions-0-slug": "tia-reef"}
    answer = signed_in(stranger).post(path, given)
    assert answer.status_code == 422
    assert "no person has the slug" in answer.content.decode()
    stays_private(tia)


def test_a_suggestion_names_no_private_profile_and_an_approval_asks_one_that_became_private(tia, stranger, listing):
    with pytest.raises(BadFields, match="no person has the slug 'tia-reef'"):
        suggest_edit(stranger.actor("web"), listing.slug, CompanyChange(positions=NAMED), "She works there.")
    Person.objects.filter(slug="tia-reef").update(published=True, listed=True)
    asked = suggest_edit(stranger.actor("web"), listing.slug, CompanyChange(positions=NAMED), "She works there.")
    Person.objects.filter(slug="tia-reef").update(published=False, listed=False)
    decide_request(make.reviewer(), asked.pk, approve=True)
    stays_private(tia)
    assert make.document("company", listing.slug)["positions"][0]["person"] == {"name": "Tia Reef"}


def test_a_reviewer_who_names_a_private_profile_asks_it(tia, listing):
    update_company(make.reviewer(), listing.slug, CompanyChange(positions=NAMED))
    stays_private(tia)


def test_a_reviewers_token_names_no_private_profile_and_the_reviewer_does_on_the_pages(tia):
    judge = make.reviewer()
    own = make.published(judge, name="Tidal")
    with pytest.raises(BadFields, match="no person has the slug 'tia-reef'"):
        update_company(make.agent_of(judge), own.slug, CompanyChange(positions=NAMED))
    assert update_company(judge, own.slug, CompanyChange(positions=NAMED)).awaiting_people == ["tia-reef"]
    stays_private(tia)


def test_the_holder_of_a_private_profile_names_it_with_a_token(tia):
    own = make.published(tia, name="Tidal")
    change = CompanyChange(positions=NAMED)
    assert update_company(make.agent_of(tia), own.slug, change, dry_run=True).awaiting_people == []
    other = make.owner()
    listing_of_other = make.published(other, name="Other")
    with pytest.raises(BadFields, match="no person has the slug 'tia-reef'"):
        update_company(make.agent_of(other), listing_of_other.slug, change)


def test_an_import_that_names_a_private_profile_shows_the_name_alone(tia, tmp_path):
    warned = []
    row = {"company": {"id": "tidal", "name": "Tidal"}, "positions": NAMED}
    for _ in range(2):  # the same file again changes nothing
        import_registry(make.lines(tmp_path / "companies.jsonl", row), warn=warned.append)
        stays_private(tia)
        assert make.document("company", "tidal")["positions"][0]["person"] == {"name": "Tia Reef"}
    assert {each.reason for each in warned} == {"is a private profile; the position shows its name alone"}
    assert make.keys("person") == []
    nameless = {**row, "positions": [{"title": TITLE, "person": {"slug": "tia-reef"}}]}
    import_registry(make.lines(tmp_path / "companies.jsonl", nameless), ImportOptions(overwrite=True))
    assert make.document("company", "tidal")["positions"] == []
    import_registry(make.lines(tmp_path / "people.jsonl", {"slug": "tia-reef", "name": "Tia Reef", "bio": "Other."}))
    stays_private(tia)


def test_an_import_keeps_the_link_that_a_person_made_and_published(tia, tmp_path):
    company = make.published(tia, name="Tidal", positions=NAMED)
    row = {"company": {"id": company.slug, "name": "Tidal"}, "positions": [{**NAMED[0], "title": "Founder"}]}
    import_registry(make.lines(tmp_path / "companies.jsonl", row), ImportOptions(overwrite=True))
    assert make.document("company", company.slug)["positions"][0]["person"]["slug"] == "tia-reef"


def test_a_framework_shows_no_listing_that_is_not_public(stranger):
    draft = make.draft(stranger.actor("web"), description="Private.")
    program = create_framework(make.reviewer(), name="Ember", kind="program", company=draft.slug)
    score = create_framework(make.reviewer(), name="Score", kind="score", company=draft.slug)
    assert make.document("framework", program.slug) is None
    found = make.document("framework", score.slug)
    assert (found["company"], found["companyDescription"]) == (None, "")
    assert Company.objects.get(slug=draft.slug).published is False
