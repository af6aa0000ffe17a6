"""Organizations side by side, chosen without scripts and named by the address."""

import re

import pytest

from make.pages import valid
from make.published import company

HOSTILE = '<script>alert("x")</script>'


ROUND = {"name": "Seed", "target": "$2M", "opened": "2025-01-01", "closed": "2025-06-01", "public": True}


def money(units):
    return {"treasury": f"${units}M", "treasuryAmount": {"amount": f"{units}000000.00", "currency": "USD"}}


def position(name, slug=""):
    return {"title": "Engineer", "person": {"name": name, **({"slug": slug} if slug else {})}}


@pytest.fixture(autouse=True)
def registry(publisher):
    publisher.publish(
        company(
            1, "harbour", name="Harbour Commons", positions=[position("Ida Kelp", "ida"), position("Bo")], **money(4)
        ),
        company(2, "quay", name="Quay Trust", industry="Finance", positions=[position("Ida Kelp", "ida")], **money(1)),
        company(3, "mole", name="Mole & Sons", treasuryMinor=None, positions=[position("Cleo Reef", "cleo")]),
        company(4, "hostile", name=HOSTILE, website="javascript:alert(1)"),
        company(5, "pier", name="Pier One", fundingRounds=[ROUND, {**ROUND, "name": "Quiet", "public": False}]),
        company(6, "pier-two", name="Pier Two"),
    )


def rows(html):
    table = re.search('<table class="sides">(.*?)</table>', html, re.DOTALL)[1]
    found = re.findall(r"<tr( class=\"differs\")?><th scope=\"row\">(.*?)(?:<span.*?)?</th>(.*?)</tr>", table)
    return {
        label: (bool(differs), [re.sub("<.*?>", "", cell) for cell in re.findall("<td.*?>(.*?)</td>", cells)])
        for differs, label, cells in found
    }


@pytest.mark.parametrize(
    "query",
    ["", "?c=harbour", "?c=harbour&c=quay", "?c=harbour&c=hostile&c=mole&c=pier", "?c=none", "?add=pier", "?add=zz"],
)
def test_a_comparison_is_valid_html_and_escapes_names(visitor, query):
    html = visitor.get(f"/compare{query}").text
    valid(html)
    assert "<script>alert" not in html
    assert "javascript:" not in html


def test_facts_stand_side_by_side_and_differences_are_marked(visitor):
    html = visitor.get("/compare?c=harbour&c=quay").text
    found = rows(html)
    assert found["Type"] == (False, ["Corporation", "Corporation"])
    assert found["Industry"] == (True, ["Software", "Finance"])
    assert found["Treasury"] == (True, ["$4M", "$1M"])
    assert found["People"] == (True, ["2", "1"])
    assert "Token" not in found
    short = rows(visitor.get("/compare?c=harbour&c=quay&only=differences").text)
    assert short == {label: row for label, row in found.items() if row[0]}


@pytest.mark.parametrize(
    ("language", "shown"), [("en", "$3M (sum of grants received)"), ("de", "3 Mio. $ (Summe erhaltener Zuschüsse)")]
)
def test_what_an_amount_is_instead_of_a_treasury_is_said_in_the_visitors_language(visitor, publisher, language, shown):
    publisher.publish(company(3, "mole", name="Mole & Sons", treasuryNote="sum of grants received", **money(3)))
    page = visitor.get("/compare?c=harbour&c=mole", headers={"Accept-Language": language})
    found = rows(page.text)
    assert shown in [cell.replace("\u202f", " ").replace("\xa0", " ") for _, cells in found.values() for cell in cells]


def test_names_stand_once_in_the_head_and_not_at_every_fact(visitor):
    html = visitor.get("/compare?c=harbour&c=quay&c=bare").text
    assert 'class="sides"' in html
    assert "data-label" not in html


def test_an_unknown_fact_is_no_zero_in_a_chart(visitor):
    html = visitor.get("/compare?c=harbour&c=quay&c=mole").text
    chart = re.search(r"<h2>Treasury</h2>(.*?)</section>", html)[1]
    assert re.findall("<bdi>(.*?)</bdi>", chart) == ["Harbour Commons", "Quay Trust"]
    assert rows(html)["Treasury"][1] == ["$4M", "$1M", "Not specified"]


def test_people_with_a_profile_in_several_organizations_are_named(visitor):
    html = visitor.get("/compare?c=harbour&c=quay&c=mole").text
    shared = re.search(r"<h2>People in common</h2>(.*?)</section>", html)[1]
    assert 'href="/people/ida"' in shared
    assert "Harbour Commons, Quay Trust" in shared
    assert "Bo" not in shared
    assert "Cleo" not in shared


def test_only_public_rounds_are_compared(visitor):
    html = visitor.get("/compare?c=harbour&c=pier").text
    assert rows(html)["Funding"][1] == ["None listed", "Seed · $2M · Closed"]


def test_an_organization_is_added_by_its_name_and_removed_by_a_link(visitor):
    answer = visitor.get("/compare?c=harbour&add=Quay")
    assert (answer.status_code, answer["Location"]) == (302, "/compare?c=harbour&c=quay")
    several = visitor.get("/compare?c=harbour&add=pier").text
    assert 'href="/compare?c=harbour&amp;c=pier-two"' in several
    assert visitor.get("/compare?add=pier one")["Location"] == "/compare?c=pier"
    assert "No other organization matches" in visitor.get("/compare?c=harbour&add=zzzz").text
    assert '<a class="chip chosen" href="/compare?c=quay">' in visitor.get("/compare?c=harbour&c=quay").text
    assert 'name="c" value="harbour"' in several


def test_at_most_four_different_organizations_are_compared(visitor):
    html = visitor.get("/compare?c=harbour&c=quay&c=harbour&c=mole&c=pier&c=pier-two").text
    assert html.count('class="chip chosen"') == 4
    assert 'name="add"' not in html
    assert visitor.get("/compare?c=harbour&c=quay&c=mole&c=pier&add=pier two").status_code == 200


def test_what_is_not_published_is_named_and_left_out(visitor):
    html = visitor.get("/compare?c=harbour&c=gone").text
    assert "There is no company at the address “/companies/gone”." in html
    assert "Add at least one more organization" in html


def test_a_company_leads_to_its_comparison(visitor):
    assert 'href="/compare?c=harbour"' in visitor.get("/companies/harbour").text


def test_a_comparison_begins_with_the_largest_treasuries(visitor, publisher):
    publisher.publish(
        *(company(number, slug, treasuryMinor=10**12 // number) for number, slug in ((11, "a"), (12, "b")))
    )
    html = visitor.get("/compare").text
    valid(html)
    begin = html.partition("Start with one of these")[2]
    assert re.findall('href="/compare[?]c=([a-z-]+)"', begin)[:2] == ["a", "b"]
    for query in ("?c=harbour", "?add=nothing+like+it"):
        assert "Start with one of these" not in visitor.get(f"/compare{query}").text
