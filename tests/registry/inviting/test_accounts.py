"""Invitations of operators: what a link gives, to whom, and when it ends."""

import re
from dataclasses import replace
from datetime import timedelta

import pytest

from make.accounts import PASSWORD, Letters, account
from muniment import config, setting_values
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.operations import set_active, set_role
from muniment.accounts.personal_data import delete_account
from muniment.config import Config
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import create_company
from muniment.registry.inviting import accounts
from muniment.registry.models import Ownership
from muniment.registry.models.review import AccountInvitation

pytestmark = pytest.mark.django_db
BASE, EMAIL = "https://registry.example", "ada@guild.example"


@pytest.fixture
def operator():
    return account("operator@harbour.example", "operator").actor("web")


def invited(actor=COMMAND, email=EMAIL, **options) -> str:
    """Invite a person, and return the token of the mailed link."""
    letters = Letters()
    accounts.invite_person(actor, email, base_url=BASE, **options)
    return link_in(letters, email)


def link_in(letters: Letters, email: str = EMAIL) -> str:
    found = re.search(rf"{BASE}/invitations/(\S+)", letters.to(email)[-1][1])
    assert found
    return found[1]


def test_an_invited_person_gets_an_account_with_the_role_and_the_listing(operator, monkeypatch):
    slug = create_company(operator, CompanyChange(name="Clock House")).slug
    token = invited(operator, role="reviewer", own=slug)
    closed = Config({}, data=config.current().data, signup=setting_values.sign_up("off"))
    monkeypatch.setattr(config, "current", lambda: closed)
    made = accounts.accept_as_new(token, PASSWORD)
    assert (made.email, made.role, made.check_password(PASSWORD)) == (EMAIL, "reviewer", True)
    assert made.emailaddress_set.get().verified
    assert Ownership.objects.filter(account=made, company__slug=slug).exists()
    events = set(SecurityEvent.objects.filter(is_audited=True).values_list("event", flat=True))
    assert {"person_invited", "invitation_accepted"} <= events
    with pytest.raises(NotFound, match="used or revoked"):
        accounts.accept_as_new(token, PASSWORD)
    assert token not in repr(list(AccountInvitation.objects.values()))


def test_without_a_password_the_account_signs_in_by_code():
    assert not accounts.accept_as_new(invited(), "").has_usable_password()


def test_a_weak_password_leaves_the_invitation_open():
    token = invited()
    with pytest.raises(BadRequest):
        accounts.accept_as_new(token, "password")
    assert accounts.find_invitation(token).state == "open"


def test_links_end_when_they_expire_are_revoked_or_sent_again(operator):
    token = invited(operator)
    number = AccountInvitation.objects.get().pk
    letters = Letters()
    accounts.resend_invitation(operator, number, base_url=BASE)
    with pytest.raises(NotFound):
        accounts.find_invitation(token)
    latest = link_in(letters)
    assert accounts.find_invitation(latest).email == EMAIL
    AccountInvitation.objects.update(expires_at=now() - timedelta(seconds=1))
    with pytest.raises(NotFound):
        accounts.accept_as_new(latest, PASSWORD)
    letters = Letters()
    accounts.resend_invitation(operator, number, base_url=BASE)  # an expired one is renewed
    accounts.revoke_invitation(operator, number)
    with pytest.raises(NotFound):
        accounts.accept_as_new(link_in(letters), PASSWORD)
    for act in (
        lambda: accounts.resend_invitation(operator, number, base_url=BASE),
        lambda: accounts.revoke_invitation(operator, number),
    ):
        with pytest.raises(Conflict, match="accepted or revoked"):
            act()
    with pytest.raises(NotFound, match="not found"):
        accounts.revoke_invitation(operator, 10**9)
    assert not Account.objects.filter(email=EMAIL).exists()


def test_a_second_invitation_of_an_address_replaces_the_first(operator):
    former, latest = invited(operator), invited(operator, role="reviewer")
    with pytest.raises(NotFound):
        accounts.find_invitation(former)
    assert accounts.find_invitation(latest).role == "reviewer"
    assert {each.state for each in accounts.list_invitations(operator).items} == {"open", "revoked"}


