"""The audit log for operators, by actor, event and date; and the settings with their origin."""

import re
from datetime import timedelta

import pytest

from make.accounts import account, signed_in
from make.declared import declared
from muniment.accounts.models import SecurityEvent
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.config import SETTINGS, Config
from muniment.kernel.actor import COMMAND
from muniment.kernel.ids import now
from muniment.registry.models import Company
from muniment.shown_settings import shown_settings
from muniment.web.wording.process_settings import GROUPS

pytestmark = pytest.mark.django_db


@pytest.fixture
def browser():
    operator = account("operator@harbour.example", "operator")
    record(Event.UNLISTED, actor=operator.actor("web"), subject="companies/quillmere")
    SecurityEvent.objects.create(
        at=now() - timedelta(days=40),
        event=Event.COMMAND_RUN,
        via="command",
        credential="command line",
        detail={"command": "republish"},
        is_audited=True,
    )
    return signed_in(operator)


@pytest.mark.parametrize(
    ("query", "has_listing", "has_command"),
    [
        ("", True, True),
        ("by=operator@harbour", True, False),
        ("by=command+line", False, True),
        ("event=unlisted", True, False),
        ("since={week}", True, False),
        ("until={week}", False, True),
        ("since={today}&until={today}", True, False),
        ("event=unlisted&by=command", False, False),
    ],
)
def test_the_log_is_filtered_and_downloaded_by_actor_event_and_date(browser, query, has_listing, has_command):
    days = {"week": f"{now() - timedelta(days=7):%Y-%m-%d}", "today": f"{now():%Y-%m-%d}"}
    for path in ("/operate/audit", "/operate/audit/log.csv", "/operate/audit/log.jsonl"):
        answer = browser.get(f"{path}?{query.format(**days)}")
        text = b"".join(answer).decode()
        assert ("companies/quillmere" in text, "republish" in text) == (has_listing, has_command), path


def test_what_an_entry_is_about_is_named_with_a_link_and_settings_by_their_labels(browser):
    Company.objects.create(slug="quillmere", name="Quillmere <Foundation>", state="published")
    record(Event.PERSON_CORRECTED, actor=COMMAND, subject="people/gone")
    record(Event.REGISTRY_CHANGED, actor=COMMAND, detail={"version": 1, "changed": ["registry.contact", "legal.other"]})
    html = browser.get("/operate/audit").content.decode()
    assert '<a href="/companies/quillmere">Quillmere &lt;Foundation&gt;</a>' in html
    assert "<bdi>/people/gone</bdi>" in html
    assert "Changed: <bdi>Contact, legal.other</bdi>" in html
    assert "Quillmere" in browser.get("/review/audit").content.decode()


def test_values_that_are_no_date_or_event_are_refused(browser):
    for query in ("since=yesterday", "until=2026-02-31", "event=none", "page=0"):
        assert browser.get(f"/operate/audit?{query}").status_code == 400, query


def test_settings_have_their_origin_and_no_secret(browser, monkeypatch, tmp_path):
    (tmp_path / "settings.toml").write_text('mail_from = "tide@tables.example"\n')
    environment = {
        "MUNIMENT_DATA": str(tmp_path),
        "MUNIMENT_SECRET_KEY": "ebb-and-flow",
        "MUNIMENT_MAIL_URL": "smtp://tide:undertow@mail.example:587",
        "MUNIMENT_MAIL_FORM": "x",
    }
    monkeypatch.setattr("muniment.config.current", lambda: Config(environment))
    page = browser.get("/operate/settings").content.decode()
    for shown in ("tide@tables.example", str(tmp_path / "settings.toml"), "smtp://tide:***@mail.example:587"):
        assert shown in page, shown
    assert "MUNIMENT_MAIL_FORM is not a setting" in page
    for secret in ("ebb-and-flow", "undertow"):
        assert secret not in page


def test_a_change_of_the_registrys_own_settings_is_an_entry_that_names_the_fields(browser):
    record(
        Event.REGISTRY_CHANGED,
        actor=COMMAND,
        detail={"version": 1, "changed": ["legal.imprint", "brand.accent", "fields.x"]},
    )
    for path in ("/operate/audit", "/review/audit"):
        answer = browser.get(path)
        assert answer.status_code == 200
        assert "Imprint, Accent color, fields.x" in answer.content.decode()


def test_settings_are_shown_as_they_are_written(browser):
    assert [each.value for each in shown_settings(Config({})) if each.variable == "MUNIMENT_SIGNUP"] == ["on"]


def test_settings_say_what_is_in_effect_where_no_value_is_set(browser, monkeypatch, tmp_path):
    environment = {"MUNIMENT_DATA": str(tmp_path), "MUNIMENT_RATE_LIMIT": "off", "MUNIMENT_MODEL_NAME": "tide"}
    monkeypatch.setattr("muniment.config.current", lambda: Config(environment))
    page = browser.get("/operate/settings").content.decode()
    for gone in (">Empty<", ">Not set<"):
        assert gone not in page
    for effect in (
        str(tmp_path / "backups"),
        f"None: {tmp_path}/settings.toml does not exist",
        "No mail server: messages are written to",
        "A key in the data folder",
        f"{tmp_path}/muniment.sqlite3",
    ):
        assert effect in page, effect
    changed = page.partition('id="changed"')[2].partition('id="all"')[0]
    assert re.findall(r"MUNIMENT_[A-Z_]+(?=</span>)", changed) == [
        "MUNIMENT_DATA", "MUNIMENT_RATE_LIMIT", "MUNIMENT_MODEL_NAME",
    ]  # fmt: skip
    assert changed.count(">Off<") == 1


def test_settings_say_which_of_two_places_wins(browser, monkeypatch, tmp_path):
    monkeypatch.setattr("muniment.config.current", lambda: Config({"MUNIMENT_DATA": str(tmp_path)}))
    page = browser.get("/operate/settings").content.decode()
    assert "Off in the registry settings too." in page
    with declared(registry={"fetch_logos": True}):
        page = browser.get("/operate/settings").content.decode()
    assert "Set in the registry settings: on" in page
    fixed = {"MUNIMENT_DATA": str(tmp_path), "MUNIMENT_FETCH_LOGOS": "on"}
    monkeypatch.setattr("muniment.config.current", lambda: Config(fixed))
    assert "Overrides the registry settings." in browser.get("/operate/settings").content.decode()
    choice = browser.get("/operate/registry").content.decode()
    assert "The server's administrator has set this, which overrides the choice here." in choice


def test_every_setting_is_in_one_group():
    names = [each.name for each in SETTINGS]
    assert sorted(name for _, group in GROUPS for name in group) == sorted(names)
