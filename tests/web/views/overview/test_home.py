"""The front page, from an empty registry to one in which something happens."""

import json
import re
from datetime import UTC, datetime

import pytest

from make.pages import valid
from make.published import company, framework, person
from muniment.store.lists.facets import Counted, Facet
from muniment.store.lists.highlights import Updated, Vote
from muniment.store.published import ChangeRow, put_stamp
from muniment.web.presenters import company_lists
from muniment.web.requests import page_cache
from muniment.web.views.overview import home

SECTIONS = ["Raising now", "Votes ending soon", "New listings", "Recently changed"]
CHARTS = ["Largest treasuries", "By type", "By industry"]
ROUND = {"name": "Seed", "target": "$3M", "opened": "2025-01-02"}


@pytest.fixture
def day_is(monkeypatch):
    def turn(day):
        moment = datetime.fromisoformat(f"{day}T12:00:00").replace(tzinfo=UTC)
        for module in (page_cache, company_lists):
            monkeypatch.setattr(module, "now", lambda: moment)

    return turn


def headings(html):
    return re.findall("<h2>(.*?)</h2>", html)


def voting(ends, number=1, **members):
    return company(number, proposals=[{"title": "Dredge the mole", "status": "active", "endDate": ends}], **members)


def test_an_empty_registry_says_what_to_do_and_shows_no_figures(visitor):
    html = visitor.get("/").text
    valid(html)
    assert headings(html) == ["No companies yet", "Connect an agent", "Frameworks"]
    assert 'class="figures' not in html


def test_a_new_registry_claims_nothing_of_what_it_holds_in_any_state(visitor, publisher):
    """Nothing says that an operator's import was reviewed or verified, so no page does by default."""
    for companies in (0, 1):
        if companies:
            publisher.publish(company(1, "harbour", name="Harbour"))
        for language in ("en", "de"):
            html = visitor.get("/", headers={"Accept-Language": language}).content.decode().casefold()
            head = html[: html.index("</main>")] + html[html.index("<footer") :]
            for word in ("verified", "reviewed public", "reviewed companies", "geprüft", "free to use"):
                assert word not in head, (companies, language, word)


def test_one_company_with_a_name_and_nothing_else_has_a_page(visitor, publisher):
    publisher.publish(company(1, type="", industry="", themes=[], treasuryMinor=None))
    html = visitor.get("/").text
    valid(html)
    assert headings(html) == ["New listings", "Connect an agent", "Frameworks"]


def test_everything_that_happens_has_its_section_and_leads_on(visitor, publisher, day_is):
    day_is("2026-11-23")
    money = {"treasury": "$9", "treasuryAmount": {"amount": "9.00", "currency": "USD"}}
    publisher.publish(
        company(1, "quay", raising=True, fundingRounds=[ROUND], **money),
        voting("2026-11-30", 2),
        person(1),
        framework(1),
    )
    publisher.publish(company(1, "quay", raising=True, fundingRounds=[ROUND], **money), fields=("treasury",))
    html = visitor.get("/").text
    valid(html)
    assert headings(html) == [*SECTIONS, *CHARTS, "Connect an agent", "Frameworks"]
    for words in ("Seed · $3M", "Dredge the mole", "Ends 30 November 2026", '<p class="said" dir="auto">Treasury</p>'):
        assert words in html
    for address in (
        "/companies?raising=true",
        "/companies?sort=treasury",
        "/companies?type=corporation",
        "/companies?industry=Software",
        "/manage/companies/new",
        "/frameworks/framework-1",
    ):
        assert f'href="{address}"' in html
        assert address.startswith("/manage") or visitor.get(address).status_code == 200
    assert "claude mcp add --transport http registry http://testserver/api/mcp" in html
    assert html.count('id="find"') == 1


def test_few_changes_have_few_new_listings_beside_them(visitor, publisher):
    publisher.publish(*(company(number) for number in range(1, 9)))
    assert visitor.get("/").text.count('<li class="listing">') == 6
    publisher.publish(company(1, name="Quay"), fields=("maintainedByOwner", "name"))
    html = visitor.get("/").text
    assert html.count('<li class="listing">') == 3 + 1
    assert '<p class="said" dir="auto">Owner, Name</p>' in html


