"""The job of scheduled backups: a process of its own, told apart from a first start, and ended with its job."""

import subprocess
import sys
from datetime import timedelta

import msgspec
import pytest

from make import backups
from muniment.backup.scheduled import job
from muniment.backup.scheduled.job import KIND, JobResult
from muniment.config import Config
from muniment.jobs import handlers, queue
from muniment.jobs.handlers import HandedBack, Postponed
from muniment.jobs.models import Job, State
from muniment.kernel.ids import now

pytestmark = pytest.mark.django_db
RESULT = JobResult(place="there", covered_at=now(), interval_s=900, name="muniment-1", damaged=["one is damaged"])


@pytest.fixture(autouse=True)
def _scheduled(monkeypatch):
    """Let the job run also where no place for backups is set, as on PostgreSQL."""
    monkeypatch.setitem(handlers._handlers, KIND, job.HANDLER)


def a_run(kind=KIND):
    queue.enqueue(kind)
    claimed = queue.claim("tests", "backup")
    assert claimed is not None
    return claimed


def command(monkeypatch, script):
    monkeypatch.setattr(job, "COMMAND", (sys.executable, "-I", "-c", script))
    monkeypatch.setattr(job, "LOOK_S", 0.02)


@pytest.fixture
def earlier():
    """Leave an earlier run, as every instance but a new one has."""
    at = now() - timedelta(hours=1)
    return Job.objects.create(kind=KIND, state=State.SUCCEEDED, created_at=at, run_at=at, finished_at=at, result={})


def test_the_first_run_of_an_instance_makes_none(monkeypatch):
    command(monkeypatch, "raise SystemExit(1)")
    assert job.run_backup(a_run()) == {}


def test_what_the_process_tells_is_the_result_and_damage_is_logged(monkeypatch, earlier, caplog):
    command(monkeypatch, f"print({msgspec.json.encode(RESULT).decode()!r})")
    assert msgspec.convert(job.run_backup(a_run()), JobResult, strict=False) == RESULT
    assert "backups in there: one is damaged" in caplog.text


def test_a_failure_is_tried_again_with_its_reason(monkeypatch, earlier, caplog):
    command(monkeypatch, "raise SystemExit('note\\nerror: No space left\\non the device.')")
    with pytest.raises(Postponed, match=r"^No space left on the device\.$"):
        job.run_backup(a_run())
    assert "the scheduled backup failed: No space left" in caplog.text
    command(monkeypatch, "raise SystemExit(3)")
    with pytest.raises(Postponed, match="the process ended with status 3"):
        job.run_backup(a_run())


def test_the_process_ends_when_the_job_must_stop_or_takes_too_long(monkeypatch, earlier):
    command(monkeypatch, "import time; time.sleep(600)")
    run = a_run()
    run.drain()
    with pytest.raises(HandedBack):
        job.run_backup(run)
    monkeypatch.setattr(job, "LONGEST_S", 0.0)
    with pytest.raises(Postponed, match="it took longer than"):
        job.run_backup(a_run())


def test_the_command_ends_with_the_process_that_started_it():
    script = "from muniment.cli.backup import _end_with_parent; print('runs', flush=True); _end_with_parent()"
    pipe = subprocess.PIPE
    with subprocess.Popen([sys.executable, "-c", script], stdin=pipe, stdout=pipe) as process:
        assert process.stdout.readline() == b"runs\n"
        assert process.poll() is None
        process.stdin.close()
        assert process.wait(30) == 1


def described(place="off", **more):
    settings = backups.settings(place, **more)
    return job.described(job.backup_status(), settings)


def ran(**values):
    at = now() - timedelta(seconds=values.pop("ago_s", 0))
    result = msgspec.structs.replace(RESULT, covered_at=at, **values)
    job.record_run(result)
    Job.objects.filter(kind=KIND, finished_at__gt=at).update(finished_at=at, run_at=at)


def test_the_state_tells_the_loss_the_place_and_the_interval():
    assert described() == ("off; with the database, every change since a backup of your own would be lost", False)
    says, ill = described("/backups-of-tests")
    assert (says, ill) == ("none yet in /backups-of-tests; the first follows within 15 min", False)
    ran(ago_s=600, kept=7)
    says, ill = described("/backups-of-tests")
    assert ill
    assert says.startswith("none yet in /backups-of-tests, where they are stored now; the last 10 min of changes")
    assert described("s3://tests@store.example/backups")[1]
    says, ill = described("there")
    assert not ill
    assert says.startswith(
        "the last 10 min of changes would be lost with the database; the newest good backup in there"
    )
    assert says.endswith("one is made every 15 min with changes, 7 are kept")
    assert described()[0] == says, "also on a node that makes none"


def test_without_any_backup_on_postgresql_attention_is_needed(tmp_path):
    settings = Config({}, data=tmp_path, database_url="postgresql://registry@db.example/registry")
    says, ill = job.described(job.backup_status(), settings)
    assert ill
    assert "none are made" in says


def test_an_overdue_backup_and_a_failed_run_need_attention(earlier):
    Job.objects.filter(pk=earlier.pk).update(created_at=now() - timedelta(hours=2))
    says, ill = described("/backups-of-tests")
    assert (says.startswith("OVERDUE; none yet"), ill) == (True, True)
    ran(ago_s=7000, lost=["01"])
    says, ill = described("there")
    assert ill
    assert says.startswith("OVERDUE; 1 documents had no good file")
    ran(ago_s=60)
    assert described("there")[1] is False
    failed = a_run()
    failed.failed("No space left", for_good=False)
    says, ill = described("there")
    assert (says.startswith("the last run failed: No space left; the last 60 s"), ill) == (True, True)


def test_the_command_ends_well_while_its_input_is_still_open():
    script = (
        "import threading; from muniment.cli.backup import _end_with_parent;"
        " threading.Thread(target=_end_with_parent, daemon=True).start(); threading.Event().wait(0.05)"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE) as process:
        assert process.wait(30) == 0
