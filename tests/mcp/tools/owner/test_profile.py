"""The profile tools: read, change, and undo a change."""

import pytest

from make import registry as make
from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from muniment.registry.models import HistoryEntry
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


def token_of(who, permitted=SCOPES):
    return tokens.create_token(who.actor("web"), "laptop", permitted=permitted).text


@pytest.mark.requirement("tools.manage.profile")
@pytest.mark.requirement("owners.profile")
def test_a_profile_without_a_person_is_null_and_says_where_to_make_one(server, owner):
    text = token_of(owner, ["profile:read", "profile:write"])
    found = server.data(text, "get_my_profile")
    assert found == {"person": None, "email": owner.email, "companies": [], "scopes": ["profile:read", "profile:write"]}
    error = server.error(text, "update_my_profile", changes={"bio": "Hello."})
    assert error["code"] == "bad_request"
    assert "/manage/profile" in error["hint"]


@pytest.mark.requirement("tools.manage.profile")
@pytest.mark.requirement("owners.profile")
def test_a_profile_is_changed_and_public_at_once(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"))
    person = profiles.create_profile(owner.actor("web"), profiles.ProfileChange(name="Ada Quay"))
    profiles.join_person(make.reviewer(), person.slug, owner.pk) if person.account_id is None else None
    tried = server.data(text, "update_my_profile", changes={"bio": "Keeps the tide table."}, dryRun=True)
    assert tried["diff"] == {"bio": {"before": None, "after": "Keeps the tide table."}}
    assert tried["dryRun"] is True
    version = server.data(text, "get_my_profile")["person"]["version"]
    given = {"changes": {"bio": "Keeps the tide table."}, "expectedVersion": version}
    done = server.data(text, "update_my_profile", **given)
    assert done["applied"] == ["bio"]
    assert "dryRun" not in done
    given["changes"]["bio"] = "Overwritten."
    assert f"is at version {version + 1}, not {version}" in server.error(text, "update_my_profile", **given)["message"]
    found = server.data(text, "get_my_profile")
    assert found["person"]["bio"] == "Keeps the tide table."
    assert [each["id"] for each in found["companies"]] == [made.slug]
    entry = HistoryEntry.objects.filter(person=person, action="updated").get()
    assert (entry.via, entry.credential) == ("token", "laptop")


def test_a_change_of_the_profile_is_found_in_its_history_and_undone(server, owner):
    token = token_of(owner)
    profiles.create_profile(
        owner.actor("web"), profiles.ProfileChange({"name": "Ottoline Ferrisbrook", "bio": "Mends boats."})
    )
    server.data(token, "update_my_profile", changes={"bio": "Sells boats."})
    assert "history" not in server.data(token, "get_my_profile")
    entries = server.data(token, "get_my_profile", history=True)["history"]
    assert [(each["action"], each["fields"]) for each in entries[:1]] == [("updated", ["bio"])]
    tried = server.data(token, "update_my_profile", revert=entries[0]["id"], dryRun=True)
    assert tried["diff"]["bio"]["after"] == "Mends boats."
    assert server.data(token, "update_my_profile", revert=entries[0]["id"])["person"]["bio"] == "Mends boats."
    both = server.error(token, "update_my_profile", revert=entries[0]["id"], changes={"bio": "x"})
    assert "needs changes, positions or revert" in both["message"]
