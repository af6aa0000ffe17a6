"""Connections opened on a read-only disk give way, all at one moment, when the disk can be written."""

import gc
import itertools
import os
import shutil
import sqlite3
import threading
import traceback
from contextlib import closing
from types import SimpleNamespace

import pytest
from django.db import OperationalError, ProgrammingError, connections, transaction

from make.published import Publisher, company
from make.queries import companies_by
from muniment.registry.models import Person
from muniment.store import reader as reader_module
from muniment.store.database import handles, reading
from muniment.store.database.retry import release_connections
from muniment.store.reader import Reader


@pytest.fixture
def file(tmp_path):
    """Return a file as a killed process leaves it: with a write-ahead log and its shared memory."""
    publisher = Publisher(tmp_path / "published.sqlite3")
    publisher.publish(company(1))
    (tmp_path / "killed").mkdir()
    for part in tmp_path.glob("published.sqlite3*"):
        shutil.copy(part, tmp_path / "killed")
    publisher.close()
    return tmp_path / "killed" / "published.sqlite3"


@pytest.fixture
def disk(file, monkeypatch):
    """Make connections as on a read-only disk, until undone."""
    access = os.access

    def open_read_only(name, query="mode=rwc", **options):
        return sqlite3.connect(
            handles.address(name, f"{query}&readonly_shm=1"), uri=True, factory=handles.Connection, **options
        )

    monkeypatch.setattr(reader_module, "THAW_S", 0.0)
    with monkeypatch.context() as patched:
        patched.setattr(os, "access", lambda name, mode: str(name) != str(file) and access(name, mode))
        patched.setattr(reading, "open_counted", open_read_only)
        yield patched


def write(file):
    with closing(sqlite3.connect(file, timeout=1)) as own:
        own.execute("CREATE TABLE tried (n)")


def read(reader):
    return len(reader.companies(companies_by()).items)


def test_a_reader_that_began_on_a_read_only_disk_lets_the_process_write_when_the_disk_can_be_written(file, disk):
    reader = Reader(file)
    reader.tick()
    assert (read(reader), reader.pool.submit(read, reader).result()) == (1, 1)
    disk.undo()
    with pytest.raises(sqlite3.OperationalError, match="readonly"):
        write(file)
    reader.tick()
    write(file)
    assert (read(reader), reader.pool.submit(read, reader).result()) == (1, 1)
    assert not handles.is_read_only(file)
    reader.close()


def test_a_connection_in_use_is_not_closed_and_the_reader_tries_again(file, disk, monkeypatch):
    monkeypatch.setattr(handles, "WAIT_S", 0.01)
    reader = Reader(file)
    reader.tick()
    begun, end = threading.Event(), threading.Event()

    def read_slowly():
        with reader.snapshot() as (own, _):
            begun.set()
            assert end.wait(60)
            return own.execute("SELECT count(*) FROM published_document").fetchone()[0]

    slow = reader.pool.submit(read_slowly)
    assert begun.wait(60)
    disk.undo()
    reader.tick()
    assert handles.is_read_only(file)
    assert read(reader) == 1
    end.set()
    assert slow.result(60) == 1
    reader.tick()
    assert not handles.is_read_only(file)
    write(file)
    reader.close()


def test_a_closed_connection_whose_statement_is_not_finalized_counts_and_the_reader_tries_again(file, disk):
    reader = Reader(file)
    reader.tick()
    other = handles.open_counted(file, "mode=rwc&readonly_shm=1")
    unfinished = other.execute("SELECT name FROM sqlite_master")
    other.close()
    disk.undo()
    reader.tick()
    assert handles.is_read_only(file)
    del unfinished
    reader.tick()
    assert not handles.is_read_only(file)
    write(file)
    reader.close()


def test_a_file_that_another_process_is_writing_can_be_written(file):
    with closing(sqlite3.connect(file)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert handles.can_write(file)


def test_a_file_that_stays_read_only_is_tried_ever_more_rarely_but_twice_a_minute(file, disk, monkeypatch):
    tried, clock = [], SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(reader_module, "time", clock)
    monkeypatch.setattr(reader_module, "THAW_S", 0.5)
    reader = Reader(file)
    reader.tick()
    disk.undo()
    monkeypatch.setattr(handles, "can_write", lambda _path: bool(tried.append(clock.now)))
    for _ in range(250):  # two minutes
        clock.now += 0.5
        reader.tick()
    waits = [later - earlier for earlier, later in itertools.pairwise(tried)]
    assert waits[:7] == [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 30.0]
    assert set(waits[7:]) == {30.0}
    reader.close()


@pytest.mark.parametrize("is_frozen", [False, True])
def test_statements_that_only_a_cycle_refers_to_are_finalized(file, disk, is_frozen):
    gc.unfreeze()
    reader = Reader(file)
    reader.tick()
    other = handles.open_counted(file, "mode=rwc&readonly_shm=1")
    cycle = [other.execute("SELECT name FROM sqlite_master")]
    cycle.append(cycle)
    other.close()
    if is_frozen:
        gc.freeze()
    del other, cycle
    disk.undo()
    reader.tick()
    assert not handles.is_read_only(file)
    assert (gc.get_freeze_count() > 0) is is_frozen
    gc.unfreeze()
    write(file)
    reader.close()


@pytest.mark.sqlite  # of which alone the connections share memory
@pytest.mark.django_db(transaction=True)
def test_an_error_that_is_kept_keeps_no_connection_open_that_could_not_write(monkeypatch):
    connection = connections["default"]
    connection.close()
    monkeypatch.setattr(connection, "is_in_memory_db", lambda: False)
    monkeypatch.setattr(handles, "_look_at", handles.note_read_only)
    connection.ensure_connection()
    assert connection.close_at == 0.0
    with connection.cursor() as cursor:
        cursor.execute("PRAGMA query_only = ON")
    with pytest.raises(OperationalError) as kept, transaction.atomic():
        Person.objects.create(slug="a", name="A")
    failed = [frame.f_locals["self"] for frame, _ in traceback.walk_tb(kept.tb) if frame.f_code.co_name == "execute"]
    connection.close()
    for each in failed:
        with pytest.raises((ProgrammingError, sqlite3.ProgrammingError), match="closed cursor"):
            each.fetchone()
    assert failed


def test_while_all_connections_are_closed_no_other_is_opened(file):
    opened = []
    with handles.alone(file) as is_alone:
        other = threading.Thread(target=lambda: opened.append(handles.open_counted(file, check_same_thread=False)))
        other.start()
        other.join(0.05)
        assert (is_alone, opened) == (True, [])
    other.join(60)
    with closing(opened[0]):
        assert opened[0].execute("SELECT count(*) FROM published_document").fetchone() == (1,)


@pytest.mark.django_db
def test_a_connection_of_django_that_could_not_write_is_not_kept(monkeypatch):
    closed, connection = [], connections["default"]
    with monkeypatch.context() as patched:
        patched.setattr(connection, "close", lambda: closed.append(True))
        release_connections()
        patched.setattr(connection, "close_at", 0.0)
        release_connections()
        assert closed == [], "a transaction is open"
        patched.setattr(connection, "in_atomic_block", False)
        release_connections()
    assert closed == [True]
