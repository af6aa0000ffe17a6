"""The authorization endpoint over HTTP: the consent page, and where its answers and its faults go."""

import re
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account, signed_in
from make.apps import BASE, REDIRECT, RESOURCE, App, sent_back
from muniment.kernel.actor import SCOPES
from muniment.oauth import client_documents
from muniment.oauth.models import AuthorizationCode, Grant
from muniment.oauth.models import Client as Row

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _clean():
    cache.clear()


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def with_password():
    return account("owner@harbour.example", password=PASSWORD)


@pytest.fixture
def browser(owner):
    return signed_in(owner)


def test_a_visitor_is_sent_to_sign_in_and_comes_back_to_the_same_request():
    app = App()
    answer = Client().get(app.address())
    assert answer.status_code == 302
    where = urlsplit(answer["Location"])
    assert where.path == "/accounts/login/"
    assert where.netloc == ""
    assert urlencode({"next": app.address()}) == where.query


def test_signing_in_by_password_comes_back_to_the_consent_page(with_password):
    app, browser = App(), Client()
    answer = browser.post(
        "/accounts/login/", {"login": with_password.email, "password": PASSWORD, "next": app.address()}, follow=False
    )
    assert answer["Location"] == app.address()
    assert b"Harbour Agent" in browser.get(app.address()).content


@pytest.mark.parametrize(
    "next_", ["https://evil.example/", "//evil.example/", "/\\evil.example", "javascript:alert(1)", "http:evil.example"]
)
def test_no_form_on_the_way_sends_anybody_elsewhere(with_password, next_):
    """RFC 9700, 4.11.1: signing in, saying again who one is, and signing out, by form field and by address."""
    browser, said = Client(), {"login": with_password.email, "password": PASSWORD}
    for path, home in (("login", "/manage"), ("reauthenticate", "/manage"), ("logout", "/")):
        answer = browser.post(f"/accounts/{path}/?{urlencode({'next': next_})}", {**said, "next": next_})
        assert answer["Location"] == home, path


def test_signing_in_changes_the_session(with_password):
    """Session fixation: a planted session, even one of ours, is not the one that is signed in."""
    theirs = Client()
    theirs.post("/manage/profile", {"name": "What they typed waits in a session."})
    planted = theirs.cookies["sessionid"].value
    for cookie in (planted, "plantedplantedplantedplanted1234"):
        browser = Client()
        browser.cookies["sessionid"] = cookie
        browser.post("/accounts/login/", {"login": with_password.email, "password": PASSWORD})
        assert browser.cookies["sessionid"].value != cookie
        assert browser.get("/manage").status_code == 200
    assert theirs.get("/manage").status_code == 302


@pytest.mark.requirement("oauth.redirects")
def test_the_consent_page_names_the_app_its_address_its_scopes_and_the_account(browser, owner):
    page = browser.get(App().address(scope="companies:read companies:write"))
    text = page.content.decode()
    for said in (
        "Harbour Agent",
        "Unverified",
        "this computer",
        owner.email,
        "Edit your listings",
        "Read-only access",
    ):
        assert said in text
    assert "Spend" not in text
    assert "profile:read" not in text
    assert page["Cache-Control"] == "no-store"
    assert "form-action" not in page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in page["Content-Security-Policy"]
    assert page["X-Frame-Options"] == "DENY"
    assert not AuthorizationCode.objects.exists()


def test_consent_is_asked_again_each_time(browser):
    app = App()
    app.connect(browser)
    again = browser.get(app.address(prompt="none", approval_prompt="auto"))
    assert again.status_code == 200
    assert b"Connect</button>" in again.content


