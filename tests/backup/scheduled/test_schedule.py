"""The schedule of backups: what an operator chooses on the page, and which old ones are removed by its rule."""

from datetime import UTC, datetime, timedelta

import pytest

from make.accounts import account, signed_in
from muniment.backup.scheduled import job
from muniment.backup.scheduled.job import backup_status, described
from muniment.backup.scheduled.schedule import KEEP, kept, next_at, pace_s, schedule
from muniment.config import Config, ConfigError
from muniment.jobs import handlers
from muniment.registry.settings.versions import latest_version
from muniment.registry_toml import applied
from muniment.registry_toml.document import RegistrySettings
from muniment.registry_toml.reading import check
from muniment.setting_values import retention

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


NOW = datetime(2026, 11, 22, 12, 0, tzinfo=UTC)
RULE = KEEP


def every(minutes, *, days):
    return [NOW - timedelta(minutes=minutes * n) for n in range(days * 24 * 60 // minutes)]


def test_of_sixty_days_with_a_backup_every_fifteen_minutes_the_rule_keeps_recent_hourly_daily_and_weekly_ones():
    stay = sorted(kept(every(15, days=60), RULE), reverse=True)
    assert stay[:4] == [NOW - timedelta(minutes=15 * n) for n in range(4)]
    hours = [at for at in stay if NOW - at < timedelta(hours=24)]
    assert {at.replace(minute=0) for at in hours} == {NOW - timedelta(hours=n) for n in range(24)}
    assert {at.date() for at in stay} >= {(NOW - timedelta(days=n)).date() for n in range(7)}
    assert len({at.isocalendar()[:2] for at in stay}) == 4
    assert len(stay) == 34


def test_the_rule_applied_after_each_backup_keeps_what_it_keeps_of_all():
    made, stay = sorted(every(60, days=20)), set()
    for at in made:
        stay = kept({*stay, at}, RULE)
        assert at in stay
    assert stay == kept(made, RULE)


@pytest.mark.parametrize("pause", [timedelta(days=1), timedelta(days=400)])
def test_nothing_is_removed_because_time_passes(pause):
    old = kept(every(15, days=3), RULE)
    assert kept(old, RULE) == old
    assert max(old) in kept({*old, NOW + pause}, RULE)


def test_a_clock_that_jumped_ahead_costs_no_newest_backup():
    ahead = NOW + timedelta(days=365)
    assert kept([ahead], {"recent": 1}) == {ahead}
    assert kept([NOW, ahead], {"recent": 2}) == {NOW, ahead}


def test_months_can_be_kept_and_nothing_that_exists_gives_nothing():
    made = [datetime(2026, month, day, tzinfo=UTC) for month in range(1, 12) for day in (1, 15)]
    assert kept(made, {"recent": 1, "monthly": 3}) == {datetime(2026, month, 15, tzinfo=UTC) for month in (9, 10, 11)}
    assert kept([], RULE) == set()


@pytest.mark.parametrize("wrong", ["daily=7", "recent=0", "recent=4,hourly", "recent=4,yearly=2", "many", ""])
def test_a_rule_without_a_recent_one_or_with_an_unknown_period_is_refused(wrong):
    with pytest.raises(ValueError, match="must be pairs such as recent=4,daily=7"):
        retention(wrong)


def test_the_place_is_a_folder_a_store_or_off(tmp_path):
    url = "postgresql://registry@db.example/registry"
    assert Config({}, data=tmp_path).backup_place == str(tmp_path / "backups")
    assert Config({}, data=tmp_path, database_url=url).backup_place == ""
    assert Config({"MUNIMENT_BACKUPS": "off"}).backup_place == ""
    assert Config({"MUNIMENT_BACKUPS": str(tmp_path)}, database_url=url).backup_place == str(tmp_path)
    store = "s3://KEY:SECRET@bucket/prefix"
    assert Config({"MUNIMENT_BACKUPS": store}).backup_place == store
    with pytest.raises(ConfigError, match="MUNIMENT_BACKUPS must be a URL such as s3://"):
        Config({"MUNIMENT_BACKUPS": "s3:bucket"})
