"""The clock is set forward or back: no job runs twice, and none waits for the former time."""

import threading
from datetime import timedelta

import pytest

from muniment.jobs import handlers, queue
from muniment.jobs.clock_jumps import ClockJumps, settle
from muniment.jobs.models import Job, State
from muniment.jobs.steadiness import GRACE_S, Steadiness
from muniment.jobs.worker import Worker
from muniment.kernel import ids
from services.ports import wait_until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.sqlite]  # PostgreSQL has a clock of its own
DAY = timedelta(days=1)
JUMPS = [DAY, -DAY, -3650 * DAY]


class Clock:
    """The wall clock and the measured time of a process."""

    def __init__(self):
        self.shift = timedelta()
        self.measured = 1_000.0
        self.begin = ids.now().replace(minute=0, second=0) - timedelta(seconds=self.measured)

    def wall(self):
        return self.begin + timedelta(seconds=self.measured) + self.shift


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr(queue, "now", made.wall)
    monkeypatch.setattr(queue, "steadiness", Steadiness(lambda: made.measured))
    queue.clock()
    return made


@pytest.fixture
def kind():
    handlers.register(handlers.Handler(kind="tests.clocked", work=lambda _: None), every_s=3_600)
    yield "tests.clocked"
    handlers.unregister("tests.clocked")


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_the_lease_of_a_living_worker_survives(clock, kind, jump):
    queue.enqueue(kind)
    run = queue.claim("living")
    clock.shift = jump
    assert queue.claim("other") is None
    run.renew()
    clock.measured += GRACE_S + 1
    settle(is_set_back=jump < timedelta())
    assert queue.claim("other") is None
    run.finish()
    assert Job.objects.get(pk=run.id).state == State.SUCCEEDED


@pytest.mark.parametrize("jump", JUMPS, ids=str)
def test_the_job_of_a_dead_worker_is_taken_over_when_the_living_have_renewed_theirs(clock, kind, jump):
    queue.enqueue(kind)
    dead = queue.claim("dead")
    clock.shift = jump
    settle(is_set_back=jump < timedelta())
    assert queue.claim("other") is None
    clock.measured += GRACE_S + 1
    settle(is_set_back=False)
    assert queue.claim("other").id == dead.id


@pytest.mark.parametrize("jump", [*JUMPS, timedelta(minutes=-30)], ids=str)
def test_a_job_that_waits_does_not_wait_for_the_former_time(clock, kind, jump):
    waiting = queue.enqueue(kind)
    clock.shift = jump
    jumps = ClockJumps()
    queue.clock()
    assert jumps.are_new()
    assert not jumps.are_new()
    jumps.settle()
    assert queue.claim("any").id == waiting


def test_a_worker_that_starts_after_the_clock_was_set_back_waits_for_nothing_either(clock, kind, monkeypatch):
    waiting = queue.enqueue(kind)
    clock.shift = -DAY
    monkeypatch.setattr(queue, "steadiness", Steadiness(lambda: clock.measured))
    assert queue.claim("any") is None
    ClockJumps().settle()
    assert queue.claim("any").id == waiting


def test_a_pause_before_another_attempt_is_kept_when_the_clock_is_steady(clock, kind):
    queue.enqueue(kind)
    queue.claim("any").failed("away", for_good=False, pause_s=60)
    settle(is_set_back=False)
    clock.measured += 30
    assert queue.claim("any") is None


def test_periodic_jobs_run_again_after_the_clock_was_set_back(clock, kind, monkeypatch):
    monkeypatch.setattr(handlers, "_periodic", {kind: 3_600})
    queue.enqueue_periodic()
    clock.measured += 1_800
    queue.claim("any").finish()
    clock.shift = timedelta(minutes=-20)  # still, or again, within the same hour
    queue.enqueue_periodic()
    assert Job.objects.count() == 1
    settle(is_set_back=True)
    queue.enqueue_periodic()
    assert Job.objects.filter(state=State.QUEUED).count() == 1


def test_counts_of_rate_limits_are_forgotten_when_the_clock_was_set_back_and_only_then(clock, monkeypatch):
    forgotten = []
    monkeypatch.setattr(handlers, "set_back_watchers", [])
    handlers.when_set_back(lambda: forgotten.append(clock.shift))
    jumps = ClockJumps()
    for shift in (DAY, timedelta(), timedelta()):
        clock.shift = shift
        queue.clock()
        jumps.settle()
    assert forgotten == [timedelta()]


def test_a_worker_renews_what_it_holds_at_once_and_runs_nothing_twice(monkeypatch):
    begun, end, shift = [], threading.Event(), [timedelta()]
    monkeypatch.setattr(queue, "now", lambda: ids.now() + shift[0])
    monkeypatch.setattr(queue, "steadiness", Steadiness())

    def work(run):
        begun.append(run.attempt)
        assert end.wait(60)

    handlers.register(handlers.Handler(kind="tests.long", work=work, lease_s=30))
    worker = Worker(threads=2).start()
    try:
        job = queue.enqueue("tests.long")
        wait_until(lambda: begun, within_s=60, what="the job")
        shift[0] = DAY
        queue.work_signal.notify()
        wait_until(lambda: Job.objects.get(pk=job).run_at > ids.now() + DAY, within_s=60, what="a new lease")
        end.set()
        wait_until(lambda: Job.objects.get(pk=job).state == State.SUCCEEDED, within_s=60, what="the end")
    finally:
        end.set()
        worker.stop()
        handlers.unregister("tests.long")
    assert begun == [1]
