"""A table out of a spreadsheet becomes rows of a listing: shown first, and saved once it is confirmed."""

import pytest
from django.test import Client

from make.accounts import account, signed_in
from make.pages import fields_of, valid
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import CapTableEntry, Position
from muniment.registry.review import workflow
from muniment.web.views.authoring.pasted import MAX_CHARACTERS

pytestmark = pytest.mark.django_db
TABLE = "Holder\tTokens\tShare\r\nTreasury\t500,000\t50%\r\nFounders\t300,000\t30%\r\n"


@pytest.fixture
def owner():
    return account()


@pytest.fixture
def client(owner):
    return signed_in(owner)


@pytest.fixture
def draft(owner):
    return listings.create_company(owner.actor("web"), CompanyChange(name="Tidal Works")).slug


def check(client, slug, text, name="capTable", status=200, **more):
    answer = client.post(f"/manage/companies/{slug}/paste/{name}", {"table": text, "do": "check", **more})
    assert answer.status_code == status, answer.content.decode()[:3000]
    html = answer.content.decode()
    valid(html)
    return html


def save(client, slug, html, name="capTable", **more):
    return client.post(f"/manage/companies/{slug}/paste/{name}", {**fields_of(html), "do": "save", **more})


def test_a_table_is_shown_and_saved_when_it_is_confirmed(client, draft):
    valid(client.get(f"/manage/companies/{draft}/paste/capTable").content.decode())
    html = check(client, draft, TABLE)
    assert "Nothing is saved yet." in html
    assert not CapTableEntry.objects.exists()
    answer = save(client, draft, html)
    assert answer["Location"] == f"/manage/companies/{draft}/edit/token#capTable"
    assert "2 rows added." in client.get(answer["Location"]).content.decode()
    rows = [row.document for row in CapTableEntry.objects.order_by("rank")]
    assert [(row["name"], row["tokens"], row["percentage"]) for row in rows] == [
        ("Treasury", "500,000", 50),
        ("Founders", "300,000", 30),
    ]
    assert "nothing to save" in check(client, draft, TABLE)
    html = check(client, draft, "Name;Percent\nTreasury;45", whole="yes")
    save(client, draft, html)
    (row,) = [row.document for row in CapTableEntry.objects.all()]
    assert (row["id"], row["percentage"], row["tokens"]) == (rows[0]["id"], 45, "500,000")


def test_a_table_of_many_rows_names_the_errors_by_row_and_saves_nothing(client, draft):
    lines = [f"Holder {n}\t{1000 * n}\t{'half' if n in {7, 450} else 0.1}" for n in range(1, 601)]
    html = check(client, draft, "\n".join(lines), status=422)
    assert "2 rows have errors." in html
    assert html.count('<tr class="wrong">') == 2
    assert "Holder 450" in html
    assert "more rows without errors are not shown" in html
    assert save(client, draft, html).status_code == 422
    assert not CapTableEntry.objects.exists()
    html = check(client, draft, "\n".join(lines).replace("half", "0.1"))
    assert save(client, draft, html).status_code == 302
    assert CapTableEntry.objects.count() == 600


def test_shares_above_the_whole_are_refused_before_anything_is_saved(client, draft):
    html = check(client, draft, "Treasury\t70%\nFounders\t60%", status=422)
    assert "add up to 130 %" in html
    assert not CapTableEntry.objects.exists()


def test_what_was_not_shown_is_not_saved(client, draft):
    html = check(client, draft, TABLE)
    assert save(client, draft, html, table="Someone else\t99%").status_code == 200
    assert save(client, draft, html, **{"column-0": "address"}).status_code == 200
    assert not CapTableEntry.objects.exists()


def test_a_listing_that_changed_in_the_meantime_is_checked_again(client, draft, owner):
    html = check(client, draft, TABLE)
    listings.update_company(owner.actor("web"), draft, CompanyChange(description="Tides."))
    answer = save(client, draft, html)
    assert answer.status_code == 422
    assert b"changed in the meantime" in answer.content
    assert save(client, draft, answer.content.decode()).status_code == 302


def test_a_column_is_what_a_person_says(client, draft):
    html = check(client, draft, "Alpha\tBeta\nTreasury\t50", **{"column-0": "name", "column-1": ""})
    assert "Alpha" in html
    assert check(client, draft, "Name\n", status=422).count("has headings, but no rows") == 1
    text = check(client, draft, "a\tb", status=422, **{"column-0": "", "column-1": ""})
    assert "No column is recognized" in text


def test_a_team_is_pasted_and_a_known_name_is_chosen(client, draft, owner):
    reviewer = account("reviewer@harbour.example", "reviewer").actor("web")
    named = [{"title": "Clerk", "person": {"name": "Bo Marsh"}}]
    listings.update_company(owner.actor("web"), draft, CompanyChange(positions=named))
    workflow.submit_company(owner.actor("web"), draft)
    workflow.approve_company(reviewer, draft)
    second = listings.create_company(owner.actor("web"), CompanyChange(name="Reef Works")).slug
    team = "Name\tPosition\nAda Reef\tChair\nBo Marsh\tTreasurer"
    html = check(client, second, team, "positions", 422)
    assert "bo-marsh" in html
    fields = {name: text for name, text in fields_of(html).items() if name.startswith("column-")}
    html = check(
        client,
        second,
        "Name\tPosition\nAda Reef\tChair\nBo Marsh\tTreasurer",
        "positions",
        **fields,
        **{"choice-3": "bo-marsh"},
    )
    assert save(client, second, html, "positions").status_code == 302
    people = Position.objects.filter(company__slug=second).order_by("rank")
    assert [(each.name or each.person.name, each.title) for each in people] == [
        ("Ada Reef", "Chair"),
        ("Bo Marsh", "Treasurer"),
    ]


def test_a_stranger_pastes_nothing_and_an_unknown_list_is_not_found(client, draft):
    stranger = signed_in(account("stranger@reef.example"))
    for answer in (
        stranger.get(f"/manage/companies/{draft}/paste/capTable"),
        stranger.post(f"/manage/companies/{draft}/paste/capTable", {"table": TABLE, "do": "save"}),
        client.get(f"/manage/companies/{draft}/paste/name"),
    ):
        assert answer.status_code == 404
    assert Client().get(f"/manage/companies/{draft}/paste/capTable").status_code == 302
    assert not CapTableEntry.objects.exists()


def test_a_table_that_is_too_long_is_refused(client, draft):
    html = check(client, draft, "x" * (MAX_CHARACTERS + 1))
    assert "too long" in html
    many = "\n".join(f"Person {n}\tClerk" for n in range(2_100))
    assert "at most 2,000 are allowed" in check(client, draft, many, "positions", 422)
