"""What an error of a disk, of SQLite or of a store means, and what a client is told."""

import contextlib
import errno
import logging
import sqlite3
from contextlib import closing

import obstore
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction
from obstore.exceptions import BaseError

from muniment.accounts.models import Account
from muniment.documents.storage import Storage, StoreFault
from muniment.kernel.problems import Internal, NotFound, Unavailable
from muniment.outbound.deadlines import StillSilent
from muniment.store.database import faults, handles, reading, retry
from muniment.store.database.faults import DAMAGED, FAILED, FULL, READ_ONLY, UNOPENED, disk_fault
from muniment.store.database.retry import with_retry


def of_sqlite(code, kind=sqlite3.OperationalError):
    error = kind("told by SQLite")
    error.sqlite_errorcode = code
    return error


def wrapped(error):
    """Return *error* as Django raises it."""
    made = OperationalError("told by Django")
    made.__cause__ = error
    return made


@pytest.mark.parametrize(
    ("error", "fault"),
    [
        (wrapped(of_sqlite(sqlite3.SQLITE_FULL)), FULL),
        (wrapped(of_sqlite(sqlite3.SQLITE_READONLY_DBMOVED)), READ_ONLY),
        (of_sqlite(sqlite3.SQLITE_IOERR_SHMSIZE), FAILED),
        (of_sqlite(sqlite3.SQLITE_CANTOPEN), UNOPENED),
        (of_sqlite(sqlite3.SQLITE_NOTADB, sqlite3.DatabaseError), DAMAGED),
        (of_sqlite(sqlite3.SQLITE_BUSY), ""),
        (OSError(errno.ENOSPC, "No space left on device"), FULL),
        (OSError(errno.EROFS, "Read-only file system"), READ_ONLY),
        (wrapped(OSError(errno.EDQUOT, "Quota exceeded")), FULL),
        (FileNotFoundError(errno.ENOENT, "No such file"), ""),
        (obstore.exceptions.GenericError("cannot write: (os error 28)"), FULL),
        (obstore.exceptions.GenericError("cannot write: (os error 2)"), ""),
        (ValueError("of no disk (os error 28)"), ""),
        (None, ""),
    ],
)
def test_an_error_tells_the_fault_of_a_disk(error, fault):
    assert disk_fault(error) == fault


def test_a_probe_finds_a_folder_that_can_be_written_and_leaves_nothing(tmp_path):
    assert faults.fault_of(tmp_path) == ""
    assert list(tmp_path.iterdir()) == []
    assert "No such file" in faults.fault_of(tmp_path / "gone")


@pytest.mark.parametrize(("number", "fault"), [(errno.ENOSPC, FULL), (errno.EROFS, READ_ONLY), (errno.EIO, FAILED)])
def test_a_probe_tells_why_a_folder_cannot_be_written(tmp_path, monkeypatch, number, fault):
    def refuse(*_):
        raise OSError(number, "refused")

    monkeypatch.setattr(faults.os, "fsync", refuse)
    assert faults.fault_of(tmp_path) == fault
    assert list(tmp_path.iterdir()) == []


@pytest.mark.sqlite
@pytest.mark.django_db(transaction=True)
class TestWithRetry:
    """On SQLite; what a PostgreSQL server's disk does, it tells itself."""

    def test_a_full_disk_is_answered_with_its_reason(self):
        def work():
            raise wrapped(of_sqlite(sqlite3.SQLITE_FULL))

        with pytest.raises(Unavailable, match="Nothing was saved: the disk is full") as told:
            with_retry(work)
        assert int(told.value.headers["Retry-After"]) >= 1

    def test_a_symptom_of_a_full_disk_is_called_by_its_cause(self, monkeypatch):
        monkeypatch.setattr(retry, "fault_of", lambda _: FULL)

        def work():
            raise wrapped(of_sqlite(sqlite3.SQLITE_IOERR_SHMSIZE))

        with pytest.raises(Unavailable, match="Nothing was saved: the disk is full"):
            with_retry(work)

    def test_a_file_opened_on_a_read_only_disk_is_opened_again_once_the_disk_can_be_written(self):
        tries = []

        def work():
            tries.append(connection.connection)
            if len(tries) == 1:
                connection.ensure_connection()
                raise wrapped(of_sqlite(sqlite3.SQLITE_READONLY))
            return "saved"

        assert with_retry(work) == "saved"
        assert len(tries) == 2

    def test_what_committed_before_the_fault_is_not_done_again(self):
        tries = []

        def work():
            tries.append(1)
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute("SELECT 1")
            raise wrapped(of_sqlite(sqlite3.SQLITE_READONLY))

        with pytest.raises(Unavailable):
            with_retry(work)
        assert tries == [1]

    def test_a_file_beside_the_database_is_told_too(self):
        def work():
            raise OSError(errno.ENOSPC, "No space left on device")

        with pytest.raises(Unavailable, match="the disk is full"):
            with_retry(work)

    def test_a_failing_disk_leaves_the_outcome_open(self):
        def work():
            raise wrapped(of_sqlite(sqlite3.SQLITE_IOERR_FSYNC))

        with pytest.raises(Unavailable, match="may or may not have been saved"):
            with_retry(work)

    @pytest.mark.parametrize("error", [NotFound("No.", "Look."), KeyError("x"), DatabaseError("of another kind")])
    def test_other_errors_stay_as_they_are(self, error):
        def work():
            raise error

        with pytest.raises(type(error)) as told:
            with_retry(work)
        assert told.value is error

    @pytest.mark.parametrize(
        "error",
        [OperationalError("database is locked: waited 10 seconds"), wrapped(of_sqlite(sqlite3.SQLITE_FULL))],
        ids=["given up", "disk full"],
    )
    @pytest.mark.parametrize("is_in_transaction", [False, True], ids=["autocommit", "transaction"])
    def test_what_an_earlier_change_of_the_operation_saved_is_not_called_unsaved(self, error, is_in_transaction):
        account = Account.objects.create_user("first@example.org")

        def work():
            with transaction.atomic() if is_in_transaction else contextlib.nullcontext():
                Account.objects.filter(pk=account.pk).update(name="Changed")
            raise error

        with pytest.raises(Unavailable, match="may or may not have been saved"):
            with_retry(work)
        account.refresh_from_db()
        assert account.name == "Changed"

    def test_a_statement_that_sqlite_refuses_has_saved_nothing(self):
        account = Account.objects.create_user("first@example.org")
        connection.ensure_connection()

        def work():
            with connection.execute_wrapper(refuse):
                Account.objects.filter(pk=account.pk).update(name="Changed")

        def refuse(*_):
            raise OperationalError("database is locked")

        with pytest.raises(Unavailable, match="nothing was saved"):
            with_retry(work)


