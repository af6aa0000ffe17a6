"""A start that cannot succeed says why in one line and ends, with one process and with two."""

import os
import re
import sqlite3

import psycopg
import pytest
from django.db import OperationalError

from muniment import config
from muniment.server.app.registry_file import refuse_unusable
from muniment.server.app.start_failure import failure_of
from muniment.server.process.exit_status import FAILED, REFUSED
from muniment.store.database.retry import is_refused
from services.ports import free_port
from services.prepared import new_instance
from services.product import run


@pytest.fixture(params=["1", "2"])
def failed_start(request):
    """Return a function that serves a folder, which must end by itself, and returns its status and its last words."""

    def serve(data, **settings):
        arguments = ("serve", "--port", str(free_port()), "--workers", request.param)
        done = run(*arguments, data=data, check=False, timeout_s=60, **settings)
        assert "Traceback" not in done.stderr, done.stderr
        lines = [line for line in done.stderr.splitlines() if "error" in line]
        # Each of two processes may have said why, before the other one's end was noticed.
        assert 1 <= len(lines) <= int(request.param), done.stderr
        others = [line for line in done.stderr.splitlines() if "py.warnings" not in line]  # on for tests only
        assert len(others) <= 7, done.stderr
        return done.returncode, lines[0]

    return serve


def library(folder, monkeypatch, **files):
    """Put modules of libraries before the installed ones."""
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    monkeypatch.setenv("PYTHONPATH", str(folder))


@pytest.mark.whole(keeps=1)
def test_a_library_of_another_version_is_named_with_the_versions_that_work(failed_start, tmp_path, monkeypatch):
    library(tmp_path, monkeypatch, nh3="def clean(text): return text\n")
    status, line = failed_start(tmp_path / "data")
    assert status == FAILED
    assert "module 'nh3' has no attribute 'Cleaner'. Installed is nh3 " in line
    assert ". This version needs nh3" in line


def test_a_library_without_a_module_is_named_by_every_command(failed_start, tmp_path, monkeypatch):
    library(tmp_path, monkeypatch, uvicorn="")
    status, line = failed_start(tmp_path / "data")
    assert status == FAILED
    assert "A library is missing or of another version: No module named 'uvicorn." in line
    assert "This version needs uvicorn==" in line


@pytest.mark.parametrize("content", [b"", b" \n", bytes(range(128, 168))])
def test_a_damaged_key_file_is_named(failed_start, tmp_path, content):
    data = new_instance(tmp_path / "data")
    (data / "keys" / "django.key").write_bytes(content)
    status, line = failed_start(data)
    assert status == REFUSED
    assert f"The key file {data}/keys/django.key is empty or damaged" in line


@pytest.mark.whole(keeps=1)
def test_a_file_where_the_folder_of_keys_belongs_is_named(failed_start, tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "keys").touch()
    status, line = failed_start(tmp_path / "data")
    assert status == FAILED
    assert f"{tmp_path}/data/keys" in line


@pytest.mark.postgresql
def test_a_database_that_is_not_there_is_not_waited_for(failed_start, postgres, tmp_path):
    status, line = failed_start(tmp_path / "data", database_url=postgres.url("never_made"))
    assert status == FAILED
    assert re.search(r"The database refuses this process: .*FATAL: +database .* does not exist", line)


@pytest.mark.parametrize(
    ("words", "is_lasting"),
    [
        ('FATAL:  password authentication failed for user "muniment"', True),
        ('FATAL:  no pg_hba.conf entry for host "10.1.2.3", user "muniment", database "x", no encryption', True),
        ('FATAL:  role "muniment" does not exist', True),
        ('FATAL:  role "muniment" is not permitted to log in', True),
        ('FATAL:  permission denied for database "x"', True),
        ("FATAL:  the database system is starting up", False),
        ("FATAL:  sorry, too many clients already", False),
        ("Connection refused\n\tIs the server running on that host and accepting TCP/IP connections?", False),
        ("failed to resolve host 'db.example': [Errno -2] Name or service not known", False),
    ],
)
def test_only_a_refusal_of_the_database_lasts(words, is_lasting):
    assert is_refused(OperationalError(f"connection failed: {words}")) is is_lasting


@pytest.mark.parametrize(
    ("cause", "is_lasting"),
    [
        (psycopg.errors.InsufficientPrivilege(), True),
        (psycopg.errors.InvalidPassword(), True),
        (psycopg.errors.InvalidCatalogName(), True),
        (psycopg.errors.AdminShutdown(), False),
        (psycopg.errors.TooManyConnections(), False),
        (psycopg.errors.SerializationFailure(), False),
    ],
)
def test_a_state_of_the_database_says_whether_a_refusal_lasts(cause, is_lasting):
    error = OperationalError("it said no")
    error.__cause__ = cause
    assert is_refused(error) is is_lasting


@pytest.mark.sqlite
@pytest.mark.parametrize("name", ["muniment.sqlite3", "keys", "keys/django.key"])
def test_a_file_of_another_user_is_named(tmp_path, monkeypatch, name):
    data = new_instance(tmp_path / "data")
    access = os.access
    monkeypatch.setattr(os, "access", lambda path, mode: path != data / name and access(path, mode))
    told = refuse_unusable(config.Config(data=data, database_url=""))
    me = os.geteuid()
    assert told == f"This user ({me}) cannot read and write {data / name}, which belongs to user {me}."


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (PermissionError(13, "Permission denied", "/data/x"), "Cannot start: Permission denied: /data/x"),
        (
            ZeroDivisionError("a\nb"),
            "Cannot start: ZeroDivisionError: a. With MUNIMENT_LOG_LEVEL=debug, the log",
        ),
        (KeyError(), "Cannot start: KeyError: KeyError. With"),
        (sqlite3.OperationalError("x" * 1000), "x" * 400 + ". With"),
        (OperationalError("postgresql://a:hidden@b/c"), "The database refuses this process: postgresql://a:***@b/c"),
    ],
)
def test_a_failure_is_one_line_without_secrets(error, said):
    failure = failure_of(error)
    assert said in failure.reason
    assert "\n" not in failure.reason
    assert failure.status == FAILED


def test_the_trace_of_a_failed_start_is_logged_on_request(tmp_path):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "keys").touch()
    arguments = ("serve", "--port", str(free_port()))
    done = run(*arguments, data=tmp_path / "data", check=False, timeout_s=60, log_level="debug")
    assert done.returncode == FAILED
    assert "Traceback" in done.stderr
