"""The front page, from an empty registry to one in which something happens."""

import re
from datetime import UTC, datetime

import pytest

from make.pages import valid
from make.published import company, framework, person
from muniment.store.published import put_stamp
from muniment.web.presenters import company_lists
from muniment.web.requests import page_cache

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
