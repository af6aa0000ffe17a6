"""The security log: events are added with their origin, and nothing changes them."""

from pathlib import Path

import pytest

import muniment
from make.accounts import account
from muniment.accounts.models import SecurityEvent
from muniment.accounts.security import origin
from muniment.accounts.security.events import MEANINGS, Event
from muniment.accounts.security.log import record
from muniment.accounts.security.models import AppendOnlyError
from muniment.kernel.actor import COMMAND


@pytest.fixture
def owner(db):
    return account("owner@harbour.example")


def test_every_event_has_words():
    assert set(MEANINGS) == set(Event)


def test_every_event_is_recorded_somewhere():
    source = Path(muniment.__file__).parent
    code = "".join(file.read_text() for file in source.rglob("*.py") if file.name not in {"events.py", "log.py"})
    assert [event.name for event in Event if f"Event.{event.name}" not in code] == []


def test_an_event_says_when_from_where_and_by_what(owner):
    with origin.at("192.0.2.7", "Mozilla/5.0\x1b[31m " + "x" * 500, "request-1"):
        event = record(Event.TOKEN_CREATED, account=owner, detail={"name": "laptop"})
    event.refresh_from_db()
    assert (event.account_id, event.actor_id, event.via, event.address) == (owner.pk, owner.pk, "web", "192.0.2.7")
    assert event.agent.startswith("Mozilla/5.0 [31m")
    assert len(event.agent) <= 200
    assert event.request_id == "request-1"
    assert event.detail == {"name": "laptop"}
    assert not event.is_audited


def test_what_a_command_or_an_operator_does_to_an_account_is_in_both_logs(owner):
    by_command = record(Event.TOKEN_CREATED, account=owner, actor=COMMAND)
    operator = account("operator@harbour.example", role="operator")
    by_operator = record(Event.OWNERSHIP_ENDED, account=owner, actor=operator.actor("web"))
    of_their_own = record(Event.TOKEN_CREATED, account=operator, actor=operator.actor("web"))
    assert (by_command.is_audited, by_operator.is_audited, of_their_own.is_audited) == (True, True, False)
    assert (by_command.credential, by_command.actor_id) == ("command line", None)
    assert by_operator.actor_id == operator.pk


def test_events_are_append_only(owner):
    event = record(Event.SIGNED_IN, account=owner)
    event.event = Event.SIGN_IN_FAILED
    rows = SecurityEvent.objects.filter(pk=event.pk)
    changes = [
        event.save,
        event.delete,
        lambda: rows.update(event="x"),
        rows.delete,
        lambda: rows.bulk_update([event], ["event"]),
        lambda: SecurityEvent.objects.bulk_create([event], update_conflicts=True, update_fields=["event"]),
        lambda: SecurityEvent.objects.update_or_create(pk=event.pk, defaults={"event": "x"}),
    ]
    for change in changes:
        with pytest.raises(AppendOnlyError):
            change()
    assert SecurityEvent.objects.get(pk=event.pk).event == Event.SIGNED_IN


def test_a_page_leaves_its_client_as_the_origin_and_nothing_behind():
    seen = []
    request = type("Request", (), {"META": {"REMOTE_ADDR": "192.0.2.9", "HTTP_USER_AGENT": "Browser"}})()
    origin.OriginMiddleware(lambda _: seen.append(origin.current()))(request)
    assert seen == [origin.Origin("192.0.2.9", "Browser", "")]
    assert origin.current() == origin.Origin()
