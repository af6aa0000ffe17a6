"""A private profile is published by its account alone: not by a tool, form, suggestion or import of others."""

import pytest

from make import registry as make
from make.accounts import account, signed_in
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import update_company
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.frameworks.operations import create_framework
from muniment.registry.models import Company, Person
from muniment.registry.people import positions, profiles
from muniment.registry.people.profiles import ProfileChange
from muniment.registry.review.claims import decide_request, suggest_edit
from services.manage import manage

pytestmark = pytest.mark.django_db
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