@pytest.fixture
def stopped(tmp_path):
    """Return a database file after a clean stop."""
    path = tmp_path / "kept file.sqlite3"
    with sqlite3.connect(path) as file:
        file.execute("PRAGMA journal_mode=WAL")
        file.execute("CREATE TABLE kept AS SELECT 7 AS value")
    file.close()
    return path


@pytest.fixture
def shut(monkeypatch):
    """Have SQLite open files as on a full disk: without shared memory only."""
    connect = sqlite3.connect

    def open_as_on_a_full_disk(address, **options):
        if "immutable" not in str(address):
            raise of_sqlite(sqlite3.SQLITE_IOERR_SHMSIZE)
        return connect(address, **options)

    monkeypatch.setattr(reading.sqlite3, "connect", open_as_on_a_full_disk)
    monkeypatch.setattr(reading, "fault_of", lambda _: FULL)


def test_a_file_is_read_as_it_is_where_no_log_can_be_made(stopped, shut):
    with closing(reading.open_for_reading(stopped)) as connection:
        assert connection.execute("SELECT value FROM kept").fetchone() == (7,)
        assert handles.is_read_only(stopped)


def test_a_file_with_changes_in_its_log_is_never_read_without_them(stopped, shut):
    stopped.with_name(f"{stopped.name}-wal").write_bytes(b"changes")
    with pytest.raises(sqlite3.OperationalError):
        reading.open_for_reading(stopped)


def test_a_file_is_not_frozen_while_its_disk_can_be_written(stopped, shut, monkeypatch):
    monkeypatch.setattr(reading, "fault_of", lambda _: "")
    with pytest.raises(sqlite3.OperationalError):
        reading.open_for_reading(stopped)


def test_a_file_on_a_disk_that_works_is_not_frozen(stopped):
    with closing(reading.open_for_reading(stopped)):
        assert not handles.is_read_only(stopped)


@pytest.mark.django_db(transaction=True)
def test_a_document_store_that_fails_is_named_and_a_missing_file_is_not_its_fault(tmp_path):
    def work():
        raise BaseError("Generic S3 error: it does not answer\n\nDebug source: key")

    with pytest.raises(Unavailable, match="The document store does not answer") as told:
        with_retry(work)
    assert int(told.value.headers["Retry-After"]) >= 1
    assert isinstance(faults.unexpected(StillSilent("the document store does not answer"), "r-1"), faults.StoreAway)
    assert isinstance(faults.unexpected(StoreFault("drive: no such server"), "r-1"), faults.StoreAway)
    with pytest.raises(FileNotFoundError) as missing:
        Storage(tmp_path / "blobs").stream("gone")
    assert isinstance(faults.unexpected(missing.value, "r-1"), Internal)


def test_the_trace_of_damage_is_logged_at_times_and_that_of_other_errors_always(caplog, monkeypatch):
    monkeypatch.setattr(faults, "_traced_at", float("-inf"))
    damage = sqlite3.DatabaseError("database disk image is malformed")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    for error in (damage, damage, ValueError("x"), ValueError("x")):
        faults.log_failure(logging.getLogger("tests"), error, "request %s failed", "r-1")
    assert [record.exc_info is not None for record in caplog.records] == [True, False, True, True]
    assert caplog.records[1].getMessage() == "request r-1 failed: database disk image is malformed"
