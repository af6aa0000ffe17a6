"""The pages of updates by email: no session, no cookie, nothing changed by reading, and one answer for all."""

import re

import html5lib
import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import Letters
from make.pages import valid
from make.published import Publisher, company, framework, person
from make.subscriptions import EMAIL, asked, confirmed, token_in
from muniment import config
from muniment.searches import subscriptions
from muniment.searches.models import Subscription
from muniment.store.reader import Reader
from muniment.web.requests import page_cache

pytestmark = pytest.mark.django_db
FORM = {"topic": "company", "key": "harbour", "email": EMAIL, "pace": "daily"}


@pytest.fixture
def visitor(tmp_path):
    cache.clear()
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(
        company(1, "harbour", name="Harbour <Commons>", type="DAO"),
        person(1, "layla", name="Layla Haddad"),
        framework(1, "tide-score"),
    )
    reader = Reader(tmp_path / "published.sqlite3")
    page_cache.use(reader)
    yield Client(enforce_csrf_checks=True)
    page_cache.use(None)
    reader.close()
    publisher.close()


@pytest.mark.parametrize(
    ("path", "topic", "key"),
    [
        ("/companies/harbour", "company", "harbour"),
        ("/people/layla", "person", "layla"),
        ("/companies", "companies", ""),
        ("/companies?q=harbour&type=DAO&sort=name", "companies", "q=harbour&amp;type=DAO"),
        ("/people?title=x", "people", "title=x"),
        ("/frameworks", "frameworks", ""),
    ],
)
def test_listings_and_lists_have_the_form_and_the_form_works(visitor, path, topic, key):
    html = visitor.get(path).text
    form = re.search(r'<form method="post" action="/updates/new".*?</form>', html, re.DOTALL)[0]
    assert f'name="topic" value="{topic}"' in form
    assert f'name="key" value="{key}"' in form
    answer = visitor.post("/updates/new", {**FORM, "topic": topic, "key": key.replace("&amp;", "&")})
    assert (answer.status_code, answer["Location"]) == (303, "/updates/sent")
    assert Subscription.objects.get().topic == topic


@pytest.mark.parametrize("setting", [{"visitor_mail": False}, {"mirrored": "https://origin.example"}])
def test_no_page_has_the_form_if_updates_are_off_and_at_a_mirror(visitor, monkeypatch, setting):
    current = config.current()
    kept = {each.name: getattr(current, each.name) for each in config.SETTINGS}
    made = config.Config({}, **{**kept, "visitor_mail": setting.get("visitor_mail", True)})
    object.__setattr__(made, "mirrored", setting.get("mirrored", ""))
    monkeypatch.setattr(config, "_current", made)
    for path in ("/companies/harbour", "/people/layla", "/companies"):
        assert "/updates/new" not in visitor.get(path).text
    assert visitor.post("/updates/new", FORM).status_code == 404
    assert visitor.get("/updates/new?topic=company&key=harbour").status_code == 404


def test_the_journey_by_mail_sets_no_cookie_and_changes_nothing_by_reading(visitor):
    letters = Letters()
    page = visitor.post("/updates/new", FORM, follow=True)
    assert "Check your email" in page.text
    mailed = token_in(letters.to(EMAIL)[0][1])
    pages = [visitor.get("/updates/new?topic=company&key=harbour"), page, visitor.get("/updates")]
    for method in (visitor.get, visitor.head):
        pages.append(method(f"/updates/confirm/{mailed}"))
        assert Subscription.objects.get().confirmed_at is None
    assert "Harbour &lt;Commons&gt;" in pages[-2].text
    pages.append(visitor.post(f"/updates/confirm/{mailed}"))
    assert "Updates confirmed" in pages[-1].text
    pages.append(visitor.get(f"/updates/confirm/{mailed}"))
    assert "Updates confirmed" in pages[-1].text
    mine = re.search(r'href="(/updates/mine/[^"]+)"', pages[-1].text)[1]
    pages.append(visitor.get(mine))
    assert EMAIL in pages[-1].text
    end = subscriptions.end_path(Subscription.objects.get())
    pages += [visitor.get(end), visitor.head(end)]
    assert Subscription.objects.exists()
    pages.append(visitor.post(mine, {"id": Subscription.objects.get().pk}))
    assert "1 subscription ended." in pages[-1].text
    assert not Subscription.objects.exists()
    pages.append(visitor.get(end))
    assert "This subscription has ended." in pages[-1].text
    for answer in pages:
        assert not answer.cookies
        assert (answer["Referrer-Policy"], answer["X-Robots-Tag"]) == ("no-referrer", "noindex")
        assert "no-store" in answer["Cache-Control"]
        if answer.content:
            valid(answer.text)


