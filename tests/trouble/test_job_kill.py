"""A worker is killed as a power cut would: another worker continues its job, from its last step."""

import subprocess
import sys
from pathlib import Path

import pytest

from muniment.jobs import queue
from muniment.jobs.models import Job, State, Step
from services import workers
from services.ports import wait_until
from services.product import environment

pytestmark = pytest.mark.django_db(transaction=True)
LEASE_S = 1.0


@pytest.fixture
def start(stand):
    running = []

    def one(name, pause_s=0.15):
        settings = {"database_url": stand.config.database_url} if stand.config.on_postgresql else {}
        process = subprocess.Popen(
            [sys.executable, workers.__file__, name, str(LEASE_S), str(pause_s)],
            env={
                **environment(stand.folder, **settings),
                "DJANGO_SETTINGS_MODULE": "muniment.settings",
                "PYTHONPATH": str(Path(workers.__file__).parents[1]),
            },
            stdout=subprocess.PIPE,
        )
        running.append(process)
        assert process.stdout.readline() == b"started\n"
        return process

    yield one
    for process in running:
        process.kill()
        process.wait()
        process.stdout.close()


def test_another_worker_takes_over_within_the_lease_and_repeats_no_finished_step(start):
    first = start("first")
    job_id = queue.enqueue("tests.slow")
    wait_until(lambda: Step.objects.filter(job_id=job_id).count() >= 2, within_s=60, what="two steps")
    first.kill()
    first.wait()
    kept = dict(Step.objects.filter(job_id=job_id).values_list("name", "output"))
    start("second")
    wait_until(lambda: Job.objects.get(pk=job_id).state == State.SUCCEEDED, within_s=60, what="the job's end")
    done = Job.objects.get(pk=job_id)
    assert (done.result, done.attempt) == ("second", 2)
    after = dict(Step.objects.filter(job_id=job_id).values_list("name", "output"))
    assert len(after) == 5
    assert {name: after[name] for name in kept} == kept


@pytest.mark.proof
def test_thirty_kills_lose_no_job_and_repeat_no_kept_step(start):
    jobs = [queue.enqueue("tests.slow") for _ in range(20)]
    workers_now = [start("a", 0.05), start("b", 0.05)]
    for kill in range(30):
        before = Step.objects.count()
        wait_until(
            lambda before=before: Step.objects.count() >= min(before + 3, 100), within_s=30, what="three more steps"
        )
        victim = workers_now[kill % 2]
        victim.kill()
        victim.wait()
        workers_now[kill % 2] = start(f"w{kill}", 0.05)
    wait_until(lambda: Job.objects.filter(pk__in=jobs, state=State.SUCCEEDED).count() == 20, within_s=120, what="all")
    assert Step.objects.count() == 100
