"""The queue: what is claimed, by whom, how it ends, and what a second attempt finds."""

import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from django.db import connection, transaction

from muniment.jobs import handlers, queue
from muniment.jobs.models import Job, State, Step
from muniment.kernel.ids import now

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def kind():
    """Registers handlers under names of this test alone, and takes them out again."""
    made = []

    def register(work, name="tests.thing", every_s=0, **options):
        handlers.register(handlers.Handler(kind=name, work=work, **options), every_s=every_s)
        made.append(name)
        return name

    yield register
    for name in made:
        handlers.unregister(name)


def job(job_id):
    return Job.objects.get(pk=job_id)


def ended(job_id):
    return lambda: job(job_id).state in {State.SUCCEEDED, State.FAILED, State.CANCELED}


def expire(job_id):
    """The lease of *job_id* is over."""
    Job.objects.filter(pk=job_id).update(run_at=now() - timedelta(seconds=1))


def test_enqueueing_joins_the_transaction_of_what_it_is_about(kind):
    name = kind(lambda _: None)
    with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012 - the two together are what is tested
        queue.enqueue(name)
        raise RuntimeError
    assert not Job.objects.filter(kind=name).exists()


def test_one_key_makes_one_job(kind):
    name = kind(lambda _: None)
    first = queue.enqueue(name, {"n": 1}, unique_key="k")
    assert queue.enqueue(name, {"n": 2}, unique_key="k") == first
    assert job(first).payload == {"n": 1}


def test_lower_priority_first_then_the_oldest(kind):
    name = kind(lambda _: None)
    late, early, urgent = queue.enqueue(name, priority=5), queue.enqueue(name, priority=5), queue.enqueue(name)
    Job.objects.filter(pk=early).update(run_at=now() - timedelta(minutes=1))
    assert [queue.claim("w").id for _ in range(3)] == [urgent, early, late]
    assert queue.claim("w") is None


def test_a_job_is_not_claimed_before_its_time_nor_by_a_worker_without_its_handler(kind):
    queue.enqueue("tests.unknown")
    queue.enqueue(kind(lambda _: None), delay_s=60)
    assert queue.claim("w") is None


