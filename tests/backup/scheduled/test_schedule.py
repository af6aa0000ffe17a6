"""The schedule of backups: what an operator chooses on the page."""

from datetime import UTC, datetime

import pytest

from make.accounts import account, signed_in
from muniment.backup.scheduled import job
from muniment.backup.scheduled.schedule import KEEP, next_at, pace_s, schedule
from muniment.backup.scheduled.status import backup_status, described
from muniment.config import Config
from muniment.jobs import handlers
from muniment.registry.settings.versions import latest_version
from muniment.registry_toml import applied
from muniment.registry_toml.document import RegistrySettings
from muniment.registry_toml.reading import check

pytestmark = pytest.mark.django_db
PAGE = "/operate/backups"


@pytest.fixture
def chosen(monkeypatch, tmp_path):
    """Return a function that declares the schedule."""

    def declare(backups=None) -> Config:
        found = check({"backups": backups or {}}) if backups else RegistrySettings()
        config = Config({}, data=tmp_path)
        monkeypatch.setattr(applied, "current", lambda: found)
        monkeypatch.setattr("muniment.config.current", lambda: config)
        return config

    return declare


def test_the_operator_chooses_interval_and_retention(chosen):
    chosen({"interval_min": 60, "keep": "recent=2,monthly=6"})
    found = schedule()
    assert (found.interval_s, found.keep) == (3600, {"recent": 2, "monthly": 6})
    chosen()
    assert schedule() == (900, KEEP, False)


def test_while_paused_no_job_is_due_and_the_status_says_so(chosen, monkeypatch):
    config = chosen({"paused": True})
    assert pace_s() == 0
    monkeypatch.setattr(handlers, "_periodic", {"backup": pace_s, "other": 60})
    assert handlers.periodic() == {"other": 60}
    says, needs_attention = described(backup_status(), config)
    assert ("paused on /operate/backups" in says, needs_attention) == (True, True)

    class Due:
        id, payload = "", {}

    assert job.run_backup(Due()) == {}  # enqueued before the pause


def test_the_next_backup_begins_at_a_whole_multiple_of_the_interval():
    at = datetime(2026, 11, 22, 14, 7, tzinfo=UTC)
    assert next_at(at, 900) == datetime(2026, 11, 22, 14, 15, tzinfo=UTC)
    assert next_at(datetime(2026, 11, 22, 14, 15, tzinfo=UTC), 900) == datetime(2026, 11, 22, 14, 30, tzinfo=UTC)


def test_the_page_changes_pauses_and_resumes(chosen):
    chosen()
    browser = signed_in(account("operator@harbour.example", "operator"))
    browser.post(PAGE, {"do": "save", "interval_min": "60", "recent": "3"})
    assert latest_version().settings.backups == check({"backups": {"interval_min": 60, "keep": "recent=3"}}).backups
    browser.post(PAGE, {"do": "pause"})
    assert latest_version().settings.backups.paused
    browser.post(PAGE, {"do": "resume"})
    assert not latest_version().settings.backups.paused
    number = latest_version().number
    for values in ({"interval_min": "1"}, {"hourly": "3"}):
        assert browser.post(PAGE, {"do": "save", **values}).status_code == 422
    assert latest_version().number == number
    browser.post(PAGE, {"do": "save"})  # what is left empty has its default
    assert latest_version().settings.backups == check({}).backups
