"""Signing up and in, with a password, a code, an authenticator; mail, roles, and the command."""

import json
from urllib.parse import urlsplit

import html5lib
import pytest
from allauth.mfa.models import Authenticator
from allauth.mfa.recovery_codes.internal.auth import RecoveryCodes
from allauth.mfa.totp.internal.auth import TOTP, format_hotp_value, hotp_value, yield_hotp_counters_from_time
from click.testing import CliRunner
from django.test import Client

from make.accounts import PASSWORD, Letters, account, age, signed_in
from muniment import config
from muniment.accounts.adapters import sentence_case
from muniment.accounts.models import Account
from muniment.cli import main
from muniment.registry.demo_accounts import demo_sign_ins
from muniment.registry.exchange.importer import import_registry
from muniment.setting_values import SignUp
from muniment.web.templatetags import pages
from services.issuer import Issuer, provider
from services.product import DEMO

NEW = "newcomer@harbour.example"
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"  # the test runner puts another in its place


@pytest.fixture
def letters():
    return Letters()


def test_signing_up_needs_the_code_that_was_mailed(letters):
    client = Client()
    answer = client.post("/accounts/signup/", {"email": NEW, "password1": PASSWORD, "password2": PASSWORD})
    assert answer["Location"] == "/accounts/confirm-email/"
    assert client.get("/accounts/email/").status_code == 302
    wrong = client.post("/accounts/confirm-email/", {"code": "WRONGCODE"})
    assert b"Incorrect code" in wrong.content
    right = client.post("/accounts/confirm-email/", {"code": letters.code(NEW)})
    assert right["Location"] == "/manage"
    assert client.get("/accounts/email/").status_code == 200
    made = Account.objects.get(email=NEW)
    assert made.role == "owner"
    assert made.password.startswith("argon2$argon2id$")


def test_an_address_that_has_an_account_is_not_betrayed(letters):
    account(NEW)
    answer = Client().post("/accounts/signup/", {"email": NEW, "password1": PASSWORD, "password2": PASSWORD})
    assert answer["Location"] == "/accounts/confirm-email/"
    assert "already" in letters.to(NEW)[-1][1]


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"email": "missing", "password1": PASSWORD, "password2": PASSWORD}, "valid email"),
        ({"email": NEW, "password1": "short", "password2": "short"}, "at least 10"),
        ({"email": NEW, "password1": PASSWORD, "password2": "other"}, "same password"),
    ],
)
def test_an_error_is_shown_beside_its_field_and_the_input_is_kept(fields, said):
    html = Client().post("/accounts/signup/", fields).content.decode()
    fault = html.partition('class="fault"')[2].partition("</ul>")[0]
    assert said in fault
    assert f'value="{fields["email"]}"' in html
    assert 'aria-invalid="true"' in html


def test_signing_in_returns_to_the_requested_page():
    account(NEW, password=PASSWORD)
    answer = Client().post("/accounts/login/?next=/manage/profile", {"login": NEW.upper(), "password": PASSWORD})
    assert answer["Location"] == "/manage/profile"


def test_signing_in_never_leads_to_another_site():
    account(NEW, password=PASSWORD)
    answer = Client().post("/accounts/login/?next=https://elsewhere.example/", {"login": NEW, "password": PASSWORD})
    assert answer["Location"] == "/manage"


def test_repeated_wrong_passwords_block_sign_in_for_a_while():
    account(NEW, password=PASSWORD)
    client = Client()
    for _ in range(5):
        client.post("/accounts/login/", {"login": NEW, "password": "wrong"})
    refused = client.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    assert refused.status_code == 200
    assert b"Too many failed login attempts" in refused.content


def test_signing_in_by_a_mailed_code(letters):
    account(NEW)
    client = Client()
    client.post("/accounts/login/code/", {"email": NEW})
    answer = client.post("/accounts/login/code/confirm/", {"code": letters.code(NEW)})
    assert answer["Location"] == "/manage"


def test_resetting_the_password_by_a_mailed_code(letters):
    account(NEW, password=PASSWORD)
    client = Client()
    client.post("/accounts/password/reset/", {"email": NEW})
    step = client.post("/accounts/password/reset/confirm/", {"code": letters.code(NEW)})
    done = client.post(step["Location"], {"password1": PASSWORD + "!", "password2": PASSWORD + "!"})
    assert done.status_code == 302
    assert Client().post("/accounts/login/", {"login": NEW, "password": PASSWORD + "!"})["Location"] == "/manage"
    assert "password" in letters.to(NEW)[-1][1].lower()


