"""Each reader sees their own part of the logs, and downloads hold all of it."""

import csv
import io
import json
from datetime import timedelta

import pytest
from django.test import Client

from make.accounts import account, signed_in
from muniment.accounts.models import SecurityEvent
from muniment.accounts.security import log, origin
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import COMMAND, VISITOR, Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Forbidden

pytestmark = pytest.mark.django_db


@pytest.fixture
def people():
    return {
        "owner": account("owner@harbour.example"),
        "stranger": account("stranger@harbour.example"),
        "reviewer": account("reviewer@harbour.example", role="reviewer"),
        "operator": account("operator@harbour.example", role="operator"),
    }


def body(response):
    return b"".join(response.streaming_content).decode()


@pytest.mark.parametrize("path", ["/manage/security", "/manage/security/log.csv", "/manage/security/log.jsonl"])
def test_a_stranger_sees_nothing_of_anothers_log(people, path):
    record(Event.TOKEN_CREATED, account=people["owner"], detail={"name": "harbour laptop"})
    own = signed_in(people["owner"]).get(path)
    assert "harbour laptop" in (body(own) if own.streaming else own.content.decode())
    for name in ("stranger", "reviewer", "operator"):
        answer = signed_in(people[name]).get(path)
        assert answer.status_code == 200
        assert "harbour laptop" not in (body(answer) if answer.streaming else answer.content.decode())
    assert Client().get(path)["Location"].startswith("/accounts/login/")


@pytest.mark.parametrize("path", ["/review/audit", "/review/audit/log.csv", "/review/audit/log.jsonl"])
def test_operators_read_the_audit_log_and_reviewers_their_own_entries(people, path):
    record(Event.UNLISTED, actor=people["operator"].actor("web"), subject="companies/quillmere")
    record(Event.UNLISTED, actor=people["reviewer"].actor("web"), subject="companies/tidal-works")
    seen = {}
    for name in ("operator", "reviewer"):
        answer = signed_in(people[name]).get(path)
        assert answer.status_code == 200
        html = body(answer) if answer.streaming else answer.content.decode()
        seen[name] = ("quillmere" in html, "tidal-works" in html)
    assert seen == {"operator": (True, True), "reviewer": (False, True)}
    for name in ("owner", "stranger"):
        assert signed_in(people[name]).get(path).status_code == 404
    assert Client().get(path)["Location"].startswith("/accounts/login/")


def test_no_token_and_no_app_reads_a_log(people):
    for via in ("token", "app"):
        actor = Actor(people["operator"].pk, "operator", via)
        for read in (log.own_events, log.audit_events):
            with pytest.raises(Forbidden):
                read(actor)
    with pytest.raises(Forbidden):
        log.own_events(VISITOR)
    with pytest.raises(Forbidden):
        log.audit_events(people["owner"].actor("web"))


def test_the_account_does_not_see_where_an_operator_was(people):
    with origin.at("203.0.113.9", "Secret browser", "request-9"):
        record(Event.ROLE_CHANGED, account=people["owner"], actor=people["operator"].actor("web"), detail={"role": "x"})
    client = signed_in(people["owner"])
    shown = client.get("/manage/security").content.decode()
    files = [body(client.get(f"/manage/security/log.{form}")) for form in ("csv", "jsonl")]
    assert "Role changed" in shown
    for text in (shown, *files):
        for secret in ("203.0.113.9", "Secret browser", "request-9", people["operator"].email):
            assert secret not in text
    audit = signed_in(people["operator"]).get("/review/audit").content.decode()
    assert "203.0.113.9" in audit


