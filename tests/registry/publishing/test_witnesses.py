"""Witnesses are asked to cosign the log, believed only by their signature, and what they have cosigned is kept."""

import time
from datetime import timedelta

import pytest
from django.db import connection, transaction

from make.registry import owner, published
from muniment import config
from muniment.jobs import queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.signed_notes import cosign, cosignatures, parse, verify
from muniment.registry.models import CosignedCheckpoint, LogKey, LogWitness
from muniment.registry.publishing import publisher, signed_log, witnesses
from muniment.server.app.log_source import DatabaseLog
from muniment.setting_values import Witness
from muniment.store import public_log
from services.witness_site import Said, send, witness_site

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def site(settings_of):
    with witness_site(1) as made:
        settings_of(made)
        yield made


@pytest.fixture
def two(settings_of):
    with witness_site(1) as first, witness_site(2) as second:
        settings_of(first, second)
        yield first, second


@pytest.fixture
def settings_of(monkeypatch):
    """Return a function that names witnesses in the settings of this process."""
    used = config.current()

    def named(*sites):
        given = tuple(Witness(site.key.text(), site.url) for site in sites)
        changed = config.Config({}, data=used.data, database_url=used.database_url, witnesses=given)
        monkeypatch.setattr(config, "_current", changed)
        signed_log.settle()

    return named


def log():
    return DatabaseLog().read(lambda _, found: found)


def grow(count=1):
    for _ in range(count):
        published(owner())


def ask():
    """Ask the witnesses that are due, as the job does, and return how many have cosigned."""
    Job.objects.all().delete()
    witnesses.look()
    run = queue.claim("tests")
    if run is None:
        return None
    result = witnesses.ask(run)
    if not run.finished:
        run.finish(result)
    Job.objects.all().delete()
    return result["cosigned"]


def pauses_over():
    LogWitness.objects.update(next_at=now() - timedelta(seconds=1))


def status():
    (only,) = witnesses.statuses()
    return only


def kept():
    state = log().state
    return witnesses.cosigned(state.origin, state.size)


def test_without_witnesses_nothing_is_asked_or_enqueued():
    grow()
    assert ask() is None
    assert witnesses.statuses() == []


def test_a_witness_cosigns_the_log_as_it_grows(site):
    grow(3)
    assert ask() == 1
    first = log().state
    assert (status().size, status().behind, status().trouble) == (first.size, 0, "")
    assert status().cosigned_at is not None
    grow(2)
    assert status().behind == log().state.size - first.size > 0
    pauses_over()
    assert ask() == 1
    state = log().state
    assert [asked.old_size for asked in site.asked] == [0, first.size]
    assert site.asked[0].hashes == []
    assert site.asked[1].checkpoint == (state.origin, state.size, state.root)
    (only,) = kept()
    assert (only.size, only.root) == (state.size, state.root)
    note = site.asked[1].note + only.lines[site.key.text()] + "\n"
    assert [each.key for each in cosignatures(note, [site.key])] == [site.key]
    assert verify(note, log().keys)


def test_a_log_that_has_not_grown_is_cosigned_again_once_a_day(site):
    grow()
    assert ask() == 1
    pauses_over()
    assert ask() is None
    LogWitness.objects.update(cosigned_at=now() - witnesses.COSIGNED_AGAIN_AFTER)
    assert ask() == 1
    assert site.asked[1].old_size == site.asked[1].checkpoint.size
    assert site.asked[1].hashes == []


def test_a_witness_is_not_asked_again_before_its_pause_is_over(site):
    grow()
    assert ask() == 1
    grow()
    assert ask() is None
    LogWitness.objects.update(next_at=now() + witnesses.ASKED_EVERY)
    assert ask() is None
    # A clock that was ahead has left a pause that is longer than any.
    LogWitness.objects.update(next_at=now() + witnesses.LONGEST_PAUSE + timedelta(minutes=1))
    assert ask() == 1


def test_one_job_waits_at_a_time(site):
    grow()
    witnesses.look()
    witnesses.look()
    assert Job.objects.filter(kind=witnesses.KIND).count() == 1
    assert site.asked == []


def test_a_witness_that_has_cosigned_more_than_this_database_knows_is_asked_by_a_proof_from_there(site):
    grow(3)
    assert ask() == 1
    size = log().state.size
    LogWitness.objects.all().delete()
    grow()
    assert ask() == 1
    assert [asked.old_size for asked in site.asked] == [0, 0, size]
    assert status().trouble == ""


def test_what_both_witnesses_have_cosigned_is_kept_until_both_have_cosigned_more(two):
    first, second = two
    grow()
    assert ask() == 2
    both = log().state.size
    second.answer = lambda *_: Said(503, b"maintenance")
    for _ in range(2):
        grow()
        pauses_over()
        assert ask() == 1
    assert [(each.size, len(each.lines)) for each in kept()] == [(log().state.size, 1), (both, 2)]
    assert CosignedCheckpoint.objects.count() == 2
    second.answer = None
    pauses_over()
    assert ask() == 1
    # The first has cosigned this size already, and is not asked again.
    assert [(each.size, len(each.lines)) for each in kept()] == [(log().state.size, 2)]
    assert len(first.asked) == 3