@pytest.mark.requirement("oauth.rules")
def test_agreeing_sends_code_state_and_issuer_back(browser):
    """RFC 6749, 4.1.2; RFC 9207, 2."""
    app = App()
    answer = browser.post(app.address(state="a b&c=é"), {"answer": "allow"})
    assert answer.status_code == 303
    assert answer["Location"].startswith(REDIRECT + "?")
    assert set(sent_back(answer)) == {"code", "state", "iss"}
    assert sent_back(answer)["state"] == "a b&c=é"
    assert sent_back(answer)["iss"] == BASE
    assert answer["Cache-Control"] == "no-store"
    assert answer["Referrer-Policy"] == "same-origin"  # with no-referrer a browser's own form has the Origin null


def test_refusing_sends_access_denied_back(browser):
    for fields in ({"answer": "deny"}, {}, {"answer": "yes"}):
        back = sent_back(browser.post(App().address(), fields))
        assert back["error"] == "access_denied"
        assert back["state"] == "s-1"
        assert back["iss"] == BASE
    assert not AuthorizationCode.objects.exists()


@pytest.mark.requirement("oauth.redirects")
@pytest.mark.parametrize("redirect", ["cursor://anysphere.cursor-mcp/oauth/callback", "com.example.app:/cb"])
def test_answers_go_to_apps_on_the_device_too(browser, redirect):
    answer = browser.post(App(redirect).address(), {"answer": "allow"})
    assert answer.status_code == 303
    assert answer["Location"].startswith(redirect + "?code=mun_ac_")


@pytest.mark.requirement("oauth.redirects")
def test_any_port_of_loopback_is_answered(browser):
    """RFC 8252, 7.3."""
    app = App("http://localhost/callback")
    app.redirect = "http://localhost:51999/callback"
    answer = browser.post(app.address(), {"answer": "allow"})
    assert answer["Location"].startswith("http://localhost:51999/callback?code=")
    assert app.redeem(sent_back(answer)["code"]).status_code == 200


@pytest.mark.requirement("oauth.rules")
@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"code_challenge": None}, "invalid_request"),
        ({"code_challenge_method": None}, "invalid_request"),
        ({"code_challenge_method": "plain"}, "invalid_request"),
        ({"code_challenge": "short"}, "invalid_request"),
        ({"code_challenge": "é" * 43}, "invalid_request"),
        ({"response_type": "token"}, "unsupported_response_type"),
        ({"response_type": "code token"}, "unsupported_response_type"),
        ({"response_type": None}, "invalid_request"),
        ({"response_mode": "fragment"}, "invalid_request"),
        ({"response_mode": "form_post"}, "invalid_request"),
        ({"scope": "admin"}, "invalid_scope"),
        ({"resource": f"{BASE}/api/mcp"}, "invalid_target"),
        ({"resource": "https://evil.example/api/manage/mcp"}, "invalid_target"),
        ({"resource": f"{RESOURCE}?x=1"}, "invalid_target"),
        ({"resource": f"{RESOURCE}#x"}, "invalid_target"),
        ({"resource": "nonsense"}, "invalid_target"),
    ],
)
@pytest.mark.parametrize("answering", [False, True])
def test_faults_go_back_once_the_redirect_is_proven(browser, change, error, answering):
    """RFC 6749, 4.1.2.1; RFC 7636, 4.4.1; RFC 8707, 2; checked again when the person answers."""
    address = App().address(**change)
    answer = browser.post(address, {"answer": "allow"}) if answering else browser.get(address)
    assert answer.status_code == 303
    assert answer["Location"].startswith(REDIRECT + "?")
    back = sent_back(answer)
    assert set(back) == {"error", "error_description", "state", "iss"}
    assert (back["error"], back["state"], back["iss"]) == (error, "s-1", BASE)
    assert not AuthorizationCode.objects.exists()


@pytest.mark.parametrize("change", [{"scope": "admin"}, {"response_type": "token"}, {"code_challenge": None}])
@pytest.mark.parametrize("redirect", [REDIRECT, "https://evil.example/cb", "com.example.app:/cb"])
def test_a_fault_sends_no_visitor_anywhere(redirect, change):
    """RFC 9700, 4.11.2: anyone can register a client, so this would be an open redirector."""
    for ask in (Client().get, Client().post):
        answer = ask(App(redirect).address(**change))
        assert answer.status_code == 400
        assert "Location" not in answer
        assert b"evil.example" not in answer.content
        assert b"We sent nothing to the app" in answer.content