def test_an_authenticator_is_asked_for_and_its_secret_rests_encrypted():
    account(NEW, password=PASSWORD)
    client = Client()
    client.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    client.post("/accounts/reauthenticate/", {"password": PASSWORD})
    page = client.get("/accounts/2fa/totp/activate/")
    secret = page.context["form"].secret
    assert b'class="qr"' in page.content
    assert "Turn on authenticator app" in page.content.decode()
    answer = client.post("/accounts/2fa/totp/activate/", {"code": totp(secret)})
    assert answer.status_code == 302, answer.content.decode()[:2000]
    assert secret not in json.dumps(Authenticator.objects.get(type="totp").data)
    other = Client()
    assert (
        other.post("/accounts/login/", {"login": NEW, "password": PASSWORD})["Location"]
        == "/accounts/2fa/authenticate/"
    )
    assert other.get("/accounts/email/").status_code == 302
    asked = client.get("/accounts/2fa/recovery-codes/generate/").content.decode()
    assert "Your existing codes stop working." in asked
    assert "Turn off authenticator app" in client.get("/accounts/2fa/totp/deactivate/").content.decode()
    codes = client.get("/accounts/2fa/recovery-codes/").content.decode()
    recovery = codes.partition('id="recovery_codes">')[2].split()[0]
    assert other.post("/accounts/2fa/authenticate/", {"code": recovery})["Location"] == "/manage"


def test_a_factor_whose_key_is_missing_is_a_page_that_says_the_way_out(settings):
    person = account(NEW, password=PASSWORD)
    TOTP.activate(person, "JBSWY3DPEHPK3PXP")
    RecoveryCodes.activate(person)
    settings.SECRET_KEY = "another key of this instance"
    client = Client()
    client.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    answer = client.post("/accounts/2fa/authenticate/", {"code": "123456"})
    assert answer.status_code == 403
    assert "ask the operator to remove your second factors" in answer.content.decode()
    assert command("user", "remove-factors", NEW, "--yes").exit_code == 0
    assert not Authenticator.objects.filter(user=person).exists()
    again = Client().post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    assert again["Location"] == "/manage"


def totp(secret):
    counter = next(iter(yield_hotp_counters_from_time()))
    return format_hotp_value(hotp_value(secret, counter))


def test_a_new_account_adds_a_passkey_at_once_and_later_after_entering_its_password_again(letters):
    client = Client()
    client.post("/accounts/signup/", {"email": NEW, "password1": PASSWORD, "password2": PASSWORD})
    client.post("/accounts/confirm-email/", {"code": letters.code(NEW)})
    for wish in ("/accounts/2fa/webauthn/add/", "/accounts/2fa/totp/activate/"):
        assert client.get(wish).status_code == 200
    age(client)
    for wish in ("/accounts/2fa/webauthn/add/", "/accounts/2fa/totp/activate/"):
        asked = client.get(wish)
        assert asked.status_code == 302
        assert urlsplit(asked["Location"]).path == "/accounts/reauthenticate/"
    again = client.post(asked["Location"], {"password": PASSWORD})
    assert again["Location"] == wish
    assert client.get(wish).status_code == 200


@pytest.mark.parametrize(
    ("theirs", "ours"),
    [
        ("Two-Factor Authentication", "Two-factor authentication"),
        (" New Password (Again)\n", "New password (again)"),
        ("IP Address", "IP address"),
    ],
)
def test_headings_buttons_and_subjects_are_in_sentence_case(theirs, ours):
    assert sentence_case(theirs) == ours


@pytest.mark.parametrize(
    ("sign", "name"),
    [
        ("Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 Chrome/156.0.0.0 Safari/537.36", "Chrome on Linux"),
        ("Mozilla/5.0 (Windows NT 10.0) AppleWebKit/537.36 Chrome/150.0 Safari/537.36 Edg/150.0", "Edge on Windows"),
        ("Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) Version/19.0 Safari/604.1", "Safari on iPhone"),
        ("curl/8.1", "Other browser"),
    ],
)
def test_a_session_is_named_by_its_browser_and_system(sign, name):
    assert pages.browser(sign) == name


def test_sessions_are_listed_and_others_can_be_signed_out():
    account(NEW, password=PASSWORD)
    first, second = Client(HTTP_USER_AGENT="First browser"), Client(HTTP_USER_AGENT="Second browser")
    for client in (first, second):
        client.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    html = first.get("/accounts/sessions/").content.decode()
    assert "First browser" in html
    assert "Second browser" in html
    first.post("/accounts/sessions/")
    assert first.get("/accounts/email/").status_code == 200
    assert second.get("/accounts/email/").status_code == 302