def lying(site, text=None, at=None, name=None):
    """Answer with a cosignature of another text, time or name."""

    def answer(_, asked):
        moment = int(time.time()) if at is None else at
        return Said(200, cosign(text or parse(asked.note).text, name or site.key.name, site.private, moment).encode())

    return answer


@pytest.mark.parametrize(
    ("answer", "trouble", "detail"),
    [
        (lambda _: lambda *_: Said(404, b"no such log"), witnesses.UNKNOWN_LOG, "404 no such log"),
        (lambda _: lambda *_: Said(403, b""), witnesses.UNKNOWN_KEY, "403 "),
        (lambda _: lambda *_: Said(422, b""), witnesses.OTHER_HISTORY, "422 "),
        (lambda _: lambda *_: Said(500, b"a\0b"), witnesses.OTHER_ANSWER, "500 a\ufffdb"),
        (lambda _: lambda *_: Said(302, b""), witnesses.OTHER_ANSWER, "302 "),
        (lambda _: lambda *_: Said(409, b"999999\n"), witnesses.LARGER_LOG, "it has cosigned 999999 leaves"),
        (lambda _: lambda *_: Said(409, b"0\n"), witnesses.OTHER_ANSWER, "it has cosigned 0 leaves"),
        (lambda _: lambda *_: Said(409, b"1\n"), witnesses.OTHER_HISTORY, "it has cosigned 1 leaves"),
        (lambda _: lambda *_: Said(409, b"-1\n"), witnesses.OTHER_ANSWER, "409 -1"),
        (lambda _: lambda *_: Said(409, b"9" * 40), witnesses.OTHER_ANSWER, "409 9999"),
        (lambda _: lambda *_: Said(200, b""), witnesses.NO_COSIGNATURE, "an empty answer"),
        (lambda _: lambda *_: Said(200, b"\xff\xfe"), witnesses.NO_COSIGNATURE, "newline"),
        (lambda _: lambda *_: Said(200, b"x" * 200_000), witnesses.NO_COSIGNATURE, "newline"),
        (lambda site: lying(site, name="other.example"), witnesses.NO_COSIGNATURE, "other.example"),
        (lambda site: lying(site, text="muniment/x\n1\nAAAA\n"), witnesses.NO_COSIGNATURE, "is not valid"),
        (lambda site: lying(site, at=0), witnesses.NO_COSIGNATURE, "its time is 0"),
        (lambda site: lying(site, at=1 << 62), witnesses.NO_COSIGNATURE, "which is not now"),
    ],
)
def test_a_witness_that_does_not_cosign_is_told_and_nothing_is_kept(site, answer, trouble, detail):
    grow()
    site.answer = answer(site)
    assert ask() == 0
    assert status().trouble == trouble
    assert detail in status().detail
    assert status().explanation
    assert status().accuses == (trouble in {witnesses.OTHER_HISTORY, witnesses.LARGER_LOG})
    assert kept() == []
    assert len(status().detail) <= witnesses.MAX_DETAIL
    # It is asked again, and has cosigned then.
    site.answer = None
    pauses_over()
    assert ask() == 1
    assert status().trouble == ""


def test_a_lie_of_the_size_is_asked_about_once_more_and_no_longer(site):
    grow(3)
    assert ask() == 1
    grow()
    pauses_over()
    site.answer = lambda _, asked: Said(409, f"{max(1, asked.old_size - 1)}\n".encode())
    assert ask() == 0
    assert len(site.asked) == 3
    assert status().trouble == witnesses.OTHER_ANSWER


def test_each_failure_makes_the_pause_longer_up_to_an_hour(site):
    grow()
    site.answer = lambda *_: Said(500, b"")
    pauses = []
    for _ in range(12):
        before = now()
        assert ask() == 0
        pauses.append(LogWitness.objects.get().next_at - before)
        pauses_over()
    assert timedelta(seconds=10) <= pauses[0] < timedelta(seconds=15)
    assert timedelta(seconds=20) <= pauses[1] < timedelta(seconds=25)
    assert timedelta(hours=1) <= pauses[-1] < timedelta(hours=1, seconds=5)


def slowly(handler, _):
    """Send a byte of the answer now and then."""
    for _ in range(100):
        handler.wfile.write(b"H")
        handler.wfile.flush()
        time.sleep(0.05)


@pytest.mark.parametrize("answer", [lambda *_: time.sleep(2), slowly, lambda handler, _: handler.connection.close()])
def test_a_silent_witness_costs_its_deadline_and_delays_no_other(two, monkeypatch, answer):
    first, second = two
    monkeypatch.setitem(witnesses.CONNECTION, "deadline_s", 0.5)
    first.answer = answer
    grow()
    began = time.monotonic()
    assert ask() == 1
    assert time.monotonic() - began < 1.9
    assert [each.trouble for each in witnesses.statuses()] == [witnesses.SILENT, ""]
    assert second.cosigned