def test_a_fault_leaves_it_to_the_person_whether_to_go_to_a_website(browser):
    """RFC 9700, 4.11.2: the redirect address of a self-registered client is not trusted."""
    answer = browser.get(App("https://evil.example/cb").address(scope="admin"))
    assert answer.status_code == 400
    assert "Location" not in answer
    text = answer.content.decode()
    link = re.search(r'href="(https://evil.example/cb\?[^"]+)"', text)[1].replace("&amp;", "&")
    back = sent_back({"Location": link})
    assert (back["error"], back["state"], back["iss"]) == ("invalid_scope", "s-1", BASE)
    assert "Return to evil.example" in text
    declined = browser.post(App("https://evil.example/cb").address(), {"answer": "deny"})
    assert sent_back(declined)["error"] == "access_denied"


def test_a_scheme_that_was_allowed_at_registration_is_refused_now(browser):
    app = App("cursor://anysphere.cursor-mcp/cb")
    app.redirect = "microsoft-edge:https://evil.example/cb"
    Row.objects.update(redirect_uris=[app.redirect])
    for address in (app.address(), app.address(redirect_uri=None)):
        for answer in (browser.get(address), browser.post(address, {"answer": "allow"}), Client().get(address)):
            assert answer.status_code == 400
            assert "Location" not in answer
            assert "is not allowed" in answer.content.decode()
    assert not AuthorizationCode.objects.exists()


def test_the_consent_page_shows_the_whole_redirect_address(browser):
    for redirect in ("https://app.example/a/long/callback?kind=mcp", "cursor://anysphere.cursor-mcp/oauth/callback"):
        assert redirect in browser.get(App(redirect).address()).content.decode()


@pytest.mark.requirement("oauth.rules")
@pytest.mark.parametrize(
    "resource",
    [None, "", RESOURCE, RESOURCE + "/", "HTTP://TESTSERVER/api/manage/mcp", "http://testserver:80/api/manage/mcp"],
)
def test_the_resource_may_be_missing_or_written_otherwise(browser, resource):
    app = App()
    code = app.code(browser, resource=resource)
    assert AuthorizationCode.objects.get().resource == RESOURCE
    assert app.redeem(code, resource=resource or "").status_code == 200


@pytest.mark.parametrize(
    "change",
    [
        {"client_id": "mun_client_unknown"},
        {"client_id": None},
        {"client_id": "x" * 100_000},
        {"client_id": "a\x00b"},
        {"client_id": "é\ud7ff"},
        {"redirect_uri": "http://127.0.0.1:33418/other"},
        {"redirect_uri": "http://127.0.0.1:33418/callback/../x"},
        {"redirect_uri": "http://localhost:33418/callback"},
        {"redirect_uri": "https://127.0.0.1:33418/callback"},
        {"redirect_uri": "https://evil.example/callback"},
        {"redirect_uri": REDIRECT + "#x"},
        {"redirect_uri": "javascript:alert(1)"},
        {"redirect_uri": "http://127.0.0.1:33418@evil.example/callback"},
    ],
)
@pytest.mark.parametrize("answering", [False, True])
def test_faults_are_shown_where_the_redirect_is_not_proven(browser, change, answering):
    """RFC 6749, 4.1.2.1: the browser must not be sent anywhere."""
    address = App().address(**change)
    answer = browser.post(address, {"answer": "allow"}) if answering else browser.get(address)
    assert answer.status_code == 400
    assert "Location" not in answer
    assert "error" not in answer.headers
    assert b"<h1>" in answer.content
    assert b"<script>" not in answer.content
    assert not AuthorizationCode.objects.exists()


