"""Invitations on the pages: sending, the page of the link, and who may open it."""

import re

import pytest
from django.test import Client

from make.accounts import PASSWORD, Letters, account, age, signed_in
from muniment.accounts.models import Account
from muniment.registry.models.review import AccountInvitation

pytestmark = pytest.mark.django_db
HOME, EMAIL = "/operate/invitations", "ada@guild.example"


@pytest.fixture
def operator() -> Client:
    return signed_in(account("operator@harbour.example", "operator"))


def invited(operator: Client, role: str = "reviewer") -> str:
    letters = Letters()
    assert operator.post(HOME, {"email": EMAIL, "role": role}).status_code == 302
    found = re.search(r"/invitations/\S+", letters.to(EMAIL)[-1][1])
    assert found
    return found[0]


def test_the_link_creates_the_account_and_signs_in(operator):
    link = invited(operator)
    page = operator.get(HOME).content
    assert EMAIL.encode() in page
    visitor = Client()
    assert EMAIL.encode() in visitor.get(link).content
    assert visitor.post(link, {"password": "password"}).status_code == 422
    answer = visitor.post(link, {"password": PASSWORD})
    assert (answer.status_code, answer["Location"]) == (302, "/review")
    assert visitor.get("/review").status_code == 200
    assert Client().get(link).status_code == 404


def test_an_old_session_confirms_its_identity_before_it_invites(operator):
    age(operator)
    assert "/accounts/reauthenticate/" in operator.post(HOME, {"email": EMAIL, "role": "operator"})["Location"]
    assert not AccountInvitation.objects.exists()


def test_faults_are_shown_at_their_fields(operator):
    for values, says in (
        ({"email": "nothing", "role": "owner"}, b"valid email address"),
        ({"email": EMAIL, "role": "owner", "own": "no-such"}, b"no listing with the slug no-such"),
        ({"email": "operator@harbour.example", "role": "owner"}, b"already has an account"),
    ):
        answer = operator.post(HOME, values)
        assert (answer.status_code, says in answer.content) == (422, True), values


def test_it_is_sent_again_and_revoked(operator):
    former = invited(operator)
    number, letters = AccountInvitation.objects.get().pk, Letters()
    operator.post(f"{HOME}/{number}/resend")
    found = re.search(r"/invitations/\S+", letters.to(EMAIL)[-1][1])
    assert found
    assert (Client().get(former).status_code, Client().get(found[0]).status_code) == (404, 200)
    operator.post(f"{HOME}/{number}/revoke")
    assert Client().get(found[0]).status_code == 404
    operator.post(f"{HOME}/{number}/revoke")
    assert b"was accepted or revoked" in operator.get(HOME).content


def test_another_account_cannot_take_it_and_the_invited_one_can(operator):
    link = invited(operator)
    stranger = signed_in(account("stranger@guild.example"))
    assert b"which is another address" in stranger.get(link).content
    assert b"This invitation is for" in stranger.post(link).content
    meanwhile = account(EMAIL)
    assert b"This address has an account" in Client().get(link).content
    assert b"This address has an account" in Client().post(link, {"password": PASSWORD}).content
    mine = signed_in(meanwhile)
    assert b"Accept invitation" in mine.get(link).content
    assert mine.post(link)["Location"] == "/review"
    assert Account.objects.get(email=EMAIL).role == "reviewer"
    assert Account.objects.get(email="stranger@guild.example").role == "owner"


def test_a_link_answers_no_other_methods(operator):
    assert Client().put(invited(operator)).status_code == 405
