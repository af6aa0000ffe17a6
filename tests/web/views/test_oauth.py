"""The authorization server over HTTP, each rule with the section that asks for it."""

import json
import re
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account, signed_in
from make.apps import BASE, REDIRECT, RESOURCE, App, proof, sent_back
from muniment.kernel.actor import SCOPES
from muniment.oauth import client_documents
from muniment.oauth.models import AuthorizationCode, Grant
from muniment.oauth.models import Client as Row
from muniment.web.views.oauth import REGISTRATIONS_AN_HOUR

pytestmark = pytest.mark.django_db
FORM = "application/x-www-form-urlencoded"


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


def error_of(answer, status, error):
    assert answer.status_code == status, answer.content
    body = answer.json()
    assert set(body) == {"error", "error_description"}
    assert body["error"] == error
    assert re.fullmatch(r"[\x20-\x21\x23-\x5B\x5D-\x7E]+", body["error_description"])  # RFC 6749, 5.2
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Cache-Control"] == "no-store"
    return body["error_description"]


def post(path, fields, **more):
    return Client().post(path, fields if isinstance(fields, str) else urlencode(fields), content_type=FORM, **more)


# ---------------------------------------------------------------------- metadata


@pytest.mark.requirement("oauth.endpoints")
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_authorization_server_describes_itself(slash):
    """RFC 8414, 2 and 3; RFC 9207, 3."""
    answer = Client().get("/.well-known/oauth-authorization-server" + slash)
    assert answer["Content-Type"] == "application/json"
    assert answer["Access-Control-Allow-Origin"] == "*"
    found = answer.json()
    assert found["issuer"] == BASE
    assert not found["issuer"].endswith("/")
    for kind, path in (("authorization", "authorize"), ("token", "token"), ("registration", "register")):
        assert found[f"{kind}_endpoint"] == f"{BASE}/oauth/{path}"
    assert found["revocation_endpoint"] == f"{BASE}/oauth/revoke"
    assert found["response_types_supported"] == ["code"]
    assert found["response_modes_supported"] == ["query"]
    assert found["grant_types_supported"] == ["authorization_code", "refresh_token"]
    assert found["token_endpoint_auth_methods_supported"] == ["none"]
    assert found["code_challenge_methods_supported"] == ["S256"]
    assert found["client_id_metadata_document_supported"] is True
    assert found["authorization_response_iss_parameter_supported"] is True
    assert found["scopes_supported"] == list(SCOPES)


@pytest.mark.requirement("oauth.endpoints")
@pytest.mark.parametrize("slash", ["", "/"])
def test_the_owners_tool_server_describes_itself(slash):
    """RFC 9728, 2 and 3.1."""
    found = Client().get("/.well-known/oauth-protected-resource/api/manage/mcp" + slash).json()
    assert found["resource"] == RESOURCE
    assert found["authorization_servers"] == [BASE]
    assert found["bearer_methods_supported"] == ["header"]
    assert "offline_access" not in found["scopes_supported"]


