"""What the front page says about companies that are news, and where its charts lead."""

import json
import re

import pytest

from make.published import company
from muniment.store.lists.facets import Counted, Facet
from muniment.store.lists.highlights import Updated, Vote
from muniment.store.published import ChangeRow
from muniment.web.presenters.overview import front

AT = "2026-11-20T10:00:00.000000Z"


def item(key="harbour", **members):
    return company(1, key, **members).item


def parts(**members):
    return {"harbour": front.Parts(**members)}


@pytest.mark.parametrize(
    ("rounds", "said", "when"),
    [
        ([{"name": "Seed", "target": "$3M", "opened": "2025-01-02"}], "Seed · $3M", "Since 2 January 2025"),
        ([{"target": "$3M", "opened": "2025-01-02", "closed": "2199-03-04"}], "$3M", "Closes 4 March 2199"),
        (
            [{"name": "Old", "opened": "2020-01-01", "closed": "2021-01-01"}, {"name": "Now", "opened": "2025-01-02"}],
            "Now",
            "Since 2 January 2025",
        ),
        ([{"public": False}], "", ""),
        ([], "", ""),
    ],
)
def test_a_company_that_raises_shows_its_open_round_as_far_as_it_is_public(rounds, said, when):
    (news,) = front.raising_news([item()], parts(funding_rounds=rounds))
    assert (news.said, news.when) == ((said,), when)


def test_votes_of_a_day_are_named_and_many_are_counted():
    proposals = [
        {"title": "First", "status": "active", "endDate": "2199-12-01"},
        {"id": "second", "status": "active", "endDate": "2199-12-01"},
        {"title": "Third", "status": "active", "endDate": "2199-12-01"},
        {"title": "Another day", "status": "active", "endDate": "2199-12-02"},
        {"title": "Decided", "status": "passed", "endDate": "2199-12-01"},
    ]
    (news,) = front.voting_news([Vote("2199-12-01", item())], parts(proposals=proposals))
    assert news.said == ("First", "second", "and 1 more")
    assert (news.when, news.at) == ("Ends 1 December 2199", "2199-12-01")


def test_a_vote_that_ends_today_says_so(monkeypatch):
    monkeypatch.setattr(front.company_lists, "today", lambda: "2199-12-01")
    (news,) = front.voting_news([Vote("2199-12-01", item())], {})
    assert news.when == "Ends today"


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (("treasury", "capTable"), "Treasury, Cap table"),
        (("name", "type", "industry", "treasury", "website"), "Name, Type, Industry, Treasury, 1 more"),
        (None, ""),
    ],
)
def test_a_change_says_what_changed(fields, said):
    (news,) = front.updated_news([Updated(ChangeRow(9, "company", "harbour", "updated", AT, fields), item())])
    assert (news.said, news.when) == ((said,), "20 November 2026")


def test_news_are_escaped_and_lead_to_the_company():
    html = front.news_html([front.News(front.item_of(item("größe", name="<b>", description="")), ("<i>x",), "<u>")])
    assert 'href="/companies/gr%C3%B6%C3%9Fe"' in html
    assert "&lt;b&gt;" in html
    assert not re.search("<[biu]>", html)


def test_each_bar_of_a_filter_leads_to_the_list_that_it_counts():
    found = Facet((Counted("R&D / labs", 3), Counted("", 2), Counted("DAO", 1)), 0)
    html = front.facet_chart("By industry", "industry", found)
    assert re.findall(r'<th scope="row"><a href="([^"]+)"><bdi>(.*?)</bdi></a></th><td class="number">(\d+)', html) == [
        ("/companies?industry=R%26D+%2F+labs", "R&amp;D / labs", "3"),
        ("/companies?industry=DAO", "DAO", "1"),
    ]
    assert html.count('tabindex="-1"') == 2
    assert front.facet_chart("By industry", "industry", None) == ""


def test_the_largest_treasuries_are_drawn_to_scale_and_lead_to_their_companies():
    items = [
        item(key, treasury=f"${units}M", treasuryAmount={"amount": f"{units}000000.00", "currency": "USD"})
        for key, units in (("harbour", 4), ("quay", 1))
    ]
    html = front.treasury_chart(items)
    assert re.findall(r'class="tint0"[^>]* width="([\d.]+)"', html) == ["100.00", "25.00"]
    assert html.count('href="/companies/quay"') == 2
    assert front.treasury_chart([json.dumps({"id": "a", "name": "A"}).encode()]) == ""
