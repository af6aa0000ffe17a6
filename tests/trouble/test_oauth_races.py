"""Six at once with one code or one refresh token: no failure, and never two pairs that open something."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import close_old_connections, connections, transaction

from make.accounts import account
from make.apps import REDIRECT, proof
from make.registry import published
from muniment.kernel.actor import SCOPES, Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict
from muniment.oauth import clients, grants, token_authentication
from muniment.oauth.errors import Refusal
from muniment.oauth.models import AuthorizationCode, Grant
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange

pytestmark = pytest.mark.django_db(transaction=True)
BOUND = "http://testserver/api/manage/mcp"
AT_ONCE = 6


class Six:
    """Six threads that begin together, each with a connection of its own."""

    def __init__(self):
        self.pool = ThreadPoolExecutor(AT_ONCE)

    def __call__(self, call):
        """Return what each of them got: a value, or the refusal or failure."""
        gate = threading.Barrier(AT_ONCE)

        def one(number):
            close_old_connections()
            gate.wait(60)
            try:
                return call(number)
            except Exception as error:  # noqa: BLE001 - what it was is looked at by the test
                return error

        return list(self.pool.map(one, range(AT_ONCE)))

    def close(self):
        gate = threading.Barrier(AT_ONCE)

        def end(_):
            gate.wait(60)
            connections.close_all()

        list(self.pool.map(end, range(AT_ONCE)))
        self.pool.shutdown()


@pytest.fixture
def six():
    made = Six()
    yield made
    made.close()


class Party:
    """An owner and a connected app."""

    def __init__(self):
        self.owner = account("owner@harbour.example")
        self.client, _ = clients.register_client({"redirect_uris": [REDIRECT]})
        self.proof = proof()

    def code(self):
        return grants.issue_code(
            self.owner.actor("web"),
            self.client,
            redirect_uri=REDIRECT,
            challenge=self.proof.challenge,
            permitted=SCOPES,
            resource=BOUND,
        )

    def redeem(self, code):
        return grants.redeem(
            code, client_id=self.client.identifier, redirect_uri="", verifier=self.proof.verifier, resource=None
        ).pair

    def refresh(self, token):
        return grants.refresh(token, client_id=self.client.identifier, resource=None).pair


def opens(access):
    return token_authentication.resolve(access, resource=BOUND, client="").actor is not None


def redeem_at_once(party, six):
    """One wins, five are refused, and what the winner got is revoked by those who came second."""
    code = party.code()
    found = six(lambda _: party.redeem(code))
    pairs = [each for each in found if not isinstance(each, Exception)]
    refusals = [each for each in found if isinstance(each, Refusal)]
    assert len(pairs) == 1, found
    assert len(refusals) == AT_ONCE - 1, found
    assert {each.error for each in refusals} == {"invalid_grant"}
    assert not opens(pairs[0].access)


def refresh_at_once(party, six):
    """All six get the same pair, and it is the only current one."""
    first = party.redeem(party.code())
    found = six(lambda _: party.refresh(first.refresh))
    assert {type(each) for each in found} == {grants.TokenPair}, found
    assert len(set(found)) == 1
    assert opens(found[0].access)
    assert party.refresh(found[0].refresh) not in {found[0], first}


@pytest.mark.requirement("oauth.lifetimes")
def test_six_redemptions_of_one_code_at_once_give_one_pair_at_most(six):
    party = Party()
    for _ in range(5):
        redeem_at_once(party, six)


@pytest.mark.requirement("oauth.lifetimes")
def test_six_refreshes_of_one_token_at_once_give_the_same_pair(six):
    party = Party()
    for _ in range(5):
        refresh_at_once(party, six)


@pytest.mark.proof
def test_two_hundred_rounds_of_six_redemptions_and_of_six_refreshes(six):
    party = Party()
    for _ in range(200):
        redeem_at_once(party, six)
        refresh_at_once(party, six)
    assert Grant.objects.filter(revoked_at=None).count() == 200


def test_a_refresh_beside_a_revocation_leaves_nothing_open(six):
    party = Party()
    for _ in range(5):
        first = party.redeem(party.code())
        found = six(lambda n, pair=first: grants.revoke(pair.refresh) if n == 3 else party.refresh(pair.refresh))
        for each in found:
            assert each is None or isinstance(each, (grants.TokenPair, Refusal)), each
            assert not isinstance(each, grants.TokenPair) or not opens(each.access)


def test_reuse_by_six_at_once_after_the_window_ends_the_connection_once(six):
    party = Party()
    first = party.redeem(party.code())
    second = party.refresh(first.refresh)
    Grant.objects.update(rotated_at=now() - timedelta(seconds=121))
    found = six(lambda _: party.refresh(first.refresh))
    assert {type(each) for each in found} == {Refusal}
    assert not opens(second.access)


def test_of_six_updates_of_one_version_one_is_applied(six):
    owner = account("writer@harbour.example").actor("web")
    company = published(owner)
    by_token = Actor(owner.account_id, "owner", "token", "laptop")
    version = listings.get_company(owner, company.slug).version
    found = six(
        lambda n: listings.update_company(
            by_token, company.slug, CompanyChange(description=f"By {n}"), expected_version=version
        )
    )
    applied = [each for each in found if not isinstance(each, Exception)]
    assert len(applied) == 1, found
    assert {type(each) for each in found if isinstance(each, Exception)} == {Conflict}
    assert listings.get_company(owner, company.slug).version == version + 1


def test_a_failed_transaction_leaves_no_half_connection():
    party = Party()
    code = party.code()

    @transaction.atomic
    def redeem_and_fail():
        party.redeem(code)
        raise RuntimeError

    with pytest.raises(RuntimeError):
        redeem_and_fail()
    assert not Grant.objects.exists()
    assert AuthorizationCode.objects.get().grant is None
    assert party.redeem(code)
