"""Accounts made and changed without a browser: by an operator alone."""

import pytest

from make.registry import owner, reviewer
from muniment.accounts import operations
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound

pytestmark = pytest.mark.django_db


def test_a_created_account_has_a_verified_address_and_signs_in_with_its_password():
    made = operations.create_account(COMMAND, " Ada@Harbour.example ", "four harbours, one tide", role="reviewer")
    assert (made.email, made.role) == ("ada@harbour.example", "reviewer")
    assert made.check_password("four harbours, one tide")
    assert made.emailaddress_set.get().verified
    assert not operations.create_account(COMMAND, "bo@harbour.example").has_usable_password()
    assert [each.email for each in operations.list_accounts(COMMAND)] == ["ada@harbour.example", "bo@harbour.example"]


@pytest.mark.parametrize(
    "given",
    [
        {"email": "harbour"},
        {"email": ""},
        {"email": "a@harbour.example", "role": "admin"},
        {"email": "a@harbour.example", "password": "password"},
        {"email": "a@harbour.example", "password": "short"},
    ],
    ids=["no address", "empty address", "unknown role", "common password", "short password"],
)
def test_an_account_needs_an_address_a_known_role_and_a_strong_password(given):
    with pytest.raises(BadRequest):
        operations.create_account(COMMAND, **given)
    assert not Account.objects.exists()


def test_an_address_has_one_account():
    first = operations.create_account(COMMAND, "a@harbour.example")
    with pytest.raises(Conflict):
        operations.create_account(COMMAND, "A@harbour.example", role="operator")
    assert Account.objects.get() == first
    assert Account.objects.get().role == "owner"


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer"])
def test_only_an_operator_creates_lists_and_changes_accounts(who):
    actor = {"visitor": lambda: VISITOR, "owner": lambda: owner("me@harbour.example"), "reviewer": reviewer}[who]()
    before = list(Account.objects.values())
    for attempt in (
        lambda: operations.create_account(actor, "new@harbour.example", role="operator"),
        lambda: operations.set_role(actor, "me@harbour.example", "operator"),
        lambda: operations.list_accounts(actor),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert list(Account.objects.values()) == before


def test_an_account_takes_another_known_role():
    operations.create_account(COMMAND, "a@harbour.example")
    with pytest.raises(BadRequest):
        operations.set_role(COMMAND, "a@harbour.example", "admin")
    with pytest.raises(NotFound):
        operations.set_role(COMMAND, "b@harbour.example", "reviewer")
    assert Account.objects.get().role == "owner"
    operations.set_role(COMMAND, " A@harbour.example", "reviewer")
    assert Account.objects.get().role == "reviewer"


def test_an_actor_without_an_account_has_none():
    me = owner()
    assert operations.account_of(me).pk == me.account_id
    Account.objects.all().delete()
    for actor in (COMMAND, VISITOR, me):
        with pytest.raises(Forbidden):
            operations.account_of(actor)
