"""Reviewers are mailed when items wait: counts and the oldest, seldom, and only those who want it."""

from datetime import timedelta

import pytest

from make.accounts import Letters
from make.registry import draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.ids import now
from muniment.registry.inbox import digest, working
from muniment.registry.models import Company, Petition, ReviewerSettings
from muniment.registry.review import claims, decisions

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _our_own_mail(settings):
    settings.EMAIL_BACKEND = "muniment.mail.outgoing.Backend"


@pytest.fixture
def waiting():
    """Two listings and a claim, the oldest since three days."""
    me = owner()
    listed = published(me, name="Harbour Fund").slug
    claims.claim_company(owner(), listed, "I chair it.")
    for name in ("Kelp Works see kelp.example", "Tide Works"):
        decisions.submit_company(me, draft(me, name=name).slug)
    Company.objects.filter(name__startswith="Kelp").update(submitted_at=now() - timedelta(days=3, hours=1))
    Account.objects.exclude(role="owner").update(is_active=False)


def email(actor):
    return Account.objects.get(pk=actor.account_id).email


def test_the_digest_counts_by_kind_and_names_the_oldest(waiting):
    judge, letters = reviewer(), Letters()
    assert digest.send_digests() == 1
    [(subject, text)] = letters.to(email(judge))
    assert "3 items wait for review" in subject
    assert "New listings: 2\nListing claims: 1\n" in text.replace("\r", "")
    assert "waiting for 3 days" in text
    assert "kelp.example" not in text  # no link that a submitter chose
    assert "/review/settings" in text


def test_the_next_digest_comes_after_the_pause(waiting, set_config):
    judge, letters = reviewer(), Letters()
    assert [digest.send_digests(), digest.send_digests()] == [1, 0]
    ReviewerSettings.objects.update(digest_at=now() - timedelta(hours=5))
    assert digest.send_digests() == 0
    set_config(review_digest_hours=4)
    assert digest.send_digests() == 1
    assert len(letters.to(email(judge))) == 2


def test_nothing_is_sent_when_nothing_waits_or_all_is_new(waiting):
    reviewer()
    Company.objects.filter(name__startswith="Kelp").update(submitted_at=now())
    Petition.objects.update(asked_at=now())
    assert digest.send_digests() == 0
    Petition.objects.update(decision="refused")
    Company.objects.update(state="published")
    assert digest.send_digests() == 0
    assert not ReviewerSettings.objects.exists()


def test_nothing_is_sent_where_the_operator_turned_it_off(waiting, set_config):
    reviewer()
    set_config(review_digest_hours=0)
    assert digest.send_digests() == 0


def test_only_active_reviewers_who_want_it_are_mailed(waiting):
    wants, refuses, gone, leaves = reviewer(), reviewer(), reviewer(), reviewer()
    working.change_settings(refuses, digest=False, shortcuts=True)
    Account.objects.filter(pk=gone.account_id).update(is_active=False)
    Account.objects.filter(pk=leaves.account_id).update(delete_at=now())
    stranger, letters = owner(), Letters()
    assert digest.send_digests() == 1
    assert len(letters.to(email(wants))) == 1
    for each in (refuses, gone, leaves, stranger):
        assert letters.to(email(each)) == []