@pytest.mark.parametrize("path", ["", "/api/mcp", "/api/manage/mcp/more"])
def test_nothing_else_looks_protected(path):
    answer = Client().get("/.well-known/oauth-protected-resource" + path)
    assert answer.status_code == 404
    assert answer.json()["error"]["code"] == "not_found"
    assert answer["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize("path", ["/oauth/register", "/oauth/token", "/oauth/revoke", "/oauth/token/"])
def test_browsers_may_ask_from_any_origin(path):
    answer = Client().options(path, HTTP_ORIGIN="https://app.example")
    assert answer.status_code == 204
    assert answer["Access-Control-Allow-Origin"] == "*"
    assert answer["Access-Control-Allow-Methods"] == "POST, OPTIONS"
    assert {"Authorization", "Content-Type", "MCP-Protocol-Version"} <= set(
        answer["Access-Control-Allow-Headers"].split(", ")
    )
    refused = Client().get(path)
    error_of(refused, 405, "invalid_request")
    assert refused["Allow"] == "POST, OPTIONS"


# ---------------------------------------------------------------------- registration


def test_registration_answers_what_holds_and_nothing_null():
    """RFC 7591, 3.2.1; null members break clients."""
    asked = {
        "redirect_uris": [REDIRECT],
        "client_name": "Harbour Agent",
        "token_endpoint_auth_method": "client_secret_basic",
        "grant_types": ["authorization_code", "client_credentials", "password"],
        "response_types": ["code", "token"],
        "client_secret": "mine",
        "scope": "admin",
        "software_id": None,
        "contacts": ["somebody@harbour.example"],
        "invented": {"deep": [1]},
    }
    answer = Client().post("/oauth/register/", json.dumps(asked), content_type="application/json")
    assert answer.status_code == 201
    found = answer.json()
    assert None not in found.values()
    assert found["token_endpoint_auth_method"] == "none"
    assert found["grant_types"] == ["authorization_code", "refresh_token"]
    assert found["response_types"] == ["code"]
    assert isinstance(found["client_id_issued_at"], int)
    assert not {"client_secret", "client_secret_expires_at", "registration_access_token", "scope"} & set(found)
    assert "mine" not in str(vars(Row.objects.get()))


def test_registration_needs_no_name_and_no_method():
    found = App.register(type("Bare", (), {"http": Client()})(), redirect_uris=["cursor://anysphere.cursor-mcp/cb"])
    assert "client_name" not in found


@pytest.mark.parametrize(
    ("body", "error"),
    [
        ("", "invalid_client_metadata"),
        ("{", "invalid_client_metadata"),
        ("[]", "invalid_client_metadata"),
        ("null", "invalid_client_metadata"),
        ("[" * 50_000, "invalid_client_metadata"),
        ("x" * 100_000, "invalid_client_metadata"),
        (b"\xff\xfe", "invalid_client_metadata"),
        ({}, "invalid_redirect_uri"),
        ({"redirect_uris": []}, "invalid_redirect_uri"),
        ({"redirect_uris": REDIRECT}, "invalid_redirect_uri"),
        ({"redirect_uris": [1]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT] * 21}, "invalid_redirect_uri"),
        ({"redirect_uris": ["http://app.example/cb"]}, "invalid_redirect_uri"),
        ({"redirect_uris": [REDIRECT, "javascript:alert(1)"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/cb#x"]}, "invalid_redirect_uri"),
        ({"redirect_uris": ["https://app.example/\x00"]}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "grant_types": ["client_credentials"]}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "grant_types": "authorization_code"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "response_types": ["token"]}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": 7}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "x" * 101}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "a\x00b"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "a\ud800b"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "evil\u202etxt"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "Muniment"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "m u n i m e n t Desktop"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "ＭＵＮＩＭＥＮＴ App"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "\u041cuniment"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "Muni\u043cent Desktop"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "\u039cUNIMENT"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "The Official Agent"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "Agent (verified)"}, "invalid_client_metadata"),
        ({"redirect_uris": [REDIRECT], "client_name": "TRUSTED agent"}, "invalid_client_metadata"),
    ],
)
def test_a_registration_that_cannot_be_is_refused(body, error):
    """RFC 7591, 3.2.2."""
    sent = json.dumps(body) if isinstance(body, dict) else body
    error_of(Client().post("/oauth/register", sent, content_type="application/json"), 400, error)
    assert not Row.objects.exists()


@pytest.mark.parametrize("name", ["Агент Agent", "Ωμέγα", "東京 Agent", "Élan", "Ångström 2"])
def test_names_in_any_one_alphabet_are_taken(name):
    found = App.register(type("Bare", (), {"http": Client()})(), redirect_uris=[REDIRECT], client_name=name)
    assert found["client_name"] == name


def test_registration_has_a_bucket_for_each_address():
    def register(address):
        body = json.dumps({"redirect_uris": [REDIRECT]})
        return Client(REMOTE_ADDR=address).post("/oauth/register", body, content_type="application/json")

    answers = [register("192.0.2.7") for _ in range(REGISTRATIONS_AN_HOUR * 2 + 1)]  # the hour may turn once
    assert [answer.status_code for answer in answers[:REGISTRATIONS_AN_HOUR]] == [201] * REGISTRATIONS_AN_HOUR
    late = answers[-1]
    error_of(late, 429, "temporarily_unavailable")
    assert int(late["Retry-After"]) > 0
    assert register("192.0.2.8").status_code == 201


# ---------------------------------------------------------------------- authorization


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
    """Session fixation: a session that somebody planted, one of ours even, is not the one that is signed in."""
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


# ---------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    ("form", "error"),
    [
        ({}, "invalid_request"),
        ({"grant_type": "authorization_code"}, "invalid_request"),
        ({"client_id": "x"}, "invalid_request"),
        ({"client_id": "x", "grant_type": "client_credentials"}, "unsupported_grant_type"),
        ({"client_id": "x", "grant_type": "password", "username": "a", "password": "b"}, "unsupported_grant_type"),
        ({"client_id": "x", "grant_type": "implicit"}, "unsupported_grant_type"),
        ({"client_id": "x", "grant_type": "authorization_code", "code": "y"}, "invalid_grant"),
        ({"client_id": "x", "grant_type": "refresh_token", "refresh_token": "y"}, "invalid_grant"),
        ({"client_id": "x", "grant_type": "refresh_token", "resource": "https://evil.example"}, "invalid_target"),
        ({"client_id": "x" * 100_000, "grant_type": "refresh_token"}, "invalid_request"),
        ({"client_id": "x" * 5_000, "grant_type": "refresh_token"}, "invalid_request"),
        ({"client_id": "a\x00b", "grant_type": "refresh_token"}, "invalid_request"),
        ("client_id=x&client_id=y&grant_type=refresh_token", "invalid_request"),
        ("grant_type=refresh_token&grant_type=authorization_code&client_id=x", "invalid_request"),
        ("client_id=%FF&grant_type=refresh_token", "invalid_request"),
        ("&".join(f"a{n}=1" for n in range(60)), "invalid_request"),
    ],
)
def test_a_token_request_that_cannot_be_is_refused(form, error):
    """RFC 6749, 3.2 and 5.2."""
    error_of(post("/oauth/token", form), 400, error)


def test_the_token_endpoint_takes_forms_only():
    answer = Client().post("/oauth/token", json.dumps({"grant_type": "refresh_token"}), content_type="application/json")
    error_of(answer, 400, "invalid_request")


def test_a_code_answer_is_never_kept(browser):
    """RFC 6749, 5.1."""
    app = App()
    answer = app.redeem(app.code(browser))
    assert answer["Cache-Control"] == "no-store"
    assert answer["Access-Control-Allow-Origin"] == "*"


def test_secrets_that_a_client_sends_along_change_nothing(browser):
    app = App()
    answer = app.redeem(app.code(browser), client_secret="anything")
    assert answer.status_code == 200


def test_the_wrong_verifier_is_refused(browser):
    """RFC 7636, 4.6."""
    app = App()
    error_of(app.redeem(app.code(browser), code_verifier=proof().verifier), 400, "invalid_grant")


def test_revocation_answers_the_same_for_every_token(browser):
    """RFC 7009, 2.2."""
    app = App()
    given = app.connect(browser)
    for text in (given["refresh_token"], given["refresh_token"], "unknown", "mun_pat_" + "x" * 36, ""):
        answer = post("/oauth/revoke/", {"token": text, "token_type_hint": "nonsense"})
        assert (answer.status_code, answer.content) == (200, b"")
        assert answer["Access-Control-Allow-Origin"] == "*"
    error_of(app.refresh(given["refresh_token"]), 400, "invalid_grant")
    error_of(post("/oauth/revoke", {}), 400, "invalid_request")


def test_endpoints_answer_at_their_address_with_a_slash(browser):
    app = App()
    code = app.code(browser)
    fields = {
        "client_id": app.client_id,
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": app.proof.verifier,
    }
    assert post("/oauth/token/", fields).status_code == 200
    assert browser.get(app.address().replace("/authorize", "/authorize/")).status_code == 200
