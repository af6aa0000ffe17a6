"""The worker: takes jobs, keeps their leases, and stops without losing one."""

import threading

import pytest
from django.db import DatabaseError, OperationalError

from muniment.jobs import handlers, queue
from muniment.jobs.models import Job, State
from muniment.jobs.worker import Worker
from services.ports import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kind():
    """Registers handlers under names of this test alone, and takes them out again."""
    made = []

    def register(work, name="tests.worked", every_s=0, **options):
        handlers.register(handlers.Handler(kind=name, work=work, **options), every_s=every_s)
        made.append(name)
        return name

    yield register
    for name in made:
        handlers.unregister(name)


@pytest.fixture
def worker():
    running = Worker(threads=2, name="here").start()
    yield running
    assert running.stop(within_s=60)


def job(job_id):
    return Job.objects.get(pk=job_id)


def ended(job_id):
    return lambda: job(job_id).state in {State.SUCCEEDED, State.FAILED, State.CANCELED}


def test_a_job_is_done_once_and_keeps_its_result(kind, worker):
    seen = []
    name = kind(lambda run: seen.append(run.payload) or {"sum": 3})
    job_id = queue.enqueue(name, {"a": 1})
    wait_until(ended(job_id), within_s=60, what="the job")
    assert (job(job_id).state, job(job_id).result, seen) == (State.SUCCEEDED, {"sum": 3}, [{"a": 1}])
    assert job(job_id).attempt == 1


def test_a_job_that_can_never_succeed_is_not_retried(kind, worker):
    def work(_):
        raise handlers.Abandoned("the company is gone")

    job_id = queue.enqueue(kind(work))
    wait_until(ended(job_id), within_s=60, what="the job")
    assert (job(job_id).state, job(job_id).attempt, job(job_id).error) == (State.FAILED, 1, "the company is gone")


@pytest.mark.filterwarnings("default")
def test_a_worker_outlives_a_job_that_raises(kind, worker):
    def work(run):
        if run.attempt < 3:
            raise ValueError("not yet")
        return "done"

    job_id = queue.enqueue(kind(work, back_off_s=0.01))
    wait_until(ended(job_id), within_s=60, what="the job")
    assert (job(job_id).state, job(job_id).attempt) == (State.SUCCEEDED, 3)


def test_a_running_job_is_canceled_at_its_next_look_and_settled_once(kind, worker):
    started, settled = threading.Event(), []

    def work(run):
        started.set()
        while True:
            run.check()
            threading.Event().wait(0.01)

    job_id = queue.enqueue(kind(work, lease_s=1, ended=lambda *given: settled.append(given[2])))
    assert started.wait(60)
    assert queue.cancel(job_id)
    wait_until(ended(job_id), within_s=60, what="the cancellation")
    assert job(job_id).state == State.CANCELED
    assert settled == ["canceled"]


def test_the_heartbeat_keeps_a_job_that_is_silent_for_longer_than_its_lease(kind, worker):
    def work(run):
        threading.Event().wait(1.5)
        return run.attempt

    job_id = queue.enqueue(kind(work, lease_s=0.6))
    wait_until(ended(job_id), within_s=60, what="the job")
    assert (job(job_id).state, job(job_id).result) == (State.SUCCEEDED, 1)


def test_a_stopping_worker_hands_its_job_back_without_counting_the_attempt(kind):
    started = threading.Event()

    def work(run):
        run.step("kept", lambda: "kept")
        if run.attempt > 1:
            return run.step("kept", lambda: "made again")
        started.set()
        while True:
            run.check()
            threading.Event().wait(0.01)

    job_id = queue.enqueue(kind(work, max_attempts=1))
    first = Worker(threads=1).start()
    assert started.wait(60)
    assert first.stop(within_s=60)
    assert job(job_id).state == State.QUEUED
    second = Worker(threads=1).start()
    wait_until(ended(job_id), within_s=60, what="the job")
    assert second.stop(within_s=60)
    assert (job(job_id).state, job(job_id).result, job(job_id).attempt) == (State.SUCCEEDED, "kept", 2)


def test_a_worker_outlives_a_database_that_is_away_for_a_moment(kind, monkeypatch, caplog):
    name = kind(lambda _: "done")
    job_id = queue.enqueue(name)
    real, failures = queue.claim, []

    def claim(worker, lane):
        if not lane and len(failures) < 2:
            failures.append(worker)
            raise DatabaseError("gone")
        return real(worker, lane)

    monkeypatch.setattr(queue, "claim", claim)
    monkeypatch.setattr("muniment.jobs.worker.POLL_S", 0.01)
    running = Worker(threads=1).start()
    wait_until(ended(job_id), within_s=60, what="the job")
    assert running.stop()
    assert len(failures) == 2
    assert "could not read the queue" in caplog.text


