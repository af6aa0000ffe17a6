"""Positions by tool: an owner's agent learns who must confirm, and a person's agent answers."""

import pytest

from make import registry as make
from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.registry.people import profiles
from services.manage import manage

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def stranger():
    return account("stranger@harbour.example")


def token_of(who):
    return tokens.create_token(who.actor("web"), "laptop", permitted=SCOPES).text


@pytest.fixture
def ada():
    """Return the account of a public profile that a listing names."""
    make.published(make.owner(), name="Harbour", positions=[{"title": "Chair", "person": {"name": "Ada Quay"}}])
    who = account("ada@quay.example")
    profiles.join_person(make.reviewer(), "ada-quay", who.pk)
    return who


def test_an_owner_s_agent_learns_that_a_position_waits_for_the_person(server, owner, ada):
    text, slug = token_of(owner), make.published(owner.actor("web")).slug
    changes = {"positions": {"add": [{"title": "Adviser", "person": {"slug": "ada-quay"}}]}}
    done = server.data(text, "update_my_company", slug=slug, changes=changes)
    assert done["awaitingPeople"] == ["ada-quay"]
    (row,) = server.data(text, "get_my_company", slug=slug)["positions"]
    assert row["person"] == {"name": "Ada Quay"}
    other = make.published(owner.actor("web")).slug
    error = server.error(
        text, "update_my_company", slug=other, changes={"positions": [{"person": {"name": "Ada Quay"}}]}
    )
    assert "is the name of ada-quay: choose one" in error["message"]
    assert "isNew true" in error["hint"]


def test_a_person_s_agent_confirms_declines_and_ends_positions(server, owner, stranger, ada):
    slug, text = make.published(owner.actor("web")).slug, token_of(ada)
    rows = [{"title": title, "person": {"slug": "ada-quay"}} for title in ("Adviser", "Fraudster")]
    server.data(token_of(owner), "update_my_company", slug=slug, changes={"positions": rows})
    held = server.data(text, "get_my_profile")["positions"]
    assert [(each["title"], each["state"]) for each in held] == [
        ("Fraudster", "requested"),
        ("Adviser", "requested"),
        ("Chair", "confirmed"),
    ]
    fraudster, adviser, chair = (each["id"] for each in held)
    answers = {"confirm": [adviser], "decline": [fraudster], "end": [chair]}
    profiles.create_profile(stranger.actor("web"), profiles.ProfileChange(name="Other"))
    assert server.error(token_of(stranger), "update_my_profile", positions=answers)["code"] == "not_found"
    assert server.data(text, "update_my_profile", positions=answers, dryRun=True)["dryRun"] is True
    assert server.data(text, "get_my_profile")["positions"] == held
    assert server.data(text, "update_my_profile", positions=answers)["person"]["slug"] == "ada-quay"
    (left,) = server.data(text, "get_my_profile")["positions"]
    assert (left["title"], left["company"]["id"], left["state"]) == ("Adviser", slug, "confirmed")
    assert "was changed, answered or withdrawn" in server.error(text, "update_my_profile", positions=answers)["message"]


@pytest.mark.parametrize("given", [{}, {"deny": ["x"]}, {"end": {}}, {"end": [True]}, {"confirm": None}])
def test_answers_are_lists_of_ids(server, ada, given):
    assert "lists of ids" in server.error(token_of(ada), "update_my_profile", positions=given)["message"]


@pytest.mark.parametrize("given", [{}, {"changes": {"bio": "x"}, "positions": {"end": ["x"]}}])
def test_a_profile_update_either_changes_or_answers(server, ada, given):
    assert "needs changes, positions or revert" in server.error(token_of(ada), "update_my_profile", **given)["message"]


def test_an_added_name_says_whether_people_of_that_name_exist(server, owner, ada):
    text, slug = token_of(owner), make.published(owner.actor("web")).slug

    def update(*people, **rest):
        rows = [{"title": "Co-founder", "person": person} for person in people]
        return server.data(text, "update_my_company", slug=slug, changes={"positions": {"add": rows}}, **rest)

    dry = update({"name": "Bo Stern"}, {"name": "Ada Quay", "isNew": True}, dryRun=True)
    assert dry["profilesOfNames"] == {"Bo Stern": [], "Ada Quay": ["ada-quay"]}
    assert update({"name": "Bo Stern"})["profilesOfNames"] == {"Bo Stern": []}
    assert "profilesOfNames" not in update({"slug": "ada-quay"})
    wrong = [{"person": {"slug": "Ada-Quay"}}]
    error = server.error(text, "update_my_company", slug=slug, changes={"positions": {"add": wrong}})
    assert "people of that name: ada-quay" in error["message"]


def test_an_exact_name_works_for_the_slug_of_an_own_listing_only(server, owner, stranger):
    make.published(owner.actor("web"), name="Quayside Trust")
    make.published(owner.actor("web"), name="Twin")
    make.published(owner.actor("web"), name="Twin")
    text = token_of(owner)
    assert server.data(text, "get_my_company", slug="QUAYSIDE trust", parts=["company"])["company"]["id"] == (
        "quayside-trust"
    )
    assert "twin (Twin) or twin-2 (Twin)" in server.error(text, "get_my_company", slug="TWIN")["hint"]
    assert "quayside-trust (Quayside Trust)" in server.error(text, "get_my_company", slug="quayside-trus")["hint"]
    strange = server.error(token_of(stranger), "get_my_company", slug="Quayside Trust")
    assert "quayside-trust" not in strange["message"] + strange["hint"]
