"""Whether a token or an app asks before its tool calls act: chosen when it is made, changed by its account alone."""

from importlib import import_module

import pytest
from click.testing import CliRunner
from django.apps import apps

from make.accounts import account, age, signed_in
from make.apps import RESOURCE, App
from muniment.accounts import tokens
from muniment.accounts.models import Asks, PersonalToken
from muniment.cli import main
from muniment.kernel.actor import SCOPES
from muniment.kernel.problems import Forbidden, NotFound
from muniment.oauth import grants, token_authentication
from muniment.oauth.models import Grant

pytestmark = pytest.mark.django_db
HOME = "/manage/tokens"


@pytest.fixture
def owner():
    return account("owner@harbour.example")


@pytest.fixture
def stranger():
    return account("stranger@harbour.example")


def asks(text):
    return token_authentication.resolve(text, resource=RESOURCE, client="suite").actor.asks


def test_a_new_token_asks_unless_its_form_says_otherwise(owner):
    browser = signed_in(owner)
    form = {"name": "laptop", "lifetime": "90", "access": "all"}
    assert "Act without asking" in browser.get(HOME).content.decode()
    asking = browser.post(HOME, form).context["new_token"]
    acting = browser.post(HOME, {**form, "acts_without_asking": "on"}).context["new_token"]
    assert (asks(asking.text), asks(acting.text)) == ("all", "none")
    page = browser.get(HOME).content.decode()
    assert page.count('<span class="pill wait">Acts without asking</span>') == 1
    assert page.count('<span class="quiet small">Asks before it spends') == 1
    assert (
        page.count('aria-label="Let laptop act without asking"') == page.count('aria-label="Let laptop ask first"') == 1
    )


def test_the_account_changes_its_tokens_and_apps_and_confirms_who_it_is_to_ask_less(owner):
    browser = signed_in(owner)
    token = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    access = App().connect(browser)["access_token"]
    grant = Grant.objects.get()
    assert (asks(token.text), asks(access)) == ("all", "all")
    places = (f"{HOME}/{token.row.pk}/asks", f"{HOME}/apps/{grant.pk}/asks")
    for place in places:
        assert browser.post(place, {"asks": "none"})["Location"] == HOME
    assert (asks(token.text), asks(access)) == ("none", "none")
    age(browser)
    for place in places:
        assert browser.post(place, {"asks": "all"})["Location"] == HOME
        assert "reauthenticate" in browser.post(place, {"asks": "none"})["Location"]
    assert (asks(token.text), asks(access)) == ("all", "all")
    assert len(browser.get(HOME).context["tokens"]) == 1
    assert "Confirmations of a token or app changed" in browser.get("/manage/security").content.decode()


def test_a_stranger_and_a_token_change_nothing(owner, stranger):
    token = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    App().connect(signed_in(owner))
    grant = Grant.objects.get()
    for change, key in ((tokens.change_asking, token.row.pk), (grants.change_asking, grant.pk)):
        with pytest.raises(NotFound):
            change(stranger.actor("web"), key, Asks.NONE)
        with pytest.raises(Forbidden):
            change(owner.actor("token"), key, Asks.NONE)
    browser = signed_in(stranger)
    assert browser.post(f"{HOME}/{token.row.pk}/asks", {"asks": "none"}).status_code == 404
    assert browser.post(f"{HOME}/apps/{grant.pk}/asks", {"asks": "none"}).status_code == 404
    assert asks(token.text) == "all"


def test_an_app_acts_without_asking_only_by_a_consent_that_says_so(owner):
    browser = signed_in(owner)
    app = App()
    assert "Act without asking" in browser.get(app.address()).content.decode()
    assert "Act without asking" not in browser.get(app.address(scope="companies:read")).content.decode()
    answer = browser.post(app.address(), {"answer": "allow", "access": "all", "asks": "none"})
    code = answer["Location"].partition("code=")[2].partition("&")[0]
    pair = app.redeem(code).json()
    assert asks(pair["access_token"]) == "none"
    renewed = app.refresh(pair["refresh_token"]).json()
    assert asks(renewed["access_token"]) == "none"


def test_a_token_of_the_command_line_asks_unless_told_otherwise(owner):
    def made(*more):
        arguments = ["user", "token", owner.email, "--name", "script", *more]
        return CliRunner().invoke(main, arguments, catch_exceptions=False).output.strip()

    assert (asks(made()), asks(made("--act-without-asking"))) == ("all", "none")


def test_credentials_from_before_ask_before_applications_only(owner):
    token = tokens.create_token(owner.actor("web"), "laptop", permitted=SCOPES)
    access = App().connect(signed_in(owner))["access_token"]
    for feature in ("accounts.migrations.0008_asks", "oauth.migrations.0003_asks"):
        import_module(f"muniment.{feature}").keep_as_before(apps, None)
    assert (asks(token.text), asks(access)) == ("applications", "applications")
    kept = tokens.regenerate_token(owner.actor("web"), token.row.pk)
    assert asks(kept.text) == "applications"
    assert "Asks before it applies to a program" in signed_in(owner).get(HOME).content.decode()
    assert PersonalToken.objects.get().asks == Asks.APPLICATIONS