def test_two_claims_at_once_take_different_jobs(kind):
    name = kind(lambda _: None)
    ids = {queue.enqueue(name) for _ in range(12)}
    taken, lock, barrier = [], threading.Lock(), threading.Barrier(4)

    def take():
        barrier.wait(60)
        try:
            while run := queue.claim("w"):
                with lock:
                    taken.append(run.id)
        finally:
            connection.close()

    threads = [threading.Thread(target=take) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(taken) == 12
    assert set(taken) == ids


def test_a_worker_past_its_lease_changes_nothing(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    zombie = queue.claim("first")
    expire(job_id)
    heir = queue.claim("second")
    assert heir.attempt == 2
    for act in (
        lambda: zombie.checkpoint("a", 1),
        lambda: zombie.finish("zombie"),
        zombie.check,
    ):
        with pytest.raises(handlers.LeaseLost):
            act()
    zombie.failed("no", for_good=True)
    zombie.hand_back()
    zombie.canceled()
    assert job(job_id).state == State.RUNNING
    assert not Step.objects.exists()
    heir.finish("heir")
    assert job(job_id).result == "heir"


def test_finished_steps_are_not_repeated_by_the_next_attempt(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    made = []
    first = queue.claim("first")
    assert first.step("one", lambda: made.append("one") or 1, done=1, total=2) == 1
    expire(job_id)
    second = queue.claim("second")
    assert second.step("one", lambda: made.append("again") or 9) == 1
    assert second.step("two", lambda: made.append("two") or 2, done=2, total=2) == 2
    assert made == ["one", "two"]
    assert job(job_id).progress == {"done": 2, "total": 2, "step": "two"}


def test_finishing_shares_the_transaction_of_what_it_settles(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    zombie = queue.claim("first")
    expire(job_id)
    queue.claim("second")
    with pytest.raises(handlers.LeaseLost), transaction.atomic():  # noqa: PT012 - the two together are what is tested
        queue.enqueue("tests.charged", unique_key="charge")
        zombie.finish()
    assert not Job.objects.filter(unique_key="charge").exists()


def test_a_failing_job_is_tried_again_with_growing_pauses_and_then_ends(kind):
    settled = []
    name = kind(
        lambda _: None,
        max_attempts=3,
        back_off_s=100,
        ended=lambda job_id, payload, ending, error: settled.append((payload, ending, error)),
    )
    job_id = queue.enqueue(name, {"x": 1})
    pauses = []
    for _ in range(3):
        expire(job_id)
        queue.claim("w").failed("ValueError: no", for_good=False)
        pauses.append((job(job_id).run_at - now()).total_seconds())
    assert 70 < pauses[0] < 125
    assert 150 < pauses[1] < 245
    assert (job(job_id).state, job(job_id).error) == (State.FAILED, "ValueError: no")
    assert settled == [({"x": 1}, "failed", "ValueError: no")]


def test_a_job_that_has_killed_its_process_is_tried_once_more_and_then_given_up(kind, caplog):
    settled = []
    name = kind(lambda _: None, ended=lambda *given: settled.append((given[2], given[3])))
    job_id = queue.enqueue(name)
    for kills in range(2):
        assert queue.claim("w").id == job_id
        assert job(job_id).kills == kills
        expire(job_id)
    assert queue.claim("w") is None
    reason = "not tried again: its process ended 2 times while it ran"
    assert (job(job_id).state, job(job_id).kills, job(job_id).error) == (State.FAILED, 2, reason)
    assert settled == [("failed", reason)]
    assert f"{name} {job_id} is given up: its process ended 2 times" in caplog.text
    assert queue.is_killed(job(job_id).error)
    assert not queue.is_killed(reason)
    assert queue.killed_jobs() == {name: 1}


def test_a_kind_may_survive_more_kills(kind):
    job_id = queue.enqueue(kind(lambda _: None, max_kills=3))
    for _ in range(3):
        assert queue.claim("w") is not None
        expire(job_id)
    assert queue.claim("w") is None
    assert job(job_id).state == State.FAILED


def test_a_finished_step_takes_the_kills_back(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    for number in range(4):
        queue.claim("w").checkpoint(f"part {number}", None)
        assert job(job_id).kills == 0
        expire(job_id)
    assert queue.claim("w") is not None
    assert job(job_id).kills == 1


def test_a_failure_that_is_reported_is_no_kill(kind):
    job_id = queue.enqueue(kind(lambda _: None, max_attempts=4))
    for _ in range(3):
        queue.claim("w").failed("ValueError: no", for_good=False)
        expire(job_id)
    assert queue.claim("w").attempt == 4
    assert job(job_id).kills == 0
    assert queue.killed_jobs() == {}


def test_a_worker_that_lives_takes_back_the_kill_that_another_saw(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    slow = queue.claim("frozen for a while")
    expire(job_id)
    heir = queue.claim("other")
    assert job(job_id).kills == 1
    with pytest.raises(handlers.LeaseLost):
        slow.checkpoint("late", None)
    slow.survived()
    assert job(job_id).kills == 0
    slow.survived()
    assert job(job_id).kills == 0
    heir.finish("done")
    assert job(job_id).state == State.SUCCEEDED


def test_a_process_runs_one_job_at_a_time_that_may_have_killed_another(kind):
    """Two jobs ran in a process that ended: in one more they would be blamed together."""
    name = kind(lambda _: None)
    first, second = queue.enqueue(name), queue.enqueue(name)
    assert {queue.claim("w").id, queue.claim("w").id} == {first, second}
    expire(first)
    expire(second)
    suspect = queue.claim("w2")
    assert suspect is not None
    assert queue.claim("w2") is None
    fresh = queue.enqueue(name)
    assert queue.claim("w2").id == fresh
    other = queue.claim("another process")
    assert {suspect.id, other.id} == {first, second}
    suspect.checkpoint("one", None)
    expire(other.id)
    assert queue.claim("w2") is None  # the second kill of the other one
    assert job(other.id).state == State.FAILED


def test_a_job_that_is_left_at_the_end_of_a_process_is_no_kill(kind):
    job_id = queue.enqueue(kind(lambda _: None, max_attempts=2))
    run = queue.claim("w")
    until = job(job_id).run_at
    run.leave()
    assert (job(job_id).state, job(job_id).run_at, job(job_id).excused) == (State.QUEUED, until, 1)
    assert queue.claim("w2") is None, "it may still be worked on until then"
    expire(job_id)
    assert queue.claim("w2").attempt == 2
    assert job(job_id).kills == 0


def test_an_attempt_that_kept_a_step_is_no_sign_of_poison(kind):
    job_id = queue.enqueue(kind(lambda _: None, max_attempts=2))
    for number in range(5):
        queue.claim("w").checkpoint(f"part {number}", None)
        expire(job_id)
    assert queue.claim("w") is not None  # the first that keeps nothing
    expire(job_id)
    assert queue.claim("w") is None
    assert (job(job_id).state, job(job_id).attempt) == (State.FAILED, 6)


def test_a_queued_job_is_canceled_at_once(kind):
    settled = []
    job_id = queue.enqueue(kind(lambda _: None, ended=lambda *given: settled.append(given[2])))
    assert queue.cancel(job_id)
    assert job(job_id).state == State.CANCELED
    assert settled == ["canceled"]
    assert not queue.cancel(job_id)
    assert queue.claim("w") is None


def test_a_canceled_job_cannot_be_finished_any_more(kind):
    job_id = queue.enqueue(kind(lambda _: None))
    run = queue.claim("w")
    queue.cancel(job_id)
    with pytest.raises(handlers.Canceled):
        run.finish("too late")
    run.canceled()
    assert job(job_id).state == State.CANCELED


def test_a_group_runs_no_more_than_its_share_and_delays_no_other(kind):
    name = kind(lambda _: None, per_group=1)
    for _ in range(30):
        queue.enqueue(name, group="greedy")
    other = queue.enqueue(name, group="modest")
    first = queue.claim("w")
    assert first is not None
    assert queue.claim("w").id == other
    assert queue.claim("w") is None
    first.finish()
    assert queue.claim("w") is not None


@pytest.mark.postgresql  # on SQLite no claim begins before the other has ended
def test_two_claims_at_once_leave_a_group_its_share(kind):
    name = kind(lambda _: None, per_group=1)
    queue.enqueue(name, group="greedy")
    with ThreadPoolExecutor(1) as pool:

        def beside(do, *given, **options):
            def go():
                try:
                    return do(*given, **options)
                finally:
                    connection.close()

            return pool.submit(go).result(30)

        with transaction.atomic():  # what the one takes is not committed yet when the other looks
            first = queue.claim("w")
            second = beside(queue.enqueue, name, group="greedy")
            other = beside(queue.enqueue, name, group="modest")
            assert beside(queue.claim, "beside").id == other
            assert beside(queue.claim, "beside") is None
            heard = queue.work_signal.count
        assert queue.work_signal.count == heard + 1, "who found the group locked is told to look again"
        assert beside(queue.claim, "beside") is None
        first.finish()
        assert beside(queue.claim, "beside").id == second


def test_a_periodic_job_is_enqueued_once_for_all_workers(kind, monkeypatch):
    name = kind(lambda _: None, name="tests.tick", every_s=600)
    for _ in range(3):
        queue.enqueue_periodic()
    assert Job.objects.filter(kind=name).count() == 1
    while run := queue.claim("w"):
        run.finish()
    queue.enqueue_periodic()
    assert Job.objects.filter(kind=name).count() == 1
    later = queue.clock() + timedelta(seconds=700)
    monkeypatch.setattr(queue, "clock", lambda: later)
    queue.enqueue_periodic()
    assert Job.objects.filter(kind=name).count() == 2


def test_finished_jobs_are_removed_after_a_week(kind):
    name = kind(lambda _: None)
    old, fresh, waiting = (queue.enqueue(name) for _ in range(3))
    Job.objects.filter(pk=old).update(state=State.SUCCEEDED, finished_at=now() - timedelta(days=8))
    Job.objects.filter(pk=fresh).update(state=State.SUCCEEDED, finished_at=now())
    queue.prune()
    assert set(Job.objects.filter(kind=name).values_list("pk", flat=True)) == {fresh, waiting}


def test_successes_of_a_kind_are_removed_when_it_says(kind):
    name = kind(lambda _: None, successes_kept=timedelta(days=1))
    old, fresh, failed = (queue.enqueue(name) for _ in range(3))
    ended = now() - timedelta(days=1, seconds=1)
    Job.objects.filter(pk=old).update(state=State.SUCCEEDED, finished_at=ended)
    Job.objects.filter(pk=fresh).update(state=State.SUCCEEDED, finished_at=ended + timedelta(minutes=1))
    Job.objects.filter(pk=failed).update(state=State.FAILED, finished_at=ended)
    queue.prune()
    assert set(Job.objects.filter(kind=name).values_list("pk", flat=True)) == {fresh, failed}


def test_to_look_at_the_queue_and_at_the_clock_takes_few_statements(kind, django_assert_num_queries):
    name = kind(lambda _: None, name="tests.tick", every_s=600)
    queue.enqueue_periodic()
    with django_assert_num_queries(1):
        assert queue.is_due()
    with django_assert_num_queries(2 if connection.vendor == "postgresql" else 1):  # the clock is the database's
        queue.enqueue_periodic()
    Job.objects.all().delete()
    with django_assert_num_queries(1):
        assert not queue.is_due()
    queue.enqueue(name, delay_s=60)
    queue.enqueue("tests.unknown")
    assert not queue.is_due()


@pytest.mark.django_db
def test_jobs_are_counted_by_kind_and_state_with_the_longest_wait():
    for delay_s in (-90, -30, 600):
        queue.enqueue("suite.waits", delay_s=delay_s)
    queue.enqueue("suite.later", delay_s=600)
    Job.objects.create(kind="suite.waits", state=State.FAILED)
    Job.objects.create(kind="suite.waits", state=State.SUCCEEDED)
    Job.objects.create(kind="suite.runs", state=State.RUNNING, run_at=now() - timedelta(seconds=5))
    found = {(row.kind, row.state): row for row in queue.queue_statuses()}
    assert {key: row.jobs for key, row in found.items()} == {
        ("suite.waits", "queued"): 3,
        ("suite.waits", "failed"): 1,
        ("suite.later", "queued"): 1,
        ("suite.runs", "running"): 1,
    }
    assert 90 <= found["suite.waits", "queued"].waits_s < 120
    assert found["suite.later", "queued"].waits_s == 0, "what is not due does not wait"
    assert found["suite.runs", "running"].waits_s == 0