ENTRANCE = [
    "/accounts/login/",
    "/accounts/signup/",
    "/accounts/signup/passkey/",
    "/accounts/login/code/",
    "/accounts/password/reset/",
]
INSIDE = [
    "/accounts/email/",
    "/accounts/password/change/",
    "/accounts/2fa/",
    "/accounts/2fa/webauthn/",
    "/accounts/sessions/",
    "/accounts/logout/",
    "/accounts/3rdparty/",
]


@pytest.mark.parametrize("path", [*ENTRANCE, *INSIDE])
def test_every_account_page_is_valid_html_in_our_frame(path):
    client = signed_in(account(password=PASSWORD)) if path in INSIDE else Client()
    answer = client.get(path)
    assert answer.status_code == 200
    html = answer.content.decode()
    parser = html5lib.HTMLParser(namespaceHTMLElements=False)
    tree = parser.parse(html)
    assert list(parser.errors) == [], html
    assert 'class="brand"' in html
    for field in tree.iter("input"):
        if field.get("type") not in {"hidden", "search"}:
            assert f'for="{field.get("id")}"' in html, field.attrib
    assert "style=" not in html


@pytest.mark.parametrize("path", [p for p in INSIDE if p != "/accounts/logout/"])
def test_a_visitor_is_sent_to_sign_in_and_comes_back(path):
    assert Client().get(path)["Location"] == f"/accounts/login/?next={path}"


def test_a_form_from_elsewhere_is_refused_with_a_page_that_says_why():
    client = Client(enforce_csrf_checks=True)
    answer = client.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    assert answer.status_code == 403
    assert b"The form expired or was not sent from this site." in answer.content


def test_closed_registration_says_so(monkeypatch):
    using(monkeypatch, signup=SignUp(is_open=False))
    html = Client().get("/accounts/signup/").content.decode()
    assert "password1" not in html
    assert "closed" in html.lower()
    door = Client().get("/accounts/login/").content.decode()
    assert "/accounts/signup/" not in door
    assert "No account yet? Ask the operator of this registry for one." in door


def using(monkeypatch, **settings):
    now = config.current()
    kept = {setting.name: getattr(now, setting.name) for setting in config.SETTINGS}
    monkeypatch.setattr(config, "_current", config.Config({}, **{**kept, **settings}))


def test_the_host_header_reaches_no_mail_and_no_metadata(monkeypatch, letters):
    using(monkeypatch, base_url="https://registry.example")
    account(NEW, password=PASSWORD)
    client = Client(HTTP_HOST="evil.example")
    client.post("/accounts/login/code/", {"email": NEW})
    client.post("/accounts/password/reset/", {"email": NEW})
    client.post("/accounts/password/reset/", {"email": "unknown@harbour.example"})
    client.post("/accounts/signup/", {"email": NEW, "password1": PASSWORD, "password2": PASSWORD})
    told = str(letters.to(NEW) + letters.to("unknown@harbour.example"))
    assert "https://registry.example/accounts/signup/" in told
    assert "https://registry.example/accounts/password/reset/" in told
    assert "evil" not in told
    for path in ("/.well-known/oauth-authorization-server", "/.well-known/oauth-protected-resource/api/manage/mcp"):
        assert b"evil" not in client.get(path).content


def test_the_command_makes_accounts_lists_them_and_gives_roles():
    made = command("user", "create", "Ada@Harbour.example", "--password-stdin", stdin=PASSWORD + "\n")
    assert made.exit_code == 0, made.exception
    assert made.output == "ada@harbour.example is now owner.\n"
    assert command("user", "role", "ada@harbour.example", "reviewer").exit_code == 0
    assert command("user", "list").output == "ada@harbour.example\treviewer\tactive\n"
    weak = command("user", "create", "b@harbour.example", "--password-stdin", stdin="short\n")
    assert (weak.exit_code, "at least 10 characters" in weak.stderr) == (1, True)
    twice = command("user", "create", "ada@harbour.example", "--no-password")
    assert (twice.exit_code, "already has an account" in twice.stderr) == (1, True)
    assert command("user", "role", "unknown@harbour.example", "reviewer").exit_code == 1
    assert (
        Client().post("/accounts/login/", {"login": "ada@harbour.example", "password": PASSWORD})["Location"]
        == "/review"
    )