def test_a_job_whose_end_met_a_database_that_is_away_is_tried_again_before_its_lease_ends(kind, monkeypatch, caplog):
    monkeypatch.setattr("muniment.jobs.worker.POLL_S", 0.02)
    calls = {"finish": 0, "failed": 0}

    def away_at_first(name, times):
        real = getattr(queue.JobRun, name)

        def called(run, *arguments, **options):
            calls[name] += run.kind == "tests.worked"
            if run.kind == "tests.worked" and calls[name] <= times:
                raise OperationalError("database is locked")
            return real(run, *arguments, **options)

        monkeypatch.setattr(queue.JobRun, name, called)

    away_at_first("finish", 1)
    away_at_first("failed", 3)
    job_id = queue.enqueue(kind(lambda _: "done", lease_s=600))
    worker = Worker(threads=1, name="here").start()
    wait_until(ended(job_id), within_s=60, what="the job")
    assert worker.stop(within_s=60)
    assert (job(job_id).state, job(job_id).attempt, calls) == (State.SUCCEEDED, 2, {"finish": 2, "failed": 4})
    assert "could not end tests.worked" in caplog.text


def test_threads_with_nothing_to_do_leave_looking_to_the_heartbeat(kind, monkeypatch):
    kind(lambda _: None)
    claimed, looked, is_due = [], [], queue.is_due
    monkeypatch.setattr("muniment.jobs.worker.POLL_S", 0.02)
    monkeypatch.setattr(queue, "claim", lambda _, lane: claimed.append(lane))
    monkeypatch.setattr(queue, "enqueue_periodic", lambda: None)
    monkeypatch.setattr(queue, "is_due", lambda: looked.append(is_due()))
    running = Worker(threads=4).start()
    wait_until(lambda: len(looked) > 10, within_s=60, what="looks at the queue")
    assert running.stop()
    assert sorted(claimed) == [*[""] * 4, *handlers.lanes()], "each looked once, when it began"


def test_polling_finds_a_job_that_another_process_enqueued(kind, monkeypatch):
    name = kind(lambda _: None)
    monkeypatch.setattr("muniment.jobs.worker.POLL_S", 0.05)
    running = Worker(threads=2).start()
    job_id = Job.objects.create(kind=name).pk  # no process is told
    wait_until(ended(job_id), within_s=60, what="the job")
    assert running.stop()


def test_a_stop_during_a_heartbeat_takes_effect_at_once():
    worker, slept = Worker(threads=1, name="here"), []

    class Stirred(threading.Event):
        def clear(self):
            worker._stopping.set()
            self.set()
            super().clear()

        def wait(self, timeout=None):
            slept.append(worker._stopping.is_set())
            return True

    worker._wake = Stirred()
    worker._run_heartbeat()
    assert slept == [False]


def test_a_worker_that_stops_in_the_middle_of_a_job_leaves_it_without_blame(kind):
    started, go = threading.Event(), threading.Event()

    def work(_):
        started.set()
        go.wait(60)

    job_id = queue.enqueue(kind(work, lease_s=60))
    running = Worker(threads=1).start()
    assert started.wait(60)
    assert not running.stop(within_s=0.1)
    assert (job(job_id).state, job(job_id).kills, job(job_id).excused) == (State.QUEUED, 0, 1)
    go.set()
    assert running.stop(within_s=60)
    assert (job(job_id).state, job(job_id).kills) == (State.QUEUED, 0)


def test_a_worker_that_lost_its_lease_and_lives_takes_the_kill_back(kind):
    started, go, lost = threading.Event(), threading.Event(), []

    def work(run):
        if run.attempt > 1:
            return "by the second"
        started.set()
        go.wait(60)
        try:
            run.checkpoint("late", None)
        except handlers.LeaseLost:
            lost.append(run.id)
            raise

    job_id = queue.enqueue(kind(work, lease_s=600, lane="apart"))  # from the periodic ones
    first = Worker(threads=1, name="first").start()
    assert started.wait(60)
    Job.objects.filter(pk=job_id).update(run_at=queue.clock())
    heir = queue.claim("second", "apart")
    assert heir is not None
    assert job(job_id).kills == 1
    go.set()
    wait_until(lambda: job(job_id).kills == 0, within_s=60, what="the kill to be taken back")
    heir.finish("by the second")
    assert first.stop(within_s=60)
    assert lost == [job_id]
