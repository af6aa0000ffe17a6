"""Names on listings without a profile: who sees them, and who links them; and the mail of the upgrade."""

import pytest

from make.registry import agent_of, document, owner, published, reviewer
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.people import positions, profiles
from muniment.registry.people.profiles import ProfileChange

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"  # the test runner puts another in its place


@pytest.fixture
def mine():
    return owner("owner@tidal.example")


@pytest.fixture
def ada():
    """Return the account of a public, claimed profile."""
    me = owner("ada@moss.example")
    published(owner(), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada Moss"}}])
    profiles.join_person(reviewer(), "ada-moss", me.account_id)
    return me


@pytest.fixture
def tidal(mine, ada):
    """Return the slug of a listing that names Ada and Bo without a link."""
    slug = published(mine, name="Tidal").slug
    rows = [{"title": "Adviser", "person": {"slug": "ada-moss"}}, {"title": "Cook", "person": {"name": "Bo Reef"}}]
    listings.update_company(mine, slug, CompanyChange(positions=rows))
    return slug


def test_owners_and_reviewers_see_names_without_a_profile_and_a_stranger_does_not(mine, ada, tidal):
    for actor in (mine, reviewer()):
        first, second = positions.list_unlinked(actor, tidal)
        assert (first.name, first.title, first.asked.slug) == ("Ada Moss", "Adviser", "ada-moss")
        assert (second.name, second.asked, second.candidates) == ("Bo Reef", None, [])
    for stranger in (VISITOR, owner(), ada):
        with pytest.raises(NotFound):
            positions.list_unlinked(stranger, tidal)


@pytest.mark.parametrize("stranger", ["visitor", "owner of the listing", "the person", "reviewer's token"])
def test_only_a_reviewer_at_work_links_names(mine, ada, tidal, stranger):
    item = positions.list_unlinked(mine, tidal)[1].item
    actor = {"visitor": VISITOR, "owner of the listing": mine, "the person": ada}.get(stranger) or agent_of(reviewer())
    with pytest.raises(Forbidden):
        positions.link_position(actor, tidal, item)
    assert document("company", tidal)["positions"][1]["person"] == {"name": "Bo Reef"}


def test_a_reviewer_links_a_requested_position_to_another_person_of_the_name(mine, ada, tidal):
    published(owner(), positions=[{"person": {"name": "Cy Weir"}}])
    item = positions.list_unlinked(mine, tidal)[0].item
    positions.link_position(reviewer(), tidal, item, "cy-weir")
    assert document("company", tidal)["positions"][0]["person"] == {"name": "Cy Weir", "slug": "cy-weir"}
    assert [each.state for each in positions.list_positions(ada)] == ["confirmed"]


def test_a_reviewer_neither_overrides_a_refusal_nor_publishes_a_private_profile(mine, ada, tidal):
    profiles.create_profile(owner(), ProfileChange(name="Tia Reef"))
    item = positions.list_unlinked(mine, tidal)[1].item
    positions.answer_positions(ada, decline=[positions.list_positions(ada)[0].id])
    judge = reviewer()
    with pytest.raises(Conflict, match="declined a position in this listing"):
        positions.link_position(judge, tidal, item, "ada-moss")
    for slug in ("tia-reef", "unknown"):
        with pytest.raises(NotFound, match="No person has the slug"):
            positions.link_position(judge, tidal, item, slug)
    with pytest.raises(NotFound, match="shows no name without a profile"):
        positions.link_position(judge, tidal, "unknown")