@pytest.mark.parametrize("ends", ["role", "state"])
def test_an_invitation_ends_with_its_sender_s_role_or_account(operator, ends):
    token = invited(operator, role="operator")
    address = "operator@harbour.example"
    if ends == "role":
        set_role(COMMAND, address, "reviewer")
    else:
        set_active(COMMAND, address, active=False)
    with pytest.raises(NotFound):
        accounts.accept_as_new(token, PASSWORD)


def test_only_operators_invite_and_only_with_a_confirmed_identity(operator):
    for who in (account("owner@harbour.example"), account("reviewer@harbour.example", "reviewer")):
        with pytest.raises(Forbidden):
            invited(who.actor("web"))
        with pytest.raises(Forbidden):
            accounts.list_invitations(who.actor("web"))
        with pytest.raises(Forbidden):
            accounts.revoke_invitation(who.actor("web"), 1)
        with pytest.raises(Forbidden):
            accounts.resend_invitation(who.actor("web"), 1, base_url=BASE)
    with pytest.raises(Forbidden, match="Confirm"):
        invited(replace(operator, confirmed=False))


def test_what_cannot_be_invited_is_named(operator, monkeypatch):
    account(EMAIL)
    for problem, options in (
        (Conflict, {}),
        (BadRequest, {"email": "not an address"}),
        (BadRequest, {"email": "b@guild.example", "role": "king"}),
        (NotFound, {"email": "b@guild.example", "own": "no-such-listing"}),
    ):
        with pytest.raises(problem):
            invited(operator, **options)
    monkeypatch.setattr(accounts, "MAX_OPEN", 0)
    with pytest.raises(Conflict, match="invitations are open"):
        invited(operator, "b@guild.example")


def test_an_account_that_was_created_meanwhile_accepts_by_signing_in():
    token = invited(role="reviewer")
    meanwhile = account(EMAIL)
    with pytest.raises(Conflict, match="already has an account") as refused:
        accounts.accept_as_new(token, PASSWORD)
    assert "Sign in" in refused.value.hint
    assert accounts.accept_as(meanwhile.actor("web"), token).role == "reviewer"


def test_a_stranger_s_account_cannot_accept_also_after_it_took_another_address():
    token = invited(role="operator")
    stranger = account("stranger@guild.example")
    with pytest.raises(Forbidden, match="is for"):
        accounts.accept_as(stranger.actor("web"), token)
    stranger.emailaddress_set.create(email=EMAIL, verified=False)  # claimed, and not proven
    with pytest.raises(Forbidden, match="is for"):
        accounts.accept_as(stranger.actor("web"), token)
    moved = account(EMAIL)
    moved.emailaddress_set.update(email="moved@guild.example")  # the address is no longer its own
    with pytest.raises(Forbidden, match="is for"):
        accounts.accept_as(moved.actor("web"), token)
    assert set(Account.objects.values_list("role", flat=True)) == {"owner"}


def test_accepting_never_lowers_a_role():
    token = invited()
    assert accounts.accept_as(account(EMAIL, "operator").actor("web"), token).role == "operator"


def test_where_people_sign_in_only_at_providers_no_person_is_invited(operator, monkeypatch):
    token = invited(operator)
    here = config.current()
    only = Config({}, data=here.data, sign_in="providers", oidc_providers=config.current().oidc_providers)
    monkeypatch.setattr(config, "current", lambda: only)
    with pytest.raises(Conflict, match="identity providers"):
        accounts.invite_person(operator, "b@guild.example", base_url=BASE)
    with pytest.raises(NotFound):
        accounts.find_invitation(token)


def test_ended_invitations_are_forgotten_and_go_with_the_account(operator):
    made = accounts.accept_as_new(invited(operator), PASSWORD)
    invited(operator, "b@guild.example")
    AccountInvitation.objects.filter(email="b@guild.example").update(expires_at=now() - timedelta(days=91))
    assert accounts.forget_ended() == 1
    delete_account(COMMAND, made.email)
    assert not AccountInvitation.objects.exists()
