"""Two worker processes run reports and are killed at random: every run ends, is paid once, and repeats nothing kept."""

import json
import random
import select
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from django.db import close_old_connections

from make.registry import owner
from make.reports import company, framework
from muniment.assessments import operations as runs
from muniment.assessments.evaluation.rules import Rules
from muniment.assessments.models import Report, ReportRun
from muniment.credits import operations as ledger
from muniment.credits.models import Hold, Transfer
from muniment.jobs import handlers
from muniment.jobs.models import Job, Step
from services import report_workers
from services.product import environment

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.proof, pytest.mark.timeout(1200)]
RUNS, OWNERS, CRITERIA, PAUSE_S = 60, 12, 70, 0.03
STEPS = 1 + -(-CRITERIA // Rules.batch)


class Line(NamedTuple):
    """A line of the workers' log."""

    at: float
    process: int
    job: str
    attempt: int
    what: str


class Pair:
    """Two worker processes, and what became of them."""

    def __init__(self, stand, log):
        settings = {"database_url": stand.config.database_url} if stand.config.on_postgresql else {}
        self._environment = {
            **environment(stand.folder, **settings),
            "DJANGO_SETTINGS_MODULE": "muniment.settings",
            "PYTHONPATH": str(Path(report_workers.__file__).parents[1]),
        }
        self.log = log
        self.lives = []
        """Of each process its id, when it could work, and when it was killed; None while that has not come."""
        self._running = [self._start(), self._start()]

    def _start(self):
        process = subprocess.Popen(
            [sys.executable, report_workers.__file__, str(self.log), str(PAUSE_S)],
            env=self._environment,
            stderr=subprocess.PIPE,
            text=True,
        )
        life = [process.pid, None, None]
        self.lives.append(life)
        return process, life

    def look(self):
        """Note which processes have come up."""
        for process, life in self._running:
            if life[1] is None and _has_spoken(process.stderr):
                said = next((line for line in process.stderr if not line.startswith("{")), "")  # a line of its log
                assert said.startswith("Worker "), said
                life[1] = time.time()

    def up(self):
        """Return the numbers of those that can work."""
        return [number for number, (_, life) in enumerate(self._running) if life[1] is not None]

    def kill(self, number):
        """Kill one of the two as a power cut would, and start another."""
        process, life = self._running[number]
        process.kill()
        life[2] = time.time()
        process.wait()
        process.stderr.close()
        self._running[number] = self._start()

    def close(self):
        for process, _ in self._running:
            process.kill()
            process.wait()
            process.stderr.close()

    def lines(self):
        found = []
        for line in self.log.read_text().splitlines():
            at, process, job, attempt, what = line.split(" ")
            found.append(Line(float(at), int(process), job, int(attempt), what))
        return sorted(found)


def _has_spoken(stream):
    return bool(select.select([stream], [], [], 0)[0])


@pytest.fixture
def pair(stand, tmp_path):
    made = Pair(stand, tmp_path / "steps.log")
    yield made
    made.close()


def test_sixty_runs_end_and_are_paid_once_whichever_process_is_killed(pair, settings, record_property):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    of = framework(CRITERIA)
    owners = [owner() for _ in range(OWNERS)]
    waiting = [(me, runs.start_run(me, company(me), of).run.row.pk) for _ in range(RUNS // OWNERS) for me in owners]
    ids = [run_id for _, run_id in waiting]
    dice = random.Random(7)
    kills, next_kill, next_run = 0, None, time.time()
    deadline = time.time() + 840
    while ReportRun.objects.filter(pk__in=ids, state="succeeded").count() < RUNS:
        assert time.time() < deadline, Counter(ReportRun.objects.values_list("state", flat=True))
        pair.look()
        if waiting and time.time() >= next_run:
            runs.execute_run(*waiting.pop(0))
            next_run = time.time() + 1.5
        if not pair.up():
            next_kill = None  # to kill what has not come up proves nothing
        elif next_kill is None:
            next_kill = time.time() + dice.uniform(2, 4)
        elif time.time() >= next_kill:
            pair.kill(dice.choice(pair.up()))
            kills, next_kill = kills + 1, None
        close_old_connections()
        time.sleep(0.05)

    lines = pair.lines()
    steps = list(Step.objects.filter(job_id__in=ids))
    assert len(steps) == RUNS * STEPS
    kept = {
        (step.job_id, criterion["id"]): step.at.timestamp()
        for step in steps
        if step.name.startswith("judge:")
        for criterion in json.loads(step.output)["settled"]
    }
    assert len(kept) == RUNS * CRITERIA
    begun = [line for line in lines if line.what == "begin"]
    judged = [line for line in lines if line.what != "begin"]
    assert [line for line in judged if line.at > kept[line.job, line.what]] == []  # what was kept is not judged again
    assert Report.objects.count() == RUNS
    assert Transfer.objects.filter(kind="run").count() == RUNS
    assert Counter(Hold.objects.values_list("state", flat=True)) == {"captured": RUNS}
    for me in owners:
        seen = ledger.get_balance(me)
        assert (seen.balance, seen.held) == (100 - 10 * RUNS // OWNERS, 0)
    assert ledger.check_ledger() == []
    interrupted = len({line.job for line in lines if line.attempt > 1})
    told = (
        f"{RUNS} runs, {kills} kills, {interrupted} runs interrupted {sum(line.attempt > 1 for line in begun)} times; "
        f"{len(judged)} judgements begun, {len(kept)} kept, none begun again once kept"
    )
    record_property("told", told)
    print(told)  # noqa: T201 - the figures, for who runs it with -s
    assert interrupted >= 5


def _take_overs(lines, lives):
    """Give, of each run that lost its worker, how long it waited for the next one."""
    killed = {process: at for process, _, at in lives if at}
    last = {(line.job, line.attempt): line for line in lines}
    return [
        line.at - killed[last[line.job, line.attempt - 1].process]
        for line in lines
        if line.what == "begin" and line.attempt > 1
    ]


def test_a_killed_workers_run_is_taken_over_within_the_lease_and_a_second(pair, settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 100, 10
    me, of = owner(), framework(CRITERIA)
    while not all(came for _, came, _ in pair.lives):
        pair.look()
        time.sleep(0.05)
    for _ in range(2):
        run_id = runs.start_run(me, company(me), of).run.row.pk
        runs.execute_run(me, run_id)
        while Step.objects.filter(job_id=run_id).count() < 3:
            time.sleep(0.02)
        holder = int(Job.objects.get(pk=run_id).worker.rpartition(":")[2])
        number = next(n for n, (process, _) in enumerate(pair._running) if process.pid == holder)
        pair.kill(number)
        while not ReportRun.objects.filter(pk=run_id, state="succeeded").exists():
            pair.look()
            time.sleep(0.05)
        assert Job.objects.get(pk=run_id).attempt == 2
    waits = _take_overs(pair.lines(), pair.lives)
    print("taken over after", [f"{wait:.1f} s" for wait in waits])  # noqa: T201 - the figures
    assert len(waits) == 2
    assert all(wait <= handlers.handler(runs.KIND).lease_s + 1 for wait in waits)
    assert ledger.check_ledger() == []
