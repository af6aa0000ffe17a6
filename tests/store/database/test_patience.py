"""A request waits for the database no longer than its limit, and hears what became of its change."""

import asyncio
import threading
import time

import psycopg
import pytest
from django.db import OperationalError, connection, transaction

from muniment.accounts.models import Account
from muniment.kernel import fairness
from muniment.kernel.fairness import Holder
from muniment.kernel.problems import Unavailable
from muniment.server.app.threads import SPARES, Bridge
from muniment.store.database import commits, patience
from muniment.store.database.retry import with_retry
from muniment.store.postgresql.connection import EndingConnection, SilentServer
from muniment.store.sqlite.base import oldest_wait_s, write_lock_of
from services.ports import wait_until
from services.silent import stopped

pytestmark = pytest.mark.django_db(transaction=True)
ENOUGH_S = 15.0
"""A wait without a limit would take as long as the other session lives, and on SQLite 20 s."""


def create(email="made@example.org"):
    with transaction.atomic():
        Account.objects.create_user(email)


def check_refused(operation):
    given_up = commits.given_up
    began = time.monotonic()
    message = "Another change is in progress; nothing was saved"
    with pytest.raises(Unavailable, match=message) as refused, patience.within(0.2):
        with_retry(operation)
    assert time.monotonic() - began < ENOUGH_S
    assert int(refused.value.headers["Retry-After"]) >= 1
    assert commits.given_up == given_up + 1
    return refused.value


@pytest.mark.sqlite
def test_a_change_that_waits_for_other_writers_is_refused_in_time():
    path = str(connection.settings_dict["NAME"])
    holds, ends = threading.Event(), threading.Event()

    def write():
        lock = write_lock_of(path)
        lock.enter()
        holds.set()
        ends.wait(60)
        lock.leave()

    def wait():
        with pytest.raises(OperationalError, match="database is locked"), patience.within(2):
            write_lock_of(path).enter()

    other, waiting = threading.Thread(target=write), threading.Thread(target=wait)
    other.start()
    try:
        assert holds.wait(60)
        assert oldest_wait_s() == 0
        waiting.start()
        wait_until(lambda: oldest_wait_s() > 0, within_s=60, what="the age of the wait")
        check_refused(create)
    finally:
        waiting.join(60)
        ends.set()
        other.join(60)
    assert oldest_wait_s() == 0
    create()


@pytest.fixture
def other():
    """Yield another session of the same database."""
    with connection.cursor() as cursor:
        parts = cursor.connection.info
        session = psycopg.connect(host=parts.host, port=parts.port, user=parts.user, dbname=parts.dbname)
    with session:
        yield session


@pytest.mark.postgresql
def test_a_change_that_waits_for_a_lock_is_refused_in_time(other):
    account = Account.objects.create_user("held@example.org")
    other.execute("SELECT 1 FROM accounts_account WHERE id = %s FOR UPDATE", (account.pk,))

    def rename():
        with transaction.atomic():
            Account.objects.filter(pk=account.pk).update(name="Another")

    check_refused(rename)
    check_refused(lambda: Account.objects.filter(pk=account.pk).update(name="Another"))
    other.rollback()
    with patience.within(ENOUGH_S):
        with_retry(rename)
    assert Account.objects.get(pk=account.pk).name == "Another"


@pytest.mark.postgresql
def test_a_change_after_an_earlier_one_of_the_same_request_is_not_called_unsaved(other):
    account = Account.objects.create_user("held@example.org")
    other.execute("SELECT 1 FROM accounts_account WHERE id = %s FOR UPDATE", (account.pk,))

    def both():
        create("first@example.org")
        Account.objects.filter(pk=account.pk).update(name="Another")

    with pytest.raises(Unavailable, match="may or may not have been saved"), patience.within(0.2):
        with_retry(both)
    assert Account.objects.filter(email="first@example.org").exists()


