"""What reviewers see of the account behind a request: counts and public names, and nothing private."""

import pytest

from make.accounts import account
from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import VISITOR
from muniment.kernel.problems import Forbidden
from muniment.registry.inbox.claimants import LISTINGS_SHOWN, claimant_of
from muniment.registry.review import claims, decisions

pytestmark = pytest.mark.django_db


@pytest.fixture
def target():
    return published(owner(), name="Harbour Fund").slug


def test_a_new_account_has_no_history(target):
    claim = claims.claim_company(owner("ida@kelp.example"), target, "I chair it.")
    found = claimant_of(reviewer(), claim)
    assert (found.domain, found.is_verified, found.owned, found.approved, found.declined) == (
        "kelp.example",
        False,
        0,
        0,
        0,
    )
    assert found.since.day == 1


def test_a_verified_address_counts(target):
    claimant = account("ida@kelp.example").actor("web")
    claim = claims.claim_company(claimant, target, "I chair it.")
    assert claimant_of(reviewer(), claim).is_verified is True
    Account.objects.filter(pk=claim.account_id).update(email="changed@kelp.example")
    claim.account.refresh_from_db()
    assert claimant_of(reviewer(), claim).is_verified is False


def test_earlier_decisions_are_counted_and_only_public_listings_are_named(target):
    me, judge = owner(), reviewer()
    for number in range(LISTINGS_SHOWN + 1):
        published(me, name=f"Kelp {number}")
    draft(me, name="Secret plan")
    rejected = draft(me, name="Refused plan").slug
    decisions.submit_company(me, rejected)
    decisions.reject_company(judge, rejected, "No.")
    first = claims.claim_company(me, target, "I chair it.")
    claims.decide_request(judge, first.pk, approve=False, note="No.")
    found = claimant_of(judge, claims.claim_company(me, target, "Here is proof."))
    assert (found.owned, found.approved, found.declined) == (6, 6, 2)
    assert [name for name, _ in found.listings] == [f"Kelp {number}" for number in range(LISTINGS_SHOWN)]


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_learn_nothing_of_an_account(target, who):
    claim = claims.claim_company(owner(), target, "I chair it.")
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    with pytest.raises(Forbidden):
        claimant_of(actor, claim)