def command(*words, stdin=""):
    return CliRunner().invoke(main, words, input=stdin)


def test_own_gives_a_listing_to_an_account_and_the_demo_has_its_people():
    import_registry(DEMO)
    signs = {sign.role: sign for sign in demo_sign_ins()}
    for sign in signs.values():
        answer = Client().post("/accounts/login/", {"login": sign.email, "password": sign.password})
        assert answer["Location"] == ("/manage" if sign is signs["owner"] else "/review")
    owner = Account.objects.get(email=signs["owner"].email)
    assert set(owner.companies.values_list("state", flat=True)) == {"published", "draft", "submitted"}
    desk = signed_in(Account.objects.get(email=signs["reviewer"].email)).get("/review").content.decode()
    for waits in ("New listing", "Change to name", "Suggested edit"):
        assert waits in desk
    assert {sign.email for sign in demo_sign_ins()} == {sign.email for sign in signs.values()}
    assert Account.objects.count() == 2
    given = command("own", signs["reviewer"].email, "tarnwick-tidal")
    assert given.output == f"{signs['reviewer'].email} now owns tarnwick-tidal.\n"
    assert command("own", "unknown@harbour.example", "tarnwick-tidal").exit_code == 1
    assert command("own", signs["reviewer"].email, "no-such-listing").exit_code == 1


@pytest.fixture
def issuer(settings):
    with Issuer({"sub": "7", "email": NEW, "email_verified": True, "name": "Ada Reef"}) as made:
        settings.SOCIALACCOUNT_PROVIDERS = provider(made)
        yield made


def come_back(client, issuer):
    assert "Continue with Harbour login" in client.get("/accounts/login/").content.decode()
    left = client.post("/accounts/oidc/sso/login/?process=login")
    back = urlsplit(issuer.agree(left["Location"]))
    assert back.path == "/accounts/oidc/sso/login/callback/"
    return client.get(f"{back.path}?{back.query}")


@pytest.mark.requirement("people.sign-in")
def test_an_identity_provider_of_the_operators_signs_people_up_and_in(issuer):
    client = Client()
    assert come_back(client, issuer)["Location"] == "/manage"
    assert issuer.asked["authorize"]["code_challenge_method"] == "S256"
    assert issuer.asked["token"]["code_verifier"]
    assert client.get("/manage").status_code == 200
    assert come_back(Client(), issuer)["Location"] == "/manage"
    assert Account.objects.get().email == NEW


def test_an_identity_provider_cannot_take_over_an_account_by_naming_its_address(issuer):
    standing = account(NEW, password=PASSWORD)
    client = Client()
    come_back(client, issuer)
    assert client.get("/manage").status_code == 302
    assert not standing.socialaccount_set.exists()


def test_the_rules_of_passwords_are_one_line():
    html = Client().get("/accounts/signup/").content.decode()
    assert "At least 10 characters, not a common password, and not like your email address." in html
    assert "personal information" not in html


def test_codes_are_not_offered_where_no_device_could_be_lost():
    client = signed_in(account(NEW))
    html = client.get("/accounts/2fa/recovery-codes/generate/").content.decode()
    assert "Set up a security key or an authenticator app first." in html
    assert "Create codes" not in html


def test_a_new_key_is_named_by_the_device_that_adds_it():
    client = signed_in(account(NEW))
    agent = "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36"
    html = client.get("/accounts/2fa/webauthn/add/", HTTP_USER_AGENT=agent).content.decode()
    assert 'value="Chrome on Linux"' in html
    assert "asks for a fingerprint, your face or a PIN" in html


def test_the_own_session_is_the_first_of_the_list():
    account(NEW, password=PASSWORD)
    browsers = [Client() for _ in range(3)]
    for each in browsers:
        each.post("/accounts/login/", {"login": NEW, "password": PASSWORD})
    html = browsers[1].get("/accounts/sessions/").content.decode()
    assert "This browser" in html.partition("<tbody>")[2].partition("</tr>")[0]
    assert html.count("This browser") == 1


@pytest.mark.parametrize(("amount", "shown"), [(90, "+90"), (-1_010, "−1,010"), (0, "+0")])
def test_amounts_have_their_sign(amount, shown):
    assert pages.signed(amount) == shown


@pytest.mark.parametrize(("count", "shown"), [(561, "561\xa0bytes"), (500 * 2**20, "500\xa0MB"), (1_500, "1.5\xa0KB")])
def test_sizes_have_no_decimal_that_says_nothing(count, shown):
    assert pages.size(count) == shown