@pytest.mark.parametrize("name", ["client_id", "redirect_uri", "state", "scope", "code_challenge", "response_type"])
def test_a_parameter_given_twice_is_refused(browser, name):
    """RFC 6749, 3.1."""
    answer = browser.get(f"{App().address(scope='companies:read')}&{name}=again")
    assert answer.status_code == 400
    assert b"is repeated" in answer.content


def test_a_redirect_may_be_left_out_when_only_one_is_registered(browser):
    app = App()
    assert browser.post(app.address(redirect_uri=None), {"answer": "allow"})["Location"].startswith(REDIRECT)
    two = App.register(app, redirect_uris=[REDIRECT, "https://app.example/cb"])
    assert browser.get(app.address(client_id=two["client_id"], redirect_uri=None)).status_code == 400


def test_consent_cannot_be_forged_from_elsewhere(owner):
    """RFC 9700, 4.7 and 4.16."""
    browser = signed_in(owner, enforce_csrf_checks=True)
    app = App()
    assert browser.post(app.address(), {"answer": "allow"}).status_code == 403
    assert not AuthorizationCode.objects.exists()
    page = browser.get(app.address()).content.decode()
    own = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', page)[1]
    answer = browser.post(app.address(), {"answer": "allow", "csrfmiddlewaretoken": own})
    assert answer.status_code == 303


def test_a_consent_sent_without_a_session_gives_nothing():
    answer = Client().post(App().address(), {"answer": "allow"})
    assert answer.status_code == 302
    assert answer["Location"].startswith("/accounts/login/")
    assert not AuthorizationCode.objects.exists()


def test_a_consent_clicked_twice_makes_one_connection(browser):
    app = App()
    first, second = app.code(browser), app.code(browser)
    assert first != second
    assert app.redeem(second).status_code == 200
    assert Grant.objects.count() == 1


@pytest.mark.requirement("oauth.scopes")
def test_scopes_are_asked_chosen_and_stated(browser):
    app = App()
    assert app.connect(browser)["scope"] == " ".join(SCOPES)
    assert app.connect(browser, scope="offline_access")["scope"] == " ".join(SCOPES)
    assert (
        app.connect(browser, scope="companies:write companies:read admin")["scope"] == "companies:read companies:write"
    )
    assert app.connect(browser, access="read")["scope"] == "companies:read profile:read documents:read reports:read"


def test_consent_to_reading_permits_no_app_to_write(browser):
    asked = App().address(scope="companies:write reports:run")
    answer = browser.post(asked, {"answer": "allow", "access": "read"})
    assert "error=access_denied" in answer["Location"]
    assert not AuthorizationCode.objects.exists()


def test_a_client_known_by_its_document_is_fetched_for_people_signed_in_only(browser, monkeypatch):
    identifier = "https://app.example/client.json"
    document = {"client_id": identifier, "client_name": "Tide Table", "redirect_uris": ["http://localhost/callback"]}
    asked = []
    monkeypatch.setattr(client_documents, "read", lambda address: asked.append(address) or document)
    app = App("http://localhost:4321/callback")
    app.client_id = identifier
    assert Client().get(app.address()).status_code == 302
    assert asked == []
    page = browser.get(app.address())
    assert b"Tide Table" in page.content
    assert b"app.example" in page.content
    assert b"Unverified" not in page.content
    given = app.connect(browser)
    assert asked == [identifier]
    monkeypatch.setattr(client_documents, "read", lambda _: pytest.fail("a refresh needs no document"))
    assert app.refresh(given["refresh_token"]).status_code == 200


def test_an_apps_own_description_is_shown_as_text(browser):
    app = App()
    named = App.register(app, redirect_uris=[REDIRECT], client_name="<script>alert(1)</script>")
    page = browser.get(app.address(client_id=named["client_id"]))
    assert b"<script>alert" not in page.content
    assert b"&lt;script&gt;" in page.content
