"""Each alert of deploy/ fires for what it names after its time, not before, and ends with it: by promtool."""

import subprocess
from pathlib import Path

import pytest
import yaml

ALERTS = Path(__file__).parents[2] / "deploy" / "prometheus" / "alerts.yaml"
SILENT = 'muniment_outage_seconds{job="r",service="document store"}'
BACKUP = 'muniment_backup_overdue{job="r"}'
DAY = 24 * 60
OF_DAYS = {"MunimentScrubLate"}
"""Alerts whose time is days: evaluated every four minutes, within which Prometheus remembers a value."""
CASES = {
    # Series by their values each minute (of days: each four), and when the alert waits, fires, and has ended.
    "MunimentDatabaseAway": ({'muniment_database_up{job="r"}': "1 0x5 1x5"}, 2, 4, 8),
    "MunimentStoreAway": ({SILENT: "0 60+60x5 0x5"}, 2, 4, 8),
    "MunimentStandbySilent": ({'muniment_standby_silent{job="r"}': "0 1x5 0x5"}, 0, 2, 8),
    "MunimentChangesWait": ({'muniment_lock_wait_oldest_seconds{job="r"}': "0 6x5 0x9"}, 2, 4, 12),
    "MunimentChangesGivenUp": ({'muniment_changes_given_up_total{job="r"}': "0x3 1x20"}, 2, 5, 15),
    "MunimentCommitsSlow": (
        {
            'muniment_commit_duration_seconds_bucket{job="r",le="1"}': "0x50",
            'muniment_commit_duration_seconds_bucket{job="r",le="2.5"}': "0+10x20 200x30",
            'muniment_commit_duration_seconds_bucket{job="r",le="+Inf"}': "0+10x20 200x30",
        },
        8,
        18,
        40,
    ),
    "MunimentNodeBehind": ({'muniment_edition_lag_seconds{job="r",instance="a"}': "0 6x5 0x5"}, 2, 4, 8),
    "MunimentHistoryLost": (
        {'muniment_replica_rebuilds_total{job="r",reason="diverged"}': "0x3 1x40"},
        2,
        5,
        30,
    ),
    "MunimentLedgerDisagrees": ({'muniment_ledger_agrees{job="r"}': "1 1 0x5 1x5"}, 1, 3, 9),
    "MunimentDamage": ({'muniment_scrub_damaged{job="r",check="references"}': "0 0 1x5 0x5"}, 1, 3, 9),
    "MunimentDamagedReads": (
        {'muniment_damaged_reads_total{job="r",instance="a",what="pages"}': "0x3 1x40"},
        2,
        5,
        30,
    ),
    "MunimentNodeDamage": ({'muniment_scrub_node_damaged{job="r",instance="a"}': "0 0 1x5 0x5"}, 1, 3, 9),
    "MunimentScrubLate": (
        # The pass of the first hour is the last one until the seventeenth day.
        {'muniment_scrub_finished_timestamp_seconds{job="r"}': f"1x{17 * DAY // 4} {17 * DAY * 60}x{DAY // 4}"},
        15 * DAY + 30,
        15 * DAY + 90,
        17 * DAY + 60,
    ),
    "MunimentJobsWait": ({'muniment_jobs_oldest_waiting_seconds{job="r",kind="mail"}': "0 301x5 0x5"}, 1, 3, 8),
    "MunimentMailWaits": ({'muniment_mail_oldest_waiting_seconds{job="r"}': "0 301x5 0x5"}, 1, 3, 8),
    "MunimentWebhookFails": ({'muniment_webhooks{job="r",of="registry",state="paused"}': "0 1x65 0x9"}, 60, 63, 70),
    "MunimentDigestsLate": ({'muniment_digest_delay_seconds{job="r"}': "0 7201x5 0x5"}, 1, 3, 8),
    "MunimentLogDisputed": ({'muniment_log_witness_accuses{job="r",witness="w"}': "0 1x5 0x5"}, 1, 4, 8),
    "MunimentWitnessBehind": (
        {
            'muniment_log_witness_behind_leaves{job="r",witness="w"}': "1x80 0x9",
            'muniment_log_witness_cosigned_timestamp_seconds{job="r",witness="w"}': "0x89",
        },
        63,
        68,
        85,
    ),
    "MunimentBackupOverdue": ({BACKUP: "0 1x9 0x5"}, 5, 8, 12),
    "MunimentDiskNearlyFull": ({'muniment_disk_free_ratio{job="r",instance="a"}': "0.5 0.09x9 0.5x5"}, 5, 8, 12),
    "MunimentFails": (
        {
            'muniment_requests_total{job="r",status="503"}': "0+10x15 150x30",
            'muniment_requests_total{job="r",status="200"}': "0+100x50",
        },
        4,
        12,
        30,
    ),
    "MunimentLimits": ({'muniment_limited_total{job="r",limit="requests"}': "0+120x30 3600x30"}, 10, 25, 50),
}


def rules():
    return {rule["alert"]: rule for rule in yaml.safe_load(ALERTS.read_text())["groups"][0]["rules"]}


def test_every_alert_has_a_case():
    assert rules().keys() == CASES.keys()


@pytest.mark.proof  # promtool is in a package that only the proofs install
@pytest.mark.parametrize(("names", "minutes"), [(CASES.keys() - OF_DAYS, 1), (OF_DAYS, 4)])
def test_each_alert_fires_for_its_cause_after_its_time_and_ends_with_it(names, minutes, tmp_path):
    tests = []
    for name in sorted(names):
        series, before, during, after = CASES[name]
        is_firing = f'count(ALERTS{{alertname="{name}",alertstate="firing"}}) or vector(0)'
        tests.append(
            {
                "name": name,
                "interval": f"{minutes}m",
                "input_series": [{"series": labels, "values": values} for labels, values in series.items()],
                "promql_expr_test": [
                    {"expr": is_firing, "eval_time": f"{moment}m", "exp_samples": [{"labels": "{}", "value": value}]}
                    for moment, value in ((before, 0), (during, 1), (after, 0))
                ],
            }
        )
    (tmp_path / "alerts.yaml").write_text(
        yaml.safe_dump({"groups": [{"name": "muniment", "rules": [rules()[name] for name in sorted(names)]}]})
    )
    file = tmp_path / "tests.yaml"
    whole = {"rule_files": ["alerts.yaml"], "evaluation_interval": f"{minutes}m", "tests": tests}
    file.write_text(yaml.safe_dump(whole))
    done = subprocess.run(["promtool", "test", "rules", file], capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