def test_an_answer_without_end_is_read_as_far_as_its_limit(site):
    def endless(handler, _):
        handler.wfile.write(b"HTTP/1.1 200 OK\r\n\r\n")
        for _ in range(1_000):
            handler.wfile.write(b"x" * 65_536)

    grow()
    site.answer = endless
    assert ask() == 0
    assert status().trouble == witnesses.NO_COSIGNATURE


def test_a_witness_that_answers_more_than_its_line_is_believed_for_its_line(site):
    def answer(handler, asked):
        other = cosign(parse(asked.note).text, "other.example", site.private, 5)
        send(handler, Said(200, (other + site.line(asked)).encode()))

    grow()
    site.answer = answer
    assert ask() == 1
    (only,) = kept()
    assert list(only.lines) == [site.key.text()]
    assert "other.example" not in str(only.lines)


def rewrite_log():
    """Let the database have another history of the same length, as an operator would write it."""
    with transaction.atomic():
        publisher.lock()
        raw = connection.connection
        state = public_log.state(raw)
        with connection.cursor() as cursor:
            cursor.execute(f"DELETE FROM {public_log.LEAF_TABLE}")
            cursor.execute(f"DELETE FROM {public_log.TILE_TABLE}")
            cursor.execute(f"UPDATE {public_log.STATE_TABLE} SET size = 0, frontier = %s", [b""])
        other = public_log.Log(raw)
        other.continue_at(state.sequence)
        for number in range(public_log.state(raw).size, state.size):
            other._append("company", f"company-{number}", "state", bytes(32), sequence=None)
        other.write()
        assert public_log.state(raw).size >= state.size


def test_an_operator_who_rewrites_the_history_is_refused(site):
    grow(3)
    assert ask() == 1
    before = log().state
    rewrite_log()
    after = log().state
    assert after.origin == before.origin
    assert after.root != before.root
    grow()
    pauses_over()
    assert ask() == 0
    assert status().trouble == witnesses.OTHER_HISTORY
    assert status().accuses
    assert site.cosigned[before.origin].root == before.root


def test_an_operator_who_takes_the_log_back_is_refused_until_it_continues(site):
    grow(4)
    assert ask() == 1
    size = log().state.size
    real, site.cosigned = site.cosigned, {}
    origin = log().state.origin
    site.cosigned[origin] = real[origin]._replace(size=size + 5)
    grow()
    pauses_over()
    assert ask() == 0
    assert status().trouble == witnesses.LARGER_LOG
    assert status().detail == f"it has cosigned {size + 5} leaves"


def test_a_log_that_is_shorter_than_what_a_witness_cosigned_is_told_without_asking_and_the_others_are_asked(site):
    grow(4)
    assert ask() == 1
    size = log().state.size
    LogWitness.objects.update(size=size + 2)
    site.asked.clear()
    pauses_over()
    assert ask() == 0
    assert site.asked == []
    assert (status().trouble, status().detail) == (witnesses.LARGER_LOG, f"it has cosigned {size + 2} leaves")
    assert status().accuses
    assert LogWitness.objects.get().next_at > now(), "it is not looked at again at once"


def test_after_a_rotation_the_note_has_both_signatures(site):
    grow()
    former = log().keys[0]
    signed_log.rotate_key()
    assert ask() == 1
    newest = log().keys[0]
    assert newest != former
    assert len(verify(site.asked[0].note, [former, newest]).keys) == 2


def test_a_log_that_begins_again_is_another_log_to_the_witness(site):
    grow()
    assert ask() == 1
    first = log().state.origin
    with transaction.atomic():
        publisher.lock()
        public_log.begin_again(connection.connection)
        publisher.continue_log()
    assert log().state.origin != first
    assert status().size == 0
    assert status().cosigned_at is None
    pauses_over()
    assert ask() == 1
    assert site.asked[1].old_size == 0
    assert set(site.cosigned) == {first, log().state.origin}
    assert CosignedCheckpoint.objects.count() == 1


def test_a_registry_that_cannot_sign_says_so_and_asks_no_witness(site):
    grow()
    LogKey.objects.update(sealed="lost")
    assert ask() == 0
    assert site.asked == []
    assert status().trouble == witnesses.NOT_SIGNED
    assert LogWitness.objects.get().next_at > now()


def test_cosignatures_of_a_root_that_was_rewritten_are_dropped(site):
    grow(2)
    assert ask() == 1
    rewrite_log()
    site.cosigned = {}
    LogWitness.objects.all().delete()
    CosignedCheckpoint.objects.update(size=log().state.size)
    assert ask() == 1
    (only,) = kept()
    assert only.root == log().state.root
    assert len(only.lines) == 1


def test_only_so_many_checkpoints_are_kept(site, monkeypatch):
    monkeypatch.setattr(witnesses, "MAX_KEPT", 3)
    grow(1)
    origin = log().state.origin
    for size in range(1, 8):
        CosignedCheckpoint.objects.create(origin=origin, size=size, root=bytes(32), signatures={f"w{size}": {}})
    witnesses._forget(origin)
    assert sorted(CosignedCheckpoint.objects.values_list("size", flat=True)) == [5, 6, 7]
