"""Saved replies belong to the registry's reviewers; a reviewer's own settings to the reviewer."""

import pytest

from make.registry import agent_of, owner, reviewer
from muniment.kernel.actor import COMMAND, VISITOR
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.company.changes import BadFields
from muniment.registry.inbox import replies, working
from muniment.registry.models import ReviewerSettings, SavedReply

pytestmark = pytest.mark.django_db


def test_every_reviewer_sees_changes_and_deletes_a_reply():
    first, second = reviewer(), reviewer()
    made = replies.save_reply(first, " Website ", " Please add a website. ")
    assert [(each.title, each.text) for each in replies.list_replies(second)] == [("Website", "Please add a website.")]
    replies.save_reply(second, "Website", "Please add your website.", number=made.pk)
    found = replies.get_reply(first, made.pk)
    assert (found.text, found.account_id) == ("Please add your website.", second.account_id)
    replies.delete_reply(first, made.pk)
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
    replies.save_reply(judge, "Taken", "Text.")
    with pytest.raises(BadFields) as refused:
        replies.save_reply(judge, title, text)
    assert [fault.field for fault in refused.value.faults] == [field]
    assert SavedReply.objects.count() == 1


def test_the_number_of_replies_is_bounded(monkeypatch):
    monkeypatch.setattr(replies, "MAX_REPLIES", 1)
    judge = reviewer()
    made = replies.save_reply(judge, "First", "Text.")
    with pytest.raises(Conflict):
        replies.save_reply(judge, "Second", "Text.")
    replies.save_reply(judge, "Renamed", "Text.", number=made.pk)


def test_a_note_begins_with_the_reply():
    judge = reviewer()
    made = replies.save_reply(judge, "Website", "Please add a website.")
    assert replies.with_reply(judge, "", made.pk) == "Please add a website."
    assert replies.with_reply(judge, " And a type. ", made.pk) == "Please add a website.\n\nAnd a type."
    assert replies.with_reply(judge, "Own words.", None) == "Own words."
    with pytest.raises(NotFound):
        replies.with_reply(judge, "", made.pk + 1)


def test_settings_are_on_until_the_reviewer_changes_them():
    judge, other = reviewer(), reviewer()
    assert (working.get_settings(judge).digest, working.get_settings(judge).shortcuts) == (True, True)
    working.change_settings(judge, digest=False, shortcuts=False)
    working.change_settings(judge, digest=False, shortcuts=True)
    assert (working.get_settings(judge).digest, working.get_settings(judge).shortcuts) == (False, True)
    assert working.get_settings(other).digest is True
    assert ReviewerSettings.objects.count() == 1
    with pytest.raises(Forbidden):
        working.get_settings(COMMAND)


@pytest.mark.parametrize("who", ["visitor", "owner", "reviewer's token"])
def test_strangers_have_no_replies_and_no_settings(who):
    made = replies.save_reply(reviewer(), "Website", "Please add a website.")
    actor = {"visitor": lambda: VISITOR, "owner": owner, "reviewer's token": lambda: agent_of(reviewer())}[who]()
    for attempt in (
        lambda: replies.list_replies(actor),
        lambda: replies.get_reply(actor, made.pk),
        lambda: replies.save_reply(actor, "Other", "Text."),
        lambda: replies.save_reply(actor, "Other", "Text.", number=made.pk),
        lambda: replies.delete_reply(actor, made.pk),
        lambda: replies.with_reply(actor, "", made.pk),
        lambda: working.get_settings(actor),
        lambda: working.change_settings(actor, digest=False, shortcuts=False),
    ):
        with pytest.raises(Forbidden):
            attempt()
    assert SavedReply.objects.get().title == "Website"
