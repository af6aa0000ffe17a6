"""Writers of one SQLite database queue instead of failing."""

import fcntl
import sqlite3
import threading
from pathlib import Path

import pytest
from django.db import connection, transaction
from django.db.utils import OperationalError

from muniment.accounts.models import Account
from muniment.store.sqlite import base
from muniment.store.sqlite.base import WriteLock, write_lock_of
from services.ports import wait_until

pytestmark = pytest.mark.sqlite  # the gate is SQLite's


def test_a_writer_waits_for_another_process_and_says_so_when_it_takes_too_long(tmp_path: Path, monkeypatch):
    # A lock through a second opening of the file excludes the gate just as another process does.
    path = tmp_path / "gate"
    with path.open("w") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        gate = WriteLock(str(path))
        monkeypatch.setattr(base, "WAIT_S", 0.05)
        with pytest.raises(OperationalError, match="for other writers"):
            gate.enter()
        monkeypatch.setattr(base, "WAIT_S", 20.0)
        waiting = threading.Thread(target=gate.enter)
        waiting.start()
        assert waiting.is_alive()
        fcntl.flock(other, fcntl.LOCK_UN)
        waiting.join(60)
        assert not waiting.is_alive()
        with pytest.raises(BlockingIOError):
            fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
        gate.leave()


def test_a_thread_that_would_deadlock_on_itself_gets_an_error(tmp_path: Path):
    gate = WriteLock(str(tmp_path / "gate"))
    gate.enter()
    with pytest.raises(OperationalError, match="another connection"):
        gate.enter()
    gate.leave()


@pytest.mark.parametrize("is_same_process", [True, False])
def test_a_writer_of_many_transactions_lets_those_who_wait_go_first(tmp_path: Path, monkeypatch, is_same_process):
    busy = WriteLock(str(tmp_path / "gate"))
    # Another object has files of its own, as another process does.
    other = busy if is_same_process else WriteLock(str(tmp_path / "gate"))
    written = threading.Event()

    def write() -> None:
        other.enter()
        written.set()
        other.leave()

    busy.enter()
    assert not busy.give_way()
    thread = threading.Thread(target=write)
    thread.start()
    monkeypatch.setattr(base, "GIVE_WAY_S", 0.0)
    wait_until(busy.give_way, within_s=60, what="the other writer's wait")
    assert not written.is_set()
    monkeypatch.setattr(base, "GIVE_WAY_S", 60.0)
    busy.leave()
    busy.give_way()
    assert written.wait(60)
    thread.join(60)
    assert not busy.give_way()


def test_a_writer_whose_wait_cannot_be_told_waits_all_the_same(tmp_path: Path):
    (tmp_path / "gate-waiting").mkdir()
    busy, other = WriteLock(str(tmp_path / "gate")), WriteLock(str(tmp_path / "gate"))
    busy.enter()
    thread = threading.Thread(target=lambda: (other.enter(), other.leave()))
    thread.start()
    assert not busy.give_way()
    busy.leave()
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.django_db(transaction=True)
def test_sixteen_threads_write_without_one_failing():
    failures = []

    def write(name: int) -> None:
        try:
            for turn in range(5):
                with transaction.atomic():
                    Account.objects.create_user(f"writer{name}-{turn}@example.org")
        except Exception as error:  # noqa: BLE001 - whatever it is, the test tells it
            failures.append(error)
        finally:
            connection.close()

    threads = [threading.Thread(target=write, args=(name,)) for name in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert failures == []
    assert Account.objects.count() == 80


@pytest.mark.django_db(transaction=True)
def test_the_gate_is_open_again_after_a_rollback_and_after_a_lost_connection():
    gate = write_lock_of(str(connection.settings_dict["NAME"]))
    for break_off in (lambda: None, connection.close):
        with pytest.raises(RuntimeError), transaction.atomic():  # noqa: PT012 - the two together are what is tested
            break_off()
            raise RuntimeError
        gate.enter()
        gate.leave()


@pytest.mark.django_db(transaction=True)
def test_the_database_keeps_its_promises():
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert cursor.execute("PRAGMA synchronous").fetchone() == (2,)
        assert cursor.execute("PRAGMA foreign_keys").fetchone() == (1,)
        assert cursor.execute("PRAGMA busy_timeout").fetchone() == (10000,)
    assert isinstance(connection.connection, sqlite3.Connection)


@pytest.mark.django_db
def test_a_database_that_is_gone_is_an_error_and_not_a_new_registry(tmp_path: Path):
    folder = tmp_path / "data"
    settings = {**connection.settings_dict, "NAME": folder / "registry.sqlite3"}
    first = base.DatabaseWrapper(settings)
    first.ensure_connection()
    first.close()
    folder.rename(tmp_path / "unmounted")
    with pytest.raises(OperationalError, match="is gone"):
        base.DatabaseWrapper(settings).ensure_connection()
    assert not folder.exists()
    (tmp_path / "unmounted").rename(folder)
    again = base.DatabaseWrapper(settings)
    again.ensure_connection()
    again.close()
