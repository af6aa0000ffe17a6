"""Long lists of a listing by tool: read in pages, edited by row, never replaced by the part that was read."""

import msgspec
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


def holders(number):
    return [{"address": f"0x{n:040}", "name": f"Holder {n}"} for n in range(number)]


def test_one_row_among_thousands_is_edited_by_its_id_and_the_diff_shows_it_alone(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"), capTable=holders(3_000))
    page = server.data(text, "get_my_company", slug=made.slug, parts=["capTable"], offset=1_500, limit=10)
    assert [row["name"] for row in page["capTable"]] == [f"Holder {n}" for n in range(1_500, 1_510)]
    assert "company" not in page
    changes = {"capTable": {"set": [{"id": page["capTable"][3]["id"], "name": "Renamed"}]}}
    done = server.data(text, "update_my_company", slug=made.slug, changes=changes)
    assert done["applied"] == ["capTable"]
    row = {"id": page["capTable"][3]["id"], "before": {"name": "Holder 1503"}, "after": {"name": "Renamed"}}
    assert done["diff"]["capTable"] == {"changed": [row]}
    public = make.document("company", made.slug)["capTable"]
    assert [row["name"] for row in public] == [f"Holder {n}" if n != 1_503 else "Renamed" for n in range(3_000)]


def test_every_row_of_a_long_list_is_reached_by_the_arguments_of_the_note(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"), capTable=holders(3_000), body="x" * 50_000)
    answer = server.data(text, "get_my_company", slug=made.slug)
    assert "capTable" not in answer
    gathered = []
    calls = 1
    while note := answer.get("notShown", {}).get("capTable", {}).get("next"):
        answer = server.data(text, "get_my_company", slug=made.slug, limit=1_000, **note)
        assert len(msgspec.json.encode({"data": answer})) <= 60_000
        gathered += answer["capTable"]
        calls += 1
    assert gathered == make.document("company", made.slug)["capTable"]
    assert calls < 12


def test_a_short_list_is_never_cut_however_large_the_listing(server, owner):
    text = token_of(owner)
    made = make.published(
        owner.actor("web"), capTable=holders(50), body="ü" * 50_000, proposals=[
            {"id": str(n), "title": "x" * 200} for n in range(50)
        ], positions=[{"title": f"Seat {n}", "person": {"name": "Ada Moss"}} for n in range(400)],
    )  # fmt: skip
    whole = server.data(text, "get_my_company", slug=made.slug)
    assert len(msgspec.json.encode({"data": whole})) <= 60_000
    assert len(whole["capTable"]) == len(whole["proposals"]) == 50
    assert whole["company"]["bodyTruncated"] is True
    assert list(whole["notShown"]) == ["positions"]
    assert whole["notShown"]["positions"]["total"] == 400


def test_the_write_back_of_what_an_agent_saw_of_a_long_list_is_refused(server, owner):
    text = token_of(owner)
    made = make.published(owner.actor("web"), capTable=holders(150))
    whole = server.data(text, "get_my_company", slug=made.slug, limit=100)
    seen = [{**whole["capTable"][0], "name": "Renamed"}, *whole["capTable"][1:]]
    arguments = {"slug": made.slug, "changes": {"capTable": seen}, "expectedVersion": whole["version"]}
    error = server.error(text, "update_my_company", **arguments)
    assert "shrinks from 150 to" in error["message"]
    assert "expectedTotals" in error["hint"]
    assert '"set"' in error["hint"]
    assert len(make.document("company", made.slug)["capTable"]) == 150
    done = server.data(text, "update_my_company", **arguments, expectedTotals={"capTable": 150})
    difference = done["diff"]["capTable"]
    assert (len(difference["changed"]), len(difference["removed"]), difference["removedTotal"]) == (1, 20, 50)


@pytest.mark.parametrize("totals", [{"holders": 5}, {"capTable": "5"}, {"capTable": True}, {"capTable": 4.5}])
def test_expected_totals_are_numbers_of_lists(server, owner, totals):
    made = make.draft(owner.actor("web"))
    error = server.error(
        token_of(owner), "update_my_company", slug=made.slug, changes={"description": "x"}, expectedTotals=totals
    )
    assert f"expectedTotals.{next(iter(totals))}" in error["message"]


@pytest.mark.parametrize(("number", "is_shown"), [(50, True), (51, False)])
def test_a_plain_read_leaves_out_a_long_cap_table_and_says_how_to_get_it(server, owner, number, is_shown):
    text = token_of(owner)
    slug = make.published(owner.actor("web"), capTable=holders(number)).slug
    answer = server.data(text, "get_my_company", slug=slug)
    assert ("capTable" in answer) is is_shown
    if not is_shown:
        note = answer["notShown"]["capTable"]
        assert (answer["capTableTotal"], note["total"], note["shown"]) == (number, number, 0)
        assert len(server.data(text, "get_my_company", slug=slug, **note["next"])["capTable"]) == number
    for asked in ({"detail": "full"}, {"parts": ["capTable"]}, {"limit": 100}, {"fields": ["capTable"]}):
        assert len(server.data(text, "get_my_company", slug=slug, **asked)["capTable"]) == number, asked