def test_the_download_of_an_account_names_its_own_credentials_and_no_others(people):
    owner, operator = people["owner"], people["operator"]
    record(Event.TOKEN_REVOKED, account=owner, actor=Actor(owner.pk, "owner", "token", "my laptop"))
    record(Event.ACCOUNT_DISABLED, account=owner, actor=Actor(operator.pk, "operator", "token", "operator's console"))
    record(Event.SIGN_IN_FAILED, account=owner, by=None)
    rows = {event.event: log.own_wire(event) for event in log.events_of(owner)}
    assert rows["token_revoked"]["credential"] == "my laptop"
    assert rows["account_disabled"]["credential"] == ""
    assert rows["sign_in_failed"]["credential"] == ""
    assert not {"account", "actor"} & rows["account_disabled"].keys()
    [audited] = [event for event in log.audit_events(operator.actor("web")) if event.event == "account_disabled"]
    assert log.event_wire(audited)["credential"] == "operator's console"


def test_failed_sign_ins_in_a_row_are_one_line_of_the_page_and_all_in_the_file(people):
    with origin.at("198.51.100.7", "x"):
        for attempt in range(1, 5):
            detail = {"method": "password", "attempts": attempt}
            record(Event.SIGN_IN_FAILED, account=people["owner"], by=None, detail=detail)
    client = signed_in(people["owner"])
    page = client.get("/manage/security").content.decode()
    assert page.count("Failed sign-in") == 1
    assert "4 times" in page
    rows = [json.loads(line) for line in body(client.get("/manage/security/log.jsonl")).splitlines()]
    assert [each["event"] for each in rows].count("sign_in_failed") == 4


def test_a_download_has_every_event_in_both_forms(people):
    owner = people["owner"]
    for number in range(1_003):
        record(Event.TOKEN_CREATED, account=owner, detail={"name": f"=laptop {number}"})
    client = signed_in(owner)
    rows = [json.loads(line) for line in body(client.get("/manage/security/log.jsonl")).splitlines()]
    names = [each["detail"]["name"] for each in rows if each["event"] == "token_created"]
    assert names == [f"=laptop {number}" for number in reversed(range(1_003))]
    table = list(csv.DictReader(io.StringIO(body(client.get("/manage/security/log.csv")))))
    assert len([each for each in table if each["event"] == "token_created"]) == 1_003
    assert json.loads(table[0]["detail"]) == {"name": "=laptop 1002"}


def test_cells_of_csv_are_texts():
    values = dict.fromkeys(log.COLUMNS, "")
    shown = dict(zip(log.COLUMNS, log.csv_cells({**values, "id": 7, "credential": "=1+1"}), strict=True))
    assert (shown["credential"], shown["id"], shown["detail"]) == ("=1+1", "7", "")


def test_the_pages_of_a_log_are_numbered(people):
    for _ in range(30):
        record(Event.TOKEN_CREATED, account=people["owner"])
    client = signed_in(people["owner"])
    assert client.get("/manage/security").content.decode().count("<tr>") == 26
    assert "Page 2 of 2" in client.get("/manage/security?page=2").content.decode()
    assert "This page doesn't exist" in client.get("/manage/security?page=9").content.decode()


def test_the_audit_log_begins_at_a_moment_or_an_age(people):
    operator = people["operator"].actor("web")
    record(Event.UNLISTED, actor=operator, subject="companies/quillmere")
    tomorrow = now() + timedelta(days=1)
    assert log.audit_events(COMMAND, log.AuditFilter(since=tomorrow)).count() == 0
    assert (
        log.audit_events(COMMAND, log.AuditFilter(since=log.read_since("1h"))).count() == SecurityEvent.objects.count()
    )
    assert log.read_since("2026-11-21").isoformat() == "2026-11-21T00:00:00+00:00"
    assert log.read_since("2026-11-21T10:00:00Z").hour == 10
    for wrong in ("", "yesterday", "7w", "2026-13-01"):
        with pytest.raises(BadRequest):
            log.read_since(wrong)
    client = signed_in(people["operator"])
    page = client.get("/review/audit?since=1h").content.decode()
    assert "quillmere" in page
    assert 'href="/review/audit/log.csv?since=1h"' in page
    assert "quillmere" in body(client.get("/review/audit/log.csv?since=1h"))
    assert len(body(client.get("/review/audit/log.csv?since=2099-01-01")).splitlines()) == 1
    assert client.get("/review/audit?since=yesterday").status_code == 400
