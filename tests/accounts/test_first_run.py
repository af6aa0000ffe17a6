"""The set-up link: who gets it, what it is good for, and when it ends."""

from datetime import timedelta

import pytest

from make.accounts import account
from muniment import config
from muniment.accounts import first_run
from muniment.accounts.models import Account, SecurityEvent, SetupLink
from muniment.accounts.operations import create_account
from muniment.cli.serving import tell_setup_link
from muniment.config import Config
from muniment.kernel.actor import COMMAND, SYSTEM
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound, TooMany
from muniment.registry.demo_accounts import OWNER

pytestmark = pytest.mark.django_db
EMAIL, PASSWORD = "office@guild.example", "four harbours, one tide"


def token() -> str:
    return first_run.make_link(COMMAND).removeprefix("/setup/")


def test_only_digests_of_the_link_and_of_its_browser_are_stored():
    text = token()
    secret = first_run.open_link(text)
    row = SetupLink.objects.get()
    assert text not in repr(vars(row))
    assert secret not in repr(vars(row))
    assert SecurityEvent.objects.get(event="setup_link_created").is_audited


def test_the_browser_that_opens_the_link_first_creates_the_operator():
    text = token()
    first = first_run.open_link(text)
    assert first_run.open_link(text, first) == first  # the same browser may open it again
    for browser in ("", "another"):
        with pytest.raises(NotFound, match="used in another browser"):
            first_run.open_link(text, browser)
    made = first_run.create_operator(first, EMAIL.upper(), PASSWORD)
    assert (made.email, made.role) == (EMAIL, "operator")
    assert made.check_password(PASSWORD)
    assert made.emailaddress_set.get().verified
    with pytest.raises(NotFound):
        first_run.create_operator(first, "second@guild.example", PASSWORD)
    assert Account.objects.count() == 1
    assert first_run.is_unfinished()


def test_a_stranger_without_the_link_creates_nothing():
    token()
    for browser in ("", "x" * 43, "x" * 400):
        assert not first_run.may_set_up(browser)
        with pytest.raises(NotFound):
            first_run.create_operator(browser, EMAIL, PASSWORD)
    with pytest.raises(Forbidden):
        first_run.make_link(account().actor("web"))
    with pytest.raises(NotFound):
        first_run.open_link("x" * 400)


def test_a_link_ends_after_a_day_and_with_the_next_one():
    former, latest = token(), token()
    with pytest.raises(NotFound):
        first_run.open_link(former)
    secret = first_run.open_link(latest)
    SetupLink.objects.update(expires_at=now() - timedelta(seconds=1))
    assert not first_run.may_set_up(secret)
    with pytest.raises(NotFound):
        first_run.open_link(latest)
    with pytest.raises(NotFound):
        first_run.create_operator(secret, EMAIL, PASSWORD)


def test_once_there_is_an_operator_no_link_is_made_or_works():
    text = token()
    secret = first_run.open_link(text)
    account(EMAIL, "operator")
    assert first_run.offer_link() == ""
    with pytest.raises(Conflict, match="already has an operator"):
        first_run.make_link(COMMAND)
    with pytest.raises(NotFound):
        first_run.open_link(text, secret)
    with pytest.raises(NotFound):
        first_run.create_operator(secret, "second@guild.example", PASSWORD)


def test_a_weak_password_or_a_taken_address_leaves_the_link_as_it_was():
    account(EMAIL)
    secret = first_run.open_link(token())
    with pytest.raises(BadRequest):
        first_run.create_operator(secret, "second@guild.example", "password")
    with pytest.raises(Conflict, match="already has an account"):
        first_run.create_operator(secret, EMAIL, PASSWORD)
    assert first_run.may_set_up(secret)


def test_attempts_with_one_link_are_limited():
    secret = first_run.open_link(token())
    for _ in range(first_run.MAX_TRIES):
        with pytest.raises(BadRequest):
            first_run.create_operator(secret, "not an address", PASSWORD)
    with pytest.raises(TooMany):
        first_run.create_operator(secret, EMAIL, PASSWORD)


def test_nodes_that_start_together_print_one_link(monkeypatch):
    settings = config.current()
    monkeypatch.setattr(config, "current", lambda: Config({}, data=settings.data, database_url="postgresql://x/y"))
    assert first_run.offer_link().startswith("/setup/")
    assert first_run.offer_link().startswith("/setup/")  # a new start of the same node
    SetupLink.objects.update(node="another:place")
    assert first_run.offer_link() == ""
    SetupLink.objects.update(made_at=now() - timedelta(minutes=11))
    assert first_run.offer_link().startswith("/setup/")


def test_where_people_sign_in_only_at_providers_there_is_no_link(monkeypatch):
    only = Config({}, sign_in="providers", oidc_providers=config.current().oidc_providers)
    monkeypatch.setattr("muniment.config.current", lambda: only)
    assert first_run.offer_link() == ""
    with pytest.raises(Conflict, match="identity providers"):
        first_run.make_link(COMMAND)


def test_a_step_that_was_left_out_can_be_taken_later():
    first_run.mark_step("brand", is_skipped=True)
    first_run.mark_step("brand")
    first_run.mark_step("brand", is_skipped=True)
    assert first_run.steps_taken() == {"brand": False}


def test_a_stranger_with_the_address_of_the_demo_does_not_keep_the_link_from_the_machine(capsys):
    stranger = Account.objects.create_user(OWNER, PASSWORD)  # as sign-up does, before the address is verified
    tell_setup_link()
    assert "/setup/" in capsys.readouterr().err
    stranger.delete()
    create_account(SYSTEM, OWNER, PASSWORD)
    tell_setup_link()
    assert capsys.readouterr().err == ""


def test_another_link_has_the_address_at_which_the_instance_is_served(capsys, monkeypatch):
    assert first_run.serving_address() == ""
    monkeypatch.setattr("muniment.cli.serving._base", lambda: "http://127.0.0.1:9123")
    tell_setup_link()
    assert "http://127.0.0.1:9123/setup/" in capsys.readouterr().err
    assert first_run.serving_address() == "http://127.0.0.1:9123"


def test_of_two_forms_of_one_browser_that_are_sent_at_once_one_creates_the_operator(monkeypatch):
    browser = first_run.open_link(token())
    monkeypatch.setattr(first_run, "may_set_up", lambda _: True)  # both were asked before one of them wrote
    first_run.create_operator(browser, EMAIL, PASSWORD)
    with pytest.raises(NotFound, match="used in another browser"):
        first_run.create_operator(browser, "second@guild.example", PASSWORD)
    assert Account.objects.count() == 1
