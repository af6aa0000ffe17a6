"""What an owner's agent is told when a call misses: which tool has the ids, and which parts and entries there are."""

import pytest

from make import registry as make
from make.accounts import account
from muniment.accounts import tokens
from muniment.kernel.actor import SCOPES
from services.manage import manage

pytestmark = pytest.mark.django_db


@pytest.fixture
def server():
    with manage() as made:
        yield made


@pytest.fixture
def owner():
    return account("owner@harbour.example")


def token_of(who):
    return tokens.create_token(who.actor("web"), "laptop", permitted=SCOPES).text


def test_the_id_of_no_row_is_told_with_where_the_ids_are(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"), proposals=[{"title": "Motion"}])
    for change in ({"set": [{"id": "none", "title": "x"}]}, {"remove": ["none"]}):
        error = server.error(text, "update_my_company", slug=made.slug, changes={"proposals": change})
        assert "is the id of no row" in error["message"]
        assert error["hint"] == "get_my_company shows the rows of its lists with their ids."
    row = make.document("company", made.slug)["proposals"][0]["id"]
    wrong = {"proposals": {"set": [{"id": row, "status": "won"}]}}
    error = server.error(text, "update_my_company", slug=made.slug, changes=wrong)
    assert error["hint"].startswith("list_company_form_options")


def test_fields_of_the_named_parts_of_a_listing_are_shown(server, owner):
    made = make.published(owner.actor("web"), industry="Energy", proposals=[{"title": "Motion"}])
    asked = {"slug": made.slug, "parts": ["company", "history"], "fields": ["name", "industry"]}
    found = server.data(token_of(owner), "get_my_company", **asked)
    assert found["company"] == {"id": made.slug, "name": found["company"]["name"], "industry": "Energy"}
    assert found["history"]
    assert "proposals" not in found


@pytest.mark.requirement("owners.edits")
def test_an_unknown_entry_of_the_history_is_told_as_such(server, owner):
    slug = make.published(owner.actor("web")).slug
    error = server.error(token_of(owner), "update_my_company", slug=slug, revert=999_999)
    assert (error["code"], error["message"]) == ("not_found", f"{slug!r} has no history entry 999999.")
    assert 'get_my_company with parts ["history"]' in error["hint"]
