"""Old backups are removed by a rule that counts periods with a backup, and the newest always stays."""

from datetime import UTC, datetime, timedelta

import pytest

from muniment.backup.scheduled.retention import kept
from muniment.backup.scheduled.schedule import KEEP
from muniment.config import Config, ConfigError
from muniment.setting_values import retention

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
