"""Confirming an identity at the identity provider: only what it states counts, and it states when."""

import time
from urllib.parse import urlencode, urlsplit

import pytest
from django.core.cache import cache
from django.test import Client

from make.accounts import PASSWORD, account, age, sign_in, signed_in
from make.apps import App
from muniment.accounts.models import Account
from muniment.accounts.security.models import SecurityEvent
from services.issuer import Issuer, provider

pytestmark = pytest.mark.django_db
EMAIL = "ada@harbour.example"
BY_PROVIDER = "/accounts/reauthenticate/provider/"
TOKEN = {"name": "laptop of Ada", "lifetime": "30", "access": "read"}


@pytest.fixture(autouse=True)
def _clean(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"
    cache.clear()


@pytest.fixture
def issuer(settings):
    with Issuer({"sub": "7", "email": EMAIL, "email_verified": True}) as made:
        settings.SOCIALACCOUNT_PROVIDERS = provider(made)
        yield made


@pytest.fixture
def browser(issuer):
    """Return a browser that signed in at the issuer 16 minutes ago, where the person has been for two hours."""
    issuer.signed_in_at = time.time() - 7_200
    client = Client()
    sign_in_at(client, issuer)
    age(client)
    return client


def come_back(client, issuer, left):
    """Agree at the issuer; return the answer to the browser that comes back."""
    assert left.status_code == 302, left.content.decode()[:500]
    assert left["Location"].startswith(f"{issuer.url}/authorize?"), left["Location"]
    back = urlsplit(issuer.agree(left["Location"]))
    return client.get(f"{back.path}?{back.query}")


def sign_in_at(client, issuer, where="/manage"):
    left = client.post(f"/accounts/oidc/sso/login/?{urlencode({'process': 'login', 'next': where})}")
    return come_back(client, issuer, left)


def confirm(client, issuer, where="/manage/tokens"):
    query = urlencode({"next": where})
    assert client.get(f"{BY_PROVIDER}?{query}").status_code == 200
    return come_back(client, issuer, client.post(f"{BY_PROVIDER}?{query}"))


def is_confirmed(client):
    answer = client.post("/manage/tokens", TOKEN)
    if answer.status_code == 200:
        assert b"mun_pat_" in answer.content
        return True
    assert answer["Location"].startswith("/accounts/reauthenticate/?")
    return False


def test_the_issuer_is_asked_to_sign_the_person_in_again(browser, issuer):
    first = browser.get(browser.post("/manage/tokens", TOKEN)["Location"])
    assert first["Location"] == f"{BY_PROVIDER}?next=%2Fmanage%2Ftokens"
    page = browser.get(first["Location"])
    assert "Sign in at Harbour login" in page.content.decode()
    assert 'href="/accounts/reauthenticate/email/?next=%2Fmanage%2Ftokens"' in page.content.decode()
    assert "form-action" not in page["Content-Security-Policy"]
    assert "frame-ancestors 'none'" in page["Content-Security-Policy"]
    done = come_back(browser, issuer, browser.post(first["Location"]))
    assert issuer.asked["authorize"]["prompt"] == "login"
    assert issuer.asked["authorize"]["max_age"] == "900"
    assert issuer.asked["authorize"]["code_challenge_method"] == "S256"
    assert done["Location"] == "/manage/tokens"
    assert 'value="laptop of Ada"' in browser.get("/manage/tokens").content.decode()
    assert is_confirmed(browser)
    [entry] = SecurityEvent.objects.filter(event="reauthenticated")
    assert entry.detail == {"method": "single sign-on"}


def test_a_sign_in_counts_from_when_the_person_signed_in_at_the_issuer(issuer):
    """A session of the issuer signs in without asking anybody, for example at a computer that was left open."""
    for minutes, counts in ((0, True), (14.5, True), (16.5, False), (600, False)):
        issuer.signed_in_at = time.time() - minutes * 60
        client = Client()
        assert sign_in_at(client, issuer)["Location"] == "/manage"
        assert is_confirmed(client) is counts, minutes
    assert "prompt" not in issuer.asked["authorize"]


def test_an_agents_first_connection_asks_once(issuer):
    app, client = App(), Client()
    assert client.get(app.address())["Location"].startswith("/accounts/login/")
    assert sign_in_at(client, issuer, app.address())["Location"] == app.address()
    assert client.post(app.address(), {"answer": "allow", "access": "all"}).status_code == 303


def test_the_consent_continues_unchanged_after_the_issuer(browser, issuer):
    app = App()
    address = app.address(state="a b&c=é")
    assert browser.post(address, {"answer": "allow", "access": "all"}).status_code == 302
    assert confirm(browser, issuer, address)["Location"] == address
    assert browser.post(address, {"answer": "allow", "access": "all"}).status_code == 303


def test_a_form_of_an_account_page_continues_after_the_issuer(browser, issuer):
    sent = browser.post("/accounts/email/", {"action_add": "", "email": "new@harbour.example"})
    assert urlsplit(sent["Location"]).path == BY_PROVIDER
    assert confirm(browser, issuer, "/accounts/email/")["Location"] == "/accounts/confirm-email/"
    assert Account.objects.get().email == EMAIL


@pytest.mark.parametrize("at", ["now", None, True, [], {}, -1, 10**400, "1790000000"])
def test_a_time_that_is_none_is_refused_with_an_explanation(browser, issuer, at):
    issuer.claims["auth_time"] = at
    refused = confirm(browser, issuer)
    assert refused["Location"] == f"{BY_PROVIDER}?next=%2Fmanage%2Ftokens"
    assert "did not say when you signed in" in browser.get(refused["Location"]).content.decode()
    assert not is_confirmed(browser)


def test_a_time_in_the_future_is_refused(browser, issuer):
    issuer.claims["auth_time"] = int(time.time()) + 3_600
    refused = confirm(browser, issuer)
    assert "did not ask you to sign in again" in browser.get(refused["Location"]).content.decode()
    assert not is_confirmed(browser)


def test_an_issuer_that_does_not_ask_again_is_refused_with_an_explanation(browser, issuer):
    issuer.obeys = False
    refused = confirm(browser, issuer)
    text = browser.get(refused["Location"]).content.decode()
    assert "Harbour login did not ask you to sign in again" in text
    assert "Email me a code" in text
    assert not is_confirmed(browser)


@pytest.mark.parametrize(("late_s", "counts"), [(-50, True), (890, True), (950, True), (1_000, False)])
def test_clocks_may_differ_by_a_minute(browser, issuer, late_s, counts):
    issuer.claims["auth_time"] = int(time.time()) - late_s
    confirm(browser, issuer)
    assert is_confirmed(browser) is counts


def test_another_identity_confirms_nothing(browser, issuer):
    """Also not one that has an account here, and the browser stays signed in as it was."""
    stranger = {"sub": "8", "email": "bo@harbour.example", "email_verified": True}
    issuer.person, ada = stranger, issuer.person
    for _ in range(2):
        refused = confirm(browser, issuer)
        assert "you signed in as someone else" in browser.get(refused["Location"]).content.decode()
        assert not is_confirmed(browser)
        sign_in_at(Client(), issuer)
    assert Account.objects.count() == 2
    issuer.person = ada
    assert EMAIL in browser.get("/accounts/email/").content.decode()


def test_an_id_token_of_another_person_than_the_rest_of_the_answer_is_worth_nothing(browser, issuer):
    """OpenID Connect Core 1.0, 5.3.2: the two must have the same sub."""
    issuer.claims["sub"] = "8"
    confirm(browser, issuer)
    assert not is_confirmed(browser)


@pytest.mark.parametrize("claims", [{"iss": "https://evil.example"}, {"aud": "another"}, {"exp": 1_000_000_000}])
def test_an_id_token_for_someone_else_is_worth_nothing(browser, issuer, claims):
    issuer.claims |= claims
    refused = confirm(browser, issuer)
    assert refused["Location"] == f"{BY_PROVIDER}?next=%2Fmanage%2Ftokens"
    assert "did not confirm your sign-in" in browser.get(refused["Location"]).content.decode()
    assert not is_confirmed(browser)


def test_a_person_who_cancels_at_the_issuer_is_back_where_they_were(browser, issuer):
    left = browser.post(f"{BY_PROVIDER}?next=/manage/tokens")
    back = urlsplit(issuer.agree(left["Location"]))
    state = issuer.asked["authorize"]["state"]
    answer = browser.get(f"{back.path}?{urlencode({'error': 'access_denied', 'state': state})}")
    assert answer["Location"] == f"{BY_PROVIDER}?next=%2Fmanage%2Ftokens"
    assert browser.get("/manage").status_code == 200


def test_an_answer_of_the_issuer_works_once_and_in_its_own_session_only(browser, issuer):
    left = browser.post(f"{BY_PROVIDER}?next=/manage/tokens")
    back = urlsplit(issuer.agree(left["Location"]))
    other = signed_in(account())
    age(other)
    assert other.get(f"{back.path}?{back.query}").status_code == 401
    assert not is_confirmed(other)
    assert browser.get(f"{back.path}?{back.query}")["Location"] == "/manage/tokens"
    age(browser)
    assert browser.get(f"{back.path}?{back.query}").status_code == 401
    assert not is_confirmed(browser)


def test_another_account_in_the_same_browser_gains_nothing_from_it(browser, issuer):
    left = browser.post(f"{BY_PROVIDER}?next=/manage/tokens")
    back = urlsplit(issuer.agree(left["Location"]))
    sign_in(browser, account())
    age(browser)
    browser.get(f"{back.path}?{back.query}")
    assert not is_confirmed(browser)


def test_parameters_of_the_browser_do_not_change_the_request(browser, issuer):
    left = browser.post(f"{BY_PROVIDER}?{urlencode({'auth_params': 'prompt=none&max_age=9999999', 'scope': 'x'})}")
    come_back(browser, issuer, left)
    assert issuer.asked["authorize"]["prompt"] == "login"
    assert issuer.asked["authorize"]["max_age"] == "900"


def test_a_sign_in_with_process_redirect_confirms_nothing(browser, issuer):
    left = browser.post("/accounts/oidc/sso/login/?process=redirect&next=/manage/tokens")
    come_back(browser, issuer, left)
    assert not is_confirmed(browser)


@pytest.mark.parametrize("where", ["https://evil.example/", "//evil.example/", "javascript:alert(1)"])
def test_the_way_back_leads_to_no_other_site(browser, issuer, where):
    left = browser.post(f"{BY_PROVIDER}?{urlencode({'next': where})}")
    assert come_back(browser, issuer, left)["Location"] == "/manage"


def test_an_issuer_that_is_down_says_so_and_leaves_the_other_way(browser, issuer, settings):
    issuer.url = "http://127.0.0.1:1"
    settings.SOCIALACCOUNT_PROVIDERS = provider(issuer)
    answer = browser.post(f"{BY_PROVIDER}?next=/manage/tokens")
    page = browser.get(answer["Location"]).content.decode()
    assert "can&#x27;t be reached" in page
    assert "Email me a code" in page


def test_without_the_provider_a_code_is_mailed(browser, settings):
    settings.SOCIALACCOUNT_PROVIDERS = {}
    first = browser.get(browser.post("/manage/tokens", TOKEN)["Location"])
    assert urlsplit(first["Location"]).path == "/accounts/reauthenticate/email/"
    assert urlsplit(browser.get(BY_PROVIDER)["Location"]).path == "/accounts/reauthenticate/email/"


def test_connecting_an_identity_needs_a_confirmation(issuer):
    owner = account("owner@harbour.example", password=PASSWORD)
    client = signed_in(owner)
    age(client)
    asked = come_back(client, issuer, client.post("/accounts/oidc/sso/login/?process=connect"))
    assert asked["Location"] == "/accounts/reauthenticate/?next=%2Faccounts%2F3rdparty%2F"
    assert client.post(asked["Location"], {"password": PASSWORD})["Location"] == "/accounts/3rdparty/"
    assert not owner.socialaccount_set.exists(), "an identity that was left in the session"
    come_back(client, issuer, client.post("/accounts/oidc/sso/login/?process=connect"))
    assert owner.socialaccount_set.exists()
    age(client)
    identity = owner.socialaccount_set.get()
    asked = client.post("/accounts/3rdparty/", {"account": identity.pk})
    assert urlsplit(asked["Location"]).path == "/accounts/reauthenticate/"
    assert owner.socialaccount_set.exists()
