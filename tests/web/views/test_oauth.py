"""The authorization server over HTTP, each rule with the section that asks for it."""

import json
import re
from urllib.parse import urlencode

import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account, signed_in
from make.apps import BASE, REDIRECT, RESOURCE, App, proof
from muniment.kernel import fairness
from muniment.kernel.actor import SCOPES
from muniment.kernel.fairness import REGISTRATIONS_AN_HOUR, Fairness
from muniment.oauth.models import Client as Row

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


@pytest.mark.parametrize("slash", ["", "/"])
@pytest.mark.parametrize(
    ("alias", "path"),
    [
        ("oauth-authorization-server/api/manage/mcp", "oauth-authorization-server"),
        ("openid-configuration", "oauth-authorization-server"),
        ("oauth-protected-resource", "oauth-protected-resource/api/manage/mcp"),
    ],
)
def test_clients_find_the_metadata_where_they_look_first(alias, path, slash):
    found, expected = Client().get(f"/.well-known/{alias}{slash}"), Client().get(f"/.well-known/{path}")
    assert (found.status_code, found.json()) == (200, expected.json())
    for name in ("Content-Type", "Access-Control-Allow-Origin", "Cache-Control"):
        assert found[name] == expected[name]
    assert Client().head(f"/.well-known/{alias}").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        *("oauth-protected-resource/api/mcp", "oauth-protected-resource/api/manage/mcp/more"),
        *("oauth-authorization-server/api/mcp", "openid-configuration/api/mcp", "openid-configuration/more"),
    ],
)
def test_nothing_else_looks_protected(path):
    answer = Client().get("/.well-known/" + path)
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
        "contacts": ["developer@harbour.example"],
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
        (json.dumps({"redirect_uris": [REDIRECT]}).encode("utf-16"), "invalid_client_metadata"),
        (f'{{"redirect_uris": ["{REDIRECT}"], "x": NaN}}', "invalid_client_metadata"),
        (f'{{"redirect_uris": ["{REDIRECT}"], "redirect_uris": []}}', "invalid_client_metadata"),
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


def _registered(address, **metadata):
    body = json.dumps({"redirect_uris": [REDIRECT], **metadata})
    return Client(REMOTE_ADDR=address).post("/oauth/register", body, content_type="application/json")


def _new(address, number):
    return _registered(address, client_name=f"App {number}")


def test_registrations_of_one_ipv6_network_share_a_bucket_and_only_clients_that_are_added_count():
    for number in range(2 * REGISTRATIONS_AN_HOUR):
        assert _registered(f"2001:db8::{number:x}", grant_types=[]).status_code == 400
        assert _registered(f"2001:db8::{number:x}").status_code == 201
    answers = [
        _new(f"2001:db8::{number:x}", number) for number in range(2 * REGISTRATIONS_AN_HOUR)
    ]  # the hour may turn
    assert [answer.status_code for answer in answers[: REGISTRATIONS_AN_HOUR - 1]] == [201] * (
        REGISTRATIONS_AN_HOUR - 1
    )
    error_of(answers[-1], 429, "temporarily_unavailable")
    assert _new("2001:db8:0:1::1", 101).status_code == 201
    assert _new("192.0.2.9", 102).status_code == 201


def test_users_of_a_hosted_app_share_an_address_and_are_not_refused():
    """They register the same values, so no row is added, also where the address is over its limit."""
    hosted = {"client_name": "Claude", "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"]}
    told = [_registered("192.0.2.7", **hosted) for _ in range(REGISTRATIONS_AN_HOUR * 2)]
    for number in range(2 * REGISTRATIONS_AN_HOUR + 1):
        _new("192.0.2.7", number)
    told.append(_registered("192.0.2.7", **hosted))
    assert {answer.status_code for answer in told} == {201}
    assert len({answer.json()["client_id"] for answer in told}) == 1


def test_a_flood_of_registrations_is_refused_with_a_single_look(monkeypatch, django_assert_num_queries):
    limits = Fairness(rate=600)
    monkeypatch.setattr(fairness, "_current", limits)
    for number in range(REGISTRATIONS_AN_HOUR):
        assert _new(f"2001:db8::{number:x}", number).status_code == 201
    with django_assert_num_queries(10):
        for number in range(10):
            assert _new(f"2001:db8::1:{number:x}", 100 + number).status_code == 429
    assert limits.refused == {"registrations": 10}
    assert _new("192.0.2.9", 200).status_code == 201


def test_registration_has_a_bucket_for_each_address():
    answers = [_new("192.0.2.7", number) for number in range(REGISTRATIONS_AN_HOUR * 2 + 1)]  # the hour may turn once
    assert [answer.status_code for answer in answers[:REGISTRATIONS_AN_HOUR]] == [201] * REGISTRATIONS_AN_HOUR
    late = answers[-1]
    error_of(late, 429, "temporarily_unavailable")
    assert int(late["Retry-After"]) > 0
    assert _new("192.0.2.8", 100).status_code == 201


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


@pytest.mark.parametrize(
    "form",
    [{"grant_type": "authorization_code", "code": "y"}, {"grant_type": "refresh_token", "refresh_token": "y"}],
)
def test_an_unknown_client_is_told_to_register_again(form):
    """RFC 6749, 5.2: invalid_client; a client that has registered gets invalid_grant for the same."""
    for unknown in ("x", "mun_client_gone", "x" * 3_000, "\u6771"):
        answer = post("/oauth/token", {"client_id": unknown, **form})
        assert "register again" in error_of(answer, 401, "invalid_client")
        assert answer["WWW-Authenticate"].startswith("Basic ")
    error_of(post("/oauth/token", {"client_id": App().client_id, **form}), 400, "invalid_grant")


def test_a_client_with_a_document_has_nothing_to_register():
    form = {"client_id": "https://app.example/client.json", "grant_type": "refresh_token", "refresh_token": "y"}
    error_of(post("/oauth/token", form), 400, "invalid_grant")


def test_a_refresh_states_the_scope_that_it_gives(browser):
    """RFC 6749, 5.1 and 6."""
    app = App()
    given = app.connect(browser)
    less = app.refresh(given["refresh_token"], scope="companies:read").json()
    assert less["scope"] == "companies:read"
    retried = app.refresh(given["refresh_token"], scope="companies:read").json()
    assert {**retried, "expires_in": 0} == {**less, "expires_in": 0}
    error_of(app.refresh(less["refresh_token"], scope="admin"), 400, "invalid_scope")
    assert app.refresh(less["refresh_token"]).json()["scope"] == " ".join(SCOPES)


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
