"""The demo: a fictional registry, loaded once, with accounts whose passwords are fresh at each start."""

import pytest

from muniment.accounts import tokens
from muniment.accounts.models import Account
from muniment.accounts.operations import create_account
from muniment.jobs.models import Job
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.kernel.tokens import token_digest
from muniment.mail import delivery, outgoing
from muniment.registry.company import listings
from muniment.registry.demo_accounts import OWNED, RealRegistry, load_demo
from muniment.registry.models import Company, PendingChange, Petition

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(autouse=True)
def _mail_stays_silent(monkeypatch):
    monkeypatch.setattr(delivery, "echo", None)


def live(text):
    return [row for row in tokens.PersonalToken.objects.filter(digest=token_digest(text)) if row.is_live(now())]


def test_the_demo_is_loaded_once_with_fresh_sign_ins_at_each_start():
    summary, (owner, reviewer) = load_demo(renews=True)
    assert summary.bad == 0
    assert (owner.role, reviewer.role, reviewer.token) == ("owner", "reviewer", "")
    accounts = {each.email: each for each in Account.objects.all()}
    assert {email: account.role for email, account in accounts.items()} == {
        owner.email: "owner",
        reviewer.email: "reviewer",
    }
    assert accounts[owner.email].check_password(owner.password)
    assert live(owner.token)
    listings, mails = Company.objects.count(), delivery.echo
    again, (renewed, _) = load_demo(renews=True)
    assert (again, Company.objects.count(), Account.objects.count()) == (None, listings, 2)
    assert not accounts[owner.email].check_password(renewed.password)
    assert Account.objects.get(email=owner.email).check_password(renewed.password)
    assert (len(live(renewed.token)), live(owner.token)) == (1, [])
    assert mails is not None, "codes are shown in the terminal"
    assert not Job.objects.filter(kind=outgoing.KIND).exists(), "the set-up itself is no news"


def test_a_process_that_does_not_renew_the_sign_ins_makes_no_account():
    assert load_demo(renews=False)[1] == []
    assert Company.objects.exists()
    assert not Account.objects.exists()


def test_the_demo_owner_has_listings_in_every_state_and_the_reviewer_a_queue():
    _, (owner, _) = load_demo(renews=True)
    actor = Account.objects.get(email=owner.email).actor("web")
    states = [each.state for each in listings.list_companies(actor).items]
    assert sorted(states) == ["draft", *["published"] * OWNED, "submitted"]
    assert list(PendingChange.objects.get().changes) == ["name"]
    suggestion = Petition.objects.get()
    assert (suggestion.kind, list(suggestion.changes)) == ("suggestion", ["description"])
    assert not suggestion.company.ownerships.filter(account_id=actor.account_id).exists()


def test_the_demo_is_not_loaded_into_a_registry_with_an_account_of_its_own():
    create_account(COMMAND, "ada@harbour.example", role="operator")
    with pytest.raises(RealRegistry, match="Start it without --demo"):
        load_demo(renews=True)
    assert (Account.objects.count(), Company.objects.count()) == (1, 0)


def test_the_demo_is_not_loaded_beside_listings_of_others():
    load_demo(renews=False)
    Company.objects.filter(pk=Company.objects.first().pk).update(slug="harbour-trust")
    with pytest.raises(RealRegistry, match="has a registry or accounts of its own"):
        load_demo(renews=True)
    assert not Account.objects.exists()


def test_the_demo_is_opened_again_where_it_was_used_together_with_listings_of_others():
    load_demo(renews=True)
    Company.objects.filter(pk=Company.objects.first().pk).update(slug="harbour-trust")
    assert len(load_demo(renews=True)[1]) == 2
