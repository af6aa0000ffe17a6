"""Identity providers of organizations: several, roles by group, who may sign up, and signing in only there."""

import json
from urllib.parse import parse_qs, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, Letters, account, sign_in
from muniment import config
from muniment.accounts import identity_providers
from muniment.accounts.models import Account
from muniment.accounts.operations import set_role
from muniment.accounts.security.events import Event
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import COMMAND, Actor
from muniment.kernel.problems import Forbidden, NotFound
from muniment.setting_values import Provider, providers, sign_up
from services.issuer import SHARED, Issuer
from services.ports import free_port
from services.product import run

pytestmark = pytest.mark.django_db
EMAIL = "ada@harbour.example"
UNREACHABLE = {"key": "sso", "name": "S", "issuer": "http://127.0.0.1:9", "client_id": "a", "client_secret": "b"}


@pytest.fixture(autouse=True)
def _clean(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()


@pytest.fixture
def staff(settings, monkeypatch):
    """Return the issuer of the staff, and a function that sets the settings of a registry that trusts it."""
    with Issuer({"sub": "7", "email": EMAIL, "email_verified": True, "groups": []}) as issuer:

        def use(*, others=(), signup="on", sign_in="all", **provider):
            mine = {"key": "staff", "name": "Harbour staff", "issuer": issuer.url, "client_id": "registry"}
            listed = [{**mine, "client_secret": SHARED, **provider}, *others]
            given = {"OIDC_PROVIDERS": json.dumps(listed), "SIGNUP": signup, "SIGN_IN": sign_in}
            base = {"MUNIMENT_DATA": str(config.current().data)}
            made = config.Config({**base, **{f"MUNIMENT_{name}": value for name, value in given.items()}})
            monkeypatch.setattr(config, "current", lambda: made)
            settings.SOCIALACCOUNT_PROVIDERS = {
                "openid_connect": {
                    "APPS": [
                        {
                            "provider_id": each.key,
                            "name": each.name,
                            "client_id": each.client_id,
                            "secret": each.client_secret,
                            "settings": {"server_url": each.issuer, "oauth_pkce_enabled": True},
                        }
                        for each in made.oidc_providers
                    ]
                }
            }

        use()
        yield issuer, use


def come_by(issuer, key="staff"):
    """Sign in at the issuer; return the browser and the answer to the one that comes back."""
    client = Client()
    left = client.post(f"/accounts/oidc/{key}/login/?process=login")
    back = urlsplit(issuer.agree(left["Location"]))
    return client, client.get(f"{back.path}?{back.query}")


def is_in(client):
    return client.get("/manage").status_code == 200


@pytest.mark.sqlite  # the sign-in page is kept by the edition of the database file
def test_people_of_two_providers_sign_in_each_at_their_own(staff):
    issuer, use = staff
    with Issuer({"sub": "7", "email": "bo@lighthouse.example", "email_verified": True}) as other:
        mine = {"key": "members", "name": "Members", "issuer": other.url, "client_id": "registry"}
        use(others=[{**mine, "client_secret": SHARED}])
        page = Client().get("/accounts/login/").content.decode()
        assert "Continue with Harbour staff" in page
        assert "Continue with Members" in page
        assert is_in(come_by(issuer)[0])
        assert is_in(come_by(other, "members")[0])
    # The same number at two providers is two people.
    assert set(Account.objects.values_list("email", flat=True)) == {EMAIL, "bo@lighthouse.example"}


@pytest.mark.parametrize("place", ["the ID token", "user information"])
def test_groups_set_the_role_at_each_sign_in(staff, place):
    issuer, use = staff
    use(reviewers=["desk"], operators=["keepers"], role_claim="realm.roles")

    def signed_in_with(*groups):
        told = {"realm": {"roles": list(groups)}}
        issuer.claims, issuer.person = (told, issuer.person) if place == "the ID token" else ({}, issuer.person | told)
        come_by(issuer)
        return Account.objects.get().role

    assert signed_in_with("sailors") == "owner"
    assert signed_in_with("sailors", "desk") == "reviewer"
    assert signed_in_with("desk", "keepers") == "operator"
    assert signed_in_with() == "owner"
    changes = SecurityEvent.objects.filter(event=Event.ROLE_CHANGED).order_by("pk")
    assert [each.detail["role"] for each in changes] == ["reviewer", "operator", "owner"]
    assert all(each.is_audited for each in changes)


def test_a_role_that_no_group_gives_stays(staff):
    issuer, use = staff
    use(reviewers=["desk"])
    come_by(issuer)
    set_role(COMMAND, EMAIL, "operator")
    come_by(issuer)
    assert Account.objects.get().role == "operator"
    use()
    set_role(COMMAND, EMAIL, "reviewer")
    come_by(issuer)
    assert Account.objects.get().role == "reviewer"


@pytest.mark.parametrize(
    ("claims", "role"),
    [
        ({"id_token": {"groups": "desk"}}, "reviewer"),
        ({"id_token": {"groups": ["desk", 7, None]}}, "reviewer"),
        ({"id_token": {"groups": {"desk": True}}}, "owner"),
        ({"id_token": {"groups": [["desk"]]}}, "owner"),
        ({"id_token": None, "userinfo": "desk"}, "owner"),
        ({"userinfo": {"groups": ["x"] * identity_providers.MOST_GROUPS + ["desk"]}}, "owner"),
        ({}, "owner"),
    ],
)
def test_claims_of_any_shape_give_a_role_only_by_a_named_group(claims, role):
    desk = Provider("staff", "Staff", "https://x.example", "id", "secret", roles=(("reviewer", ("desk",)),))
    assert identity_providers.role_for(desk, claims, "owner") == role
    dotted = Provider("staff", "S", "https://x.example", "i", "s", "https://x.example/groups", desk.roles)
    assert (
        identity_providers.role_for(dotted, {"id_token": {"https://x.example/groups": ["desk"]}}, "owner") == "reviewer"
    )


@pytest.mark.sqlite  # the sign-in page is kept by the edition of the database file
def test_people_of_a_provider_sign_up_where_others_may_not(staff):
    issuer, use = staff
    use(signup="off")
    come_by(issuer)
    assert not Account.objects.exists()
    use(signup="off", sign_up="lighthouse.example")
    come_by(issuer)
    assert not Account.objects.exists()
    use(signup="off", sign_up="lighthouse.example harbour.example")
    assert is_in(come_by(issuer)[0])
    assert Client().get("/accounts/signup/").status_code == 200
    assert "accounts/signup" not in Client().get("/accounts/login/").content.decode()


def test_only_addresses_of_the_domains_sign_up(staff):
    _, use = staff
    use(signup="harbour.example")
    entered = {"password1": PASSWORD, "password2": PASSWORD}
    for refused in ("eve@elsewhere.example", "eve@harbour.example.evil.example", "eve@sub.harbour.example"):
        said = Client().post("/accounts/signup/", {"email": refused, **entered}).content.decode()
        assert "addresses at harbour.example" in said
    assert not Account.objects.exists()
    assert Client().post("/accounts/signup/", {"email": "eve@Harbour.Example", **entered}).status_code == 302
    assert Account.objects.get().email == "eve@harbour.example"


@pytest.mark.sqlite  # the sign-in page is kept by the edition of the database file
def test_without_a_provider_no_way_leads_in_and_open_sessions_end(staff):
    issuer, use = staff
    standing = account(EMAIL, password=PASSWORD)
    before = Client()
    sign_in(before, standing)
    assert is_in(before)
    use(sign_in="providers")
    assert not is_in(before), "a session of a password ends"
    assert EMAIL not in before.get("/accounts/menu").content.decode()
    page = Client().get("/accounts/login/").content.decode()
    assert "Continue with Harbour staff" in page
    assert 'type="password"' not in page
    for path, entered in (
        ("/accounts/login/", {"login": EMAIL, "password": PASSWORD}),
        ("/accounts/login/", {"login": EMAIL, "password": "not this one"}),
    ):
        client = Client()
        answer = client.post(path, entered)
        assert answer["Location"] == "/accounts/login/"
        assert "only at Harbour staff" in client.get("/accounts/login/").content.decode()
        assert not is_in(client)
    entered = {"email": "new@harbour.example", "password1": PASSWORD, "password2": PASSWORD}
    Client().post("/accounts/signup/", entered)
    assert Account.objects.get() == standing
    issuer.person["email"] = "other@harbour.example"
    assert is_in(come_by(issuer)[0])


def test_a_mailed_code_and_a_new_password_do_not_lead_in_either(staff):
    _, use = staff
    account(EMAIL, password=PASSWORD)
    for begin, end in (("/accounts/login/code/", "code/confirm/"), ("/accounts/password/reset/", "confirm/")):
        use()
        letters, client = Letters(), Client()
        assert client.post(begin, {"email": EMAIL}).status_code == 302
        use(sign_in="providers")
        client.post(begin.removesuffix("code/") + end, {"code": letters.code(EMAIL)})
        chosen = {"password1": "another harbour 9", "password2": "another harbour 9"}
        client.post("/accounts/password/reset/key/", chosen)
        assert not is_in(client)
    assert not SecurityEvent.objects.filter(event=Event.SIGNED_IN).exists()


def test_a_link_of_the_command_line_lets_an_account_in_once(staff, monkeypatch):
    _, use = staff
    account(EMAIL, password=PASSWORD, role="operator")
    use(sign_in="providers")
    link = identity_providers.sign_in_link(COMMAND, EMAIL)
    client = Client()
    page = client.get(link)
    assert EMAIL in page.content.decode()
    assert "no-store" in page["Cache-Control"]
    assert not is_in(client), "looking at the page is no sign-in"
    client.post(link)
    assert is_in(client)
    again = Client()
    assert again.post(link)["Location"] == "/accounts/login/"
    assert not is_in(again)
    late = identity_providers.sign_in_link(COMMAND, EMAIL)
    monkeypatch.setattr(identity_providers, "LINK_LASTS_S", -1)
    assert Client().get(late).status_code == 302


@pytest.mark.parametrize(
    "spoilt", [{"account": "another"}, {"account": "x"}, {"account": "9" * 400}, {"token": "x"}, {"token": ""}]
)
def test_a_spoilt_link_lets_no_one_in(staff, spoilt):
    other = account("bo@harbour.example", password=PASSWORD)
    account(EMAIL, password=PASSWORD)
    if spoilt.get("account") == "another":
        spoilt = {"account": str(other.pk)}
    query = {
        name: values[0]
        for name, values in parse_qs(urlsplit(identity_providers.sign_in_link(COMMAND, EMAIL)).query).items()
    }
    client = Client()
    assert client.post("/accounts/link/", query_params=query | spoilt).status_code == 302
    assert not is_in(client)


def test_a_link_is_for_operators_and_known_addresses():
    with pytest.raises(Forbidden):
        identity_providers.sign_in_link(Actor(1, "reviewer", "web"), EMAIL)
    with pytest.raises(NotFound):
        identity_providers.sign_in_link(COMMAND, EMAIL)


def test_the_registry_does_not_lock_its_operators_out(staff):
    issuer, use = staff
    come_by(issuer)
    use(sign_in="providers")
    assert "would lock every operator out" in identity_providers.missing_operator()
    set_role(COMMAND, EMAIL, "operator")
    assert identity_providers.missing_operator() == ""
    Account.objects.update(is_active=False)
    assert identity_providers.missing_operator()
    use()
    assert identity_providers.missing_operator() == ""


def test_a_process_refuses_to_serve_before_an_operator_has_signed_in_at_a_provider(tmp_path):
    settings = {"sign_in": "providers", "oidc_providers": json.dumps([UNREACHABLE])}
    refused = run("serve", "--port", str(free_port()), data=tmp_path / "data", check=False, **settings)
    assert refused.returncode == 78
    assert "would lock every operator out" in refused.stderr
    run("user", "create", EMAIL, "--no-password", data=tmp_path / "data", **settings)
    link = run("user", "sign-in-link", EMAIL, data=tmp_path / "data", **settings).stdout
    assert link.startswith("http://127.0.0.1:8000/accounts/link/?account=")


def test_settings_of_providers_are_refused_with_the_place_of_the_fault():
    whole = {"key": "staff", "name": "Staff", "issuer": "https://id.example", "client_id": "a", "client_secret": "b"}
    assert [each.key for each in providers(json.dumps([whole, {**whole, "key": "members"}]))] == ["staff", "members"]
    assert providers("") == ()
    for given, said in (
        ("{", "JSON list of identity providers"),
        ("[7]", "Expected `object`"),
        (json.dumps([{**whole, "key": "Staff!"}]), "key"),
        (json.dumps([{**whole, "issuer": "id.example"}]), "https://"),
        (json.dumps([{**whole, "reviewer": ["x"]}]), "reviewer"),
        (json.dumps([{name: value for name, value in whole.items() if name != "client_id"}]), "client_id"),
        (json.dumps([whole, whole]), "another key"),
    ):
        with pytest.raises(ValueError, match=said):
            providers(given)
    for given in ("harbour", "a@harbour.example", "-x.example", ",", "on off"):
        with pytest.raises(ValueError, match="mail domains"):
            sign_up(given)
    secret = providers(json.dumps([{**whole, "client_secret": "hidden-from-lists"}]))
    assert "hidden-from-lists" not in f"{secret} {secret[0]} {secret[0]!r}"


def test_signing_in_only_at_providers_needs_a_provider():
    with pytest.raises(config.ConfigError, match="needs MUNIMENT_OIDC_PROVIDERS"):
        config.Config({"MUNIMENT_SIGN_IN": "providers"})


def test_a_provider_that_does_not_answer_ends_a_sign_in_with_a_page(staff):
    issuer, _ = staff
    client = Client()
    left = client.post("/accounts/oidc/staff/login/?process=login")
    back = urlsplit(issuer.agree(left["Location"]))
    issuer.stop()
    answer = Client().post("/accounts/oidc/staff/login/?process=login")
    assert answer.status_code == 503
    assert int(answer["Retry-After"]) >= 1
    assert "The identity provider does not answer; you were not signed in." in answer.content.decode()
    assert client.get(f"{back.path}?{back.query}").status_code == 503
    assert not is_in(client)
    issuer.start()
