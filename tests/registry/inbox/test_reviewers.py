"""Saved replies, and the digests that reviewers are mailed."""

from datetime import timedelta

import pytest

from make.accounts import Letters
from make.registry import agent_of, draft, owner, published, reviewer
from muniment.accounts.models import Account
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.company.changes import BadFields
from muniment.registry.inbox import reviewers
from muniment.registry.models import Company, Petition, ReviewerSettings, SavedReply
from muniment.registry.review import claims, workflow

pytestmark = pytest.mark.django_db


def test_every_reviewer_sees_changes_and_deletes_a_reply():
    first, second = reviewer(), reviewer()
    made = reviewers.save_reply(first, " Website ", " Please add a website. ")
    assert [(each.title, each.text) for each in reviewers.list_replies(second)] == [
        ("Website", "Please add a website.")
    ]
    reviewers.save_reply(second, "Website", "Please add your website.", number=made.pk)
    found = reviewers.get_reply(first, made.pk)
    assert (found.text, found.account_id) == ("Please add your website.", second.account_id)
    reviewers.delete_reply(first, made.pk)
    assert not SavedReply.objects.exists()


@pytest.mark.parametrize(
    ("title", "text", "field"),
    [
        ("", "Text.", "title"),
        ("x" * 81, "Text.", "title"),
        ("Website", " ", "text"),
        ("Website", "x" * 5_001, "text"),
        ("Website", "a\x00b", "text"),
        ("Taken", "Text.", "title"),
    ],
)
def test_a_reply_needs_a_title_of_its_own_and_a_text(title, text, field):
    judge = reviewer()
    reviewers.save_reply(judge, "Taken", "Text.")
    with pytest.raises(BadFields) as refused:
        reviewers.save_reply(judge, title, text)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert SavedReply.objects.count() == 1


def test_the_number_of_replies_is_bounded(monkeypatch):
    monkeypatch.setattr(reviewers, "MAX_REPLIES", 1)
    judge = reviewer()
    made = reviewers.save_reply(judge, "First", "Text.")
    with pytest.raises(Conflict):
        reviewers.save_reply(judge, "Second", "Text.")
    reviewers.save_reply(judge, "Renamed", "Text.", number=made.pk)


def test_a_note_begins_with_the_reply():
    judge = reviewer()
    made = reviewers.save_reply(judge, "Website", "Please add a website.")
    assert reviewers.with_reply(judge, "", made.pk) == "Please add a website."
    assert reviewers.with_reply(judge, " And a type. ", made.pk) == "Please add a website.\n\nAnd a type."
    assert reviewers.with_reply(judge, "Own words.", None) == "Own words."
    with pytest.raises(NotFound):
        reviewers.with_reply(judge, "", made.pk + 1)


def test_settings_are_on_until_the_reviewer_changes_them():
    judge, other = reviewer(), reviewer()
    assert (reviewers.get_settings(judge).digest, reviewers.get_settings(judge).shortcuts) == (True, True)
    reviewers.change_settings(judge, digest=False, shortcuts=False)
    reviewers.change_settings(judge, digest=False, shortcuts=True)
    assert (reviewers.get_settings(judge).digest, reviewers.get_settings(judge).shortcuts) == (False, True)
    assert reviewers.get_settings(other).digest is True
    assert ReviewerSettings.objects.count() == 1
    with pytest.raises(Forbidden):
        reviewers.get_settings(COMMAND)


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_have_no_replies_and_no_settings(who):
    made = reviewers.save_reply(reviewer(), "Website", "Please add a website.")
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    for attempt in (
        lambda: reviewers.list_replies(actor),
        lambda: reviewers.get_reply(actor, made.pk),
        lambda: reviewers.save_reply(actor, "Other", "Text."),
        lambda: reviewers.save_reply(actor, "Other", "Text.", number=made.pk),
        lambda: reviewers.delete_reply(actor, made.pk),
        lambda: reviewers.with_reply(actor, "", made.pk),
        lambda: reviewers.get_settings(actor),
        lambda: reviewers.change_settings(actor, digest=False, shortcuts=False),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert SavedReply.objects.get().title == "Website"


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
        workflow.submit_company(me, draft(me, name=name).slug)
    Company.objects.filter(name__startswith="Kelp").update(submitted_at=now() - timedelta(days=3, hours=1))
    Account.objects.exclude(role="owner").update(is_active=False)


def email(actor):
    return Account.objects.get(pk=actor.account_id).email


def test_the_digest_counts_by_kind_and_names_the_oldest(waiting):
    judge, letters = reviewer(), Letters()
    assert reviewers.send_digests() == 1
    [(subject, text)] = letters.to(email(judge))
    assert "3 items wait for review" in subject
    assert "New listings: 2\nListing claims: 1\n" in text.replace("\r", "")
    assert "waiting for 3 days" in text
    assert "kelp.example" not in text  # no link that a submitter chose
    assert "/review/settings" in text


def test_the_next_digest_comes_after_the_pause(waiting, set_config):
    judge, letters = reviewer(), Letters()
    assert [reviewers.send_digests(), reviewers.send_digests()] == [1, 0]
    ReviewerSettings.objects.update(digest_at=now() - timedelta(hours=5))
    assert reviewers.send_digests() == 0
    set_config(review_digest_hours=4)
    assert reviewers.send_digests() == 1
    assert len(letters.to(email(judge))) == 2


def test_nothing_is_sent_when_nothing_waits_or_all_is_new(waiting):
    reviewer()
    Company.objects.filter(name__startswith="Kelp").update(submitted_at=now())
    Petition.objects.update(asked_at=now())
    assert reviewers.send_digests() == 0
    Petition.objects.update(decision="refused")
    Company.objects.update(state="published")
    assert reviewers.send_digests() == 0
    assert not ReviewerSettings.objects.exists()


def test_nothing_is_sent_where_the_operator_turned_it_off(waiting, set_config):
    reviewer()
    set_config(review_digest_hours=0)
    assert reviewers.send_digests() == 0


def test_only_active_reviewers_who_want_it_are_mailed(waiting):
    wants, refuses, gone, leaves = reviewer(), reviewer(), reviewer(), reviewer()
    reviewers.change_settings(refuses, digest=False, shortcuts=True)
    Account.objects.filter(pk=gone.account_id).update(is_active=False)
    Account.objects.filter(pk=leaves.account_id).update(delete_at=now())
    stranger, letters = owner(), Letters()
    assert reviewers.send_digests() == 1
    assert len(letters.to(email(wants))) == 1
    for each in (refuses, gone, leaves, stranger):
        assert letters.to(email(each)) == []