def test_a_mail_program_unsubscribes_with_one_post_without_cookies_or_a_token(visitor):
    row = confirmed(Letters())
    answer = visitor.post(
        subscriptions.end_path(row),
        "List-Unsubscribe=One-Click",
        content_type="application/x-www-form-urlencoded",
        headers={"Sec-Fetch-Site": "cross-site", "Origin": "https://mail.example"},
    )
    assert answer.status_code == 200
    assert not Subscription.objects.exists()
    assert visitor.post(subscriptions.end_path(row)).status_code == 200


def test_the_answer_is_the_same_whatever_is_known_of_an_address(visitor):
    answers = []
    letters = Letters()
    for email, times in (("new@moss.example", 1), ("known@moss.example", 1), ("flooded@moss.example", 5)):
        if email.startswith("known"):
            confirmed(letters, email=email)
        for _ in range(times):
            for path, form in (("/updates/new", {**FORM, "email": email}), ("/updates", {"email": email})):
                answer = visitor.post(path, form)
                answers.append((path, answer.status_code, answer["Location"], answer.content, len(answer.headers)))
    assert len(set(answers)) == 2


@pytest.mark.parametrize(
    "change",
    [{"email": "x"}, {"email": ""}, {"email": f"{EMAIL}\r\nBcc: a@b.example"}, {"pace": "hourly"}, {"pace": ""}],
)
def test_an_invalid_form_is_shown_again_with_what_is_wrong(visitor, change):
    answer = visitor.post("/updates/new", {**FORM, **change})
    assert answer.status_code == 422
    assert "aria-invalid" in answer.text
    valid(answer.text)
    assert not Subscription.objects.exists()


def test_an_address_that_the_form_takes_and_the_operation_refuses_is_shown_with_the_form(visitor):
    answer = visitor.post("/updates/new", {**FORM, "email": "former-1@accounts.invalid"})
    assert (answer.status_code, "This is not an email address." in answer.text) == (422, True)


@pytest.mark.parametrize("path", ["/updates/new", "/updates"])
def test_another_site_cannot_send_the_form(visitor, path):
    answer = visitor.post(path, FORM, headers={"Sec-Fetch-Site": "cross-site"})
    assert answer.status_code == 403
    assert not Subscription.objects.exists()


def test_unknown_topics_and_links_are_not_found_and_other_methods_not_allowed(visitor):
    for path in ("/updates/new", "/updates/new?topic=person&key=harbour", "/updates/new?topic=companies&key=type%00"):
        assert visitor.get(path).status_code in {400, 404}
    for path in ("/updates/confirm/x", "/updates/end/x", "/updates/mine/x"):
        for method in (visitor.get, visitor.post):
            answer = method(path)
            assert answer.status_code == 404
            valid(answer.text)
    for path in ("/updates", "/updates/new", "/updates/sent", "/updates/end/x"):
        assert visitor.put(path).status_code == 405


def test_over_the_limit_the_page_says_when_to_try_again(visitor, monkeypatch):
    monkeypatch.setattr(subscriptions, "REQUESTS_OF_A_CLIENT", 1)
    visitor.post("/updates/new", FORM)
    answer = visitor.post("/updates/new", FORM)
    assert answer.status_code == 429
    assert int(answer["Retry-After"]) <= 3_600


def test_a_list_names_what_is_gone_and_ends_everything_at_once(visitor):
    letters = Letters()
    row = confirmed(letters)
    confirmed(letters, "companies", "type=DAO")
    subscriptions.forget_person("company", "harbour")
    html = visitor.get(subscriptions.mine_path(row.subscriber)).text
    assert "No longer public" in html
    assert "Type: DAO" in html
    answer = visitor.post(subscriptions.mine_path(row.subscriber))
    assert "2 subscriptions ended." in answer.text
    assert "This address has no subscriptions." in visitor.get(subscriptions.mine_path(row.subscriber)).text


def test_a_search_that_is_no_longer_possible_keeps_the_words_that_it_was_asked_with(visitor):
    row = confirmed(Letters(), "companies", "type=DAO")
    Subscription.objects.update(key="teamMin=x")
    assert "Type: DAO" in visitor.get(subscriptions.mine_path(row.subscriber)).text


def test_the_form_of_an_unconfirmed_request_says_nothing_of_others(visitor):
    asked()
    assert EMAIL not in visitor.get("/updates/new?topic=company&key=harbour").text
    assert html5lib.parse(visitor.get("/updates/sent?of=list").text) is not None