@pytest.mark.postgresql
def test_a_command_waits_as_long_as_it_takes(other):
    account = Account.objects.create_user("held@example.org")
    other.execute("SELECT 1 FROM accounts_account WHERE id = %s FOR UPDATE", (account.pk,))
    name = connection.settings_dict["NAME"]

    def end():
        with psycopg.connect(other.info.dsn, autocommit=True) as watching:
            waits = "SELECT 1 FROM pg_stat_activity WHERE datname = %s AND wait_event_type = 'Lock'"
            wait_until(lambda: watching.execute(waits, (name,)).fetchone(), within_s=60, what="the wait")
        other.rollback()

    releasing = threading.Thread(target=end)
    releasing.start()
    assert Account.objects.filter(pk=account.pk).update(name="Another") == 1
    releasing.join(60)


@pytest.mark.postgresql
def test_a_silent_server_is_left_and_later_requests_do_not_wait_for_it(postgres):
    assert Account.objects.count() == 0
    with stopped(postgres.pid):
        began = time.monotonic()
        with pytest.raises(Unavailable, match="nothing was saved"), patience.within(0.2):
            with_retry(create)
        first_s = time.monotonic() - began
        assert first_s < ENOUGH_S
        assert not connection.is_usable()
    wait_until(_answers, within_s=60, what="the server to be used again")
    assert Account.objects.count() == 0


def _answers():
    connection.close()
    try:
        with patience.within(1):
            with_retry(Account.objects.count)
    except Unavailable:
        return False
    return True


@pytest.mark.postgresql
def test_a_commit_that_a_silent_server_does_not_answer_is_unknown(postgres, monkeypatch):
    from muniment.store.postgresql import connection as module

    monkeypatch.setattr(module, "COMMIT_S", 0.2)

    def work():
        with transaction.atomic():
            Account.objects.create_user("made@example.org")
            silence.__enter__()

    silence = stopped(postgres.pid)
    try:
        with pytest.raises(Unavailable, match="may or may not have been saved"):
            with_retry(work)
    finally:
        silence.__exit__(None, None, None)
    wait_until(_answers, within_s=60, what="the server to be used again")


@pytest.mark.postgresql
def test_a_connection_of_one_owner_ends_its_waits_without_asking_the_server(postgres):
    with EndingConnection.opened(postgres.url()) as own:
        own.limit_s = 0.2
        with stopped(postgres.pid), pytest.raises(SilentServer):
            own.execute("SELECT 1")
        assert own.closed
        assert own.waits_since is None


@pytest.fixture
def held(request):
    """Yield an account, and how to hold what a change of it needs: its row, and on SQLite the lock of all writers."""
    account = Account.objects.create_user("held@example.org")
    if connection.vendor == "postgresql":
        session = request.getfixturevalue("other")
        session.execute("SELECT 1 FROM accounts_account WHERE id = %s FOR UPDATE", (account.pk,))
        yield account, session.rollback
        return
    lock = write_lock_of(str(connection.settings_dict["NAME"]))
    lock.enter()
    yield account, lock.leave


def test_changes_that_wait_for_another_keep_nobody_from_reading(held, monkeypatch):
    account, release = held
    monkeypatch.setitem(connection.settings_dict, "CONN_MAX_AGE", 0)  # the threads leave no connection behind

    def rename():
        with transaction.atomic():
            Account.objects.filter(pk=account.pk).update(name="Another")

    async def run():
        bridge = Bridge()

        async def call(number, operation):
            fairness.holder.set(Holder(f"192.0.2.{number}", str(number)))
            return await bridge.call(operation)

        changes = [asyncio.create_task(call(number, rename)) for number in range(SPARES + 2)]
        # Beyond the spare threads, changes are refused early.
        ended, waiting = await asyncio.wait(changes, timeout=ENOUGH_S, return_when=asyncio.FIRST_COMPLETED)
        with pytest.raises(Unavailable, match="nothing was saved"):
            ended.pop().result()
        assert len(waiting) >= SPARES
        assert await asyncio.wait_for(call(100, Account.objects.count), ENOUGH_S) == 1
        assert sum(not change.done() for change in changes) >= SPARES, "they still wait"
        release()
        answers = await asyncio.gather(*changes, return_exceptions=True)
        assert sum(answer is None for answer in answers) >= SPARES, "the others are saved"
        bridge.close()

    asyncio.run(run())
    assert Account.objects.get(pk=account.pk).name == "Another"