def test_a_vote_leaves_the_page_when_its_day_is_over_and_nothing_was_published(visitor, publisher, day_is):
    put_stamp(publisher.connection, publisher.publish(voting("2026-11-23")), "2026-11-22T10:00:00Z")
    day_is("2026-11-23")
    first = visitor.get("/")
    assert "Ends today" in first.text
    day_is("2026-11-24")
    sent = {"If-Modified-Since": first["Last-Modified"]}
    later = visitor.get("/", headers=sent)
    assert later.status_code == 200
    assert "Dredge the mole" not in later.text
    assert visitor.get("/", headers={"If-None-Match": first["ETag"]}).status_code == 200


def test_what_a_day_changes_is_no_version_of_the_edition_before_it(visitor, publisher, day_is):
    put_stamp(publisher.connection, publisher.publish(company(1)), "2026-11-22T10:00:00Z")
    day_is("2026-11-22")
    dated = visitor.get("/")
    assert dated["Last-Modified"] == "Sun, 22 Nov 2026 10:00:00 GMT"
    assert visitor.get("/", headers={"If-Modified-Since": dated["Last-Modified"]}).status_code == 304
    day_is("2026-11-23")
    undated = visitor.get("/")
    assert visitor.get("/", headers={"If-Modified-Since": undated["Last-Modified"]}).status_code == 200
    assert visitor.get("/", headers={"If-None-Match": undated["ETag"]}).status_code == 304


def test_figures_of_nothing_are_left_out(visitor, publisher):
    publisher.publish(company(1, treasuryMinor=None), framework(1))
    html = visitor.get("/").text
    assert re.findall(r"<dt>([a-z ]+)</dt>", html) == ["companies", "frameworks"]


AT = "2026-11-20T10:00:00.000000Z"


def item(key="harbour", **members):
    return company(1, key, **members).item


def parts(**members):
    return {"harbour": home.Parts(**members)}


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
    (news,) = home.raising_news([item()], parts(funding_rounds=rounds))
    assert (news.lines, news.when) == ((said,), when)


def test_votes_of_a_day_are_named_and_many_are_counted():
    proposals = [
        {"title": "First", "status": "active", "endDate": "2199-12-01"},
        {"id": "second", "status": "active", "endDate": "2199-12-01"},
        {"title": "Third", "status": "active", "endDate": "2199-12-01"},
        {"title": "Another day", "status": "active", "endDate": "2199-12-02"},
        {"title": "Decided", "status": "passed", "endDate": "2199-12-01"},
    ]
    (news,) = home.voting_news([Vote("2199-12-01", item())], parts(proposals=proposals))
    assert news.lines == ("First", "second", "and 1 more")
    assert (news.when, news.at) == ("Ends 1 December 2199", "2199-12-01")


def test_a_vote_that_ends_today_says_so(monkeypatch):
    monkeypatch.setattr(home.company_lists, "today", lambda: "2199-12-01")
    (news,) = home.voting_news([Vote("2199-12-01", item())], {})
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
    (news,) = home.updated_news([Updated(ChangeRow(9, "company", "harbour", "updated", AT, fields), item())])
    assert (news.lines, news.when) == ((said,), "20 November 2026")


def test_news_are_escaped_and_lead_to_the_company():
    html = home.news_html([home.News(home.item_of(item("größe", name="<b>", description="")), ("<i>x",), "<u>")])
    assert 'href="/companies/gr%C3%B6%C3%9Fe"' in html
    assert "&lt;b&gt;" in html
    assert not re.search("<[biu]>", html)


def test_each_bar_of_a_filter_leads_to_the_list_that_it_counts():
    found = Facet((Counted("R&D / labs", 3), Counted("", 2), Counted("DAO", 1)), 0)
    html = home.facet_chart("By industry", "industry", found)
    assert re.findall(r'<th scope="row"><a href="([^"]+)"><bdi>(.*?)</bdi></a></th><td class="number">(\d+)', html) == [
        ("/companies?industry=R%26D+%2F+labs", "R&amp;D / labs", "3"),
        ("/companies?industry=DAO", "DAO", "1"),
    ]
    assert html.count('tabindex="-1"') == 2
    assert home.facet_chart("By industry", "industry", None) == ""


def test_the_largest_treasuries_are_drawn_to_scale_and_lead_to_their_companies():
    items = [
        item(key, treasury=f"${units}M", treasuryAmount={"amount": f"{units}000000.00", "currency": "USD"})
        for key, units in (("harbour", 4), ("quay", 1))
    ]
    html = home.treasury_chart(items)
    assert re.findall(r'class="tint0"[^>]* width="([\d.]+)"', html) == ["100.00", "25.00"]
    assert html.count('href="/companies/quay"') == 2
    assert home.treasury_chart([json.dumps({"id": "a", "name": "A"}).encode()]) == ""
