"""Events end after 400 days; the audit log stays, and forgets whom it must forget."""

import json
import re
import zipfile
from datetime import timedelta
from pathlib import Path

import pytest

import muniment
from make.accounts import account
from make.registry import owner, published, reviewer
from muniment.accounts import personal_data
from muniment.accounts.models import Account, SecurityEvent
from muniment.accounts.security import log, origin
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.models import Person
from muniment.registry.people.erasing import erase_person
from muniment.registry.people.moderation import merge_people, unlist_person

pytestmark = pytest.mark.django_db


def test_events_end_after_four_hundred_days_and_the_audit_log_only_forgets_where():
    me = account("owner@harbour.example")
    with origin.at("192.0.2.7", "Browser", "request"):
        own = record(Event.SIGNED_IN, account=me)
        audited = record(Event.ROLE_CHANGED, account=me, actor=COMMAND, detail={"role": "reviewer"})
    assert log.sweep_events() == 0
    later = now() + log.KEPT_FOR + timedelta(minutes=1)
    assert log.sweep_events(at=later) == 1
    assert not SecurityEvent.objects.filter(pk=own.pk).exists()
    left = SecurityEvent.objects.get(pk=audited.pk)
    assert (left.address, left.agent, left.request_id, left.detail) == ("", "", "", {"role": "reviewer"})


def test_a_deleted_account_leaves_its_number_in_the_audit_log_and_nothing_else():
    me, other = account("owner@harbour.example"), account("other@harbour.example")
    operator = account("operator@harbour.example", role="operator")
    with origin.at("192.0.2.7", "Browser", "request"):
        record(Event.SIGNED_IN, account=me)
        record(Event.EMAIL_CHANGED, account=me, actor=COMMAND, detail={"from": "me@a.example", "to": me.email})
        record(Event.ROLE_CHANGED, account=me, actor=operator.actor("web"), detail={"was": "owner", "role": "reviewer"})
        record(Event.UNLISTED, actor=me.actor("web", "my phone"), subject="companies/quillmere")
        record(Event.OWNER_ADDED, account=other, actor=me.actor("web", "my phone"))
        record(Event.OWNER_INVITED, account=other, detail={"email": me.email})
    personal_data.delete_account(COMMAND, me.email)
    rows = list(SecurityEvent.objects.filter(is_audited=True).order_by("pk"))
    about = [each for each in rows if each.account_id == me.pk]
    assert [each.event for each in about] == ["account_created", "email_changed", "role_changed", "account_deleted"]
    assert about[1].detail == {}
    assert about[2].detail == {"was": "owner", "role": "reviewer"}
    assert about[2].address == "192.0.2.7", "it is the operator's"
    [act] = [each for each in rows if each.actor_id == me.pk]
    assert (act.subject, act.address, act.agent, act.credential) == ("companies/quillmere", "", "", "")
    assert not SecurityEvent.objects.filter(account=me, is_audited=False).exists()
    [added, invited] = SecurityEvent.objects.filter(account=other, is_audited=False).order_by("pk")
    assert (added.address, added.agent, added.credential, invited.detail) == ("", "", "", {})
    everything = str(list(SecurityEvent.objects.values_list()))
    assert "owner@harbour.example" not in everything
    assert "me@a.example" not in everything


def test_an_erased_person_is_not_named_by_the_audit_log():
    judge = reviewer()
    slug = published(owner()).slug
    for each in ("vesna-quill", "v-quill"):
        Person.objects.create(slug=each, name="Vesna Quill", listed=True)
    merge_people(judge, "v-quill", "vesna-quill")
    unlist_person(judge, "vesna-quill", "asked for it")
    erase_person(judge, "vesna-quill")
    rows = SecurityEvent.objects.filter(is_audited=True)
    assert {"people_merged", "unlisted", "person_erased"} <= set(rows.values_list("event", flat=True))
    assert "quill" not in str(list(rows.values_list("subject", "detail")))
    assert rows.filter(subject=f"companies/{slug}").exists()
    erased = rows.get(event=Event.PERSON_ERASED)
    assert re.fullmatch(r"[0-9a-f]{64}", erased.detail["slugDigest"])


def test_the_export_of_an_account_has_its_log(tmp_path):
    me, other = account("owner@harbour.example"), account("other@harbour.example")
    record(Event.TOKEN_CREATED, account=me, detail={"name": "laptop"})
    record(Event.TOKEN_CREATED, account=other, detail={"name": "not mine"})
    with (tmp_path / "archive.zip").open("wb") as file:
        personal_data.write_archive(Account.objects.get(pk=me.pk), file)
    with zipfile.ZipFile(tmp_path / "archive.zip") as archive:
        rows = json.loads(archive.read("security-log.json"))
    assert [(each["event"], each["detail"]) for each in rows] == [
        ("token_created", {"name": "laptop"}),
        ("account_created", {"role": "owner"}),
    ]


def test_only_the_log_itself_takes_the_lock_off_the_rows():
    source = Path(muniment.__file__).parent
    ways = re.compile(r"QuerySet\(SecurityEvent\)|SecurityEvent\._base_manager|accounts_securityevent")
    found = {
        file.relative_to(source).as_posix()
        for file in source.rglob("*.py")
        if "migrations" not in file.parts and ways.search(file.read_text())
    }
    assert found == {"accounts/security/log.py", "backup/rows.py"}
