"""An instance is moved only while nothing else uses its database."""

import sqlite3

import psycopg
import pytest
from django.db import OperationalError, connections

from muniment.backup import moving
from muniment.config import Config
from muniment.documents.storage import Storage
from muniment.kernel.problems import BadRequest, Conflict
from services.s3 import S3


@pytest.fixture(autouse=True)
def _no_source_stays(django_db_blocker):
    with django_db_blocker.unblock():
        yield
    if moving.SOURCE in connections.databases:
        connections[moving.SOURCE].close()
        del connections[moving.SOURCE], connections.databases[moving.SOURCE]


def test_a_sqlite_file_that_another_process_has_open_is_not_moved(tmp_path):
    source = Config({}, data=tmp_path)
    other = sqlite3.connect(source.database_file, isolation_level=None)
    other.execute("CREATE TABLE django_migrations (id)")
    other.execute("BEGIN EXCLUSIVE")
    moving._connect(source)
    connections.databases[moving.SOURCE]["OPTIONS"]["timeout"] = 0.1
    with pytest.raises(Conflict):
        moving._require_exclusive()
    other.execute("ROLLBACK")
    other.close()
    moving._require_exclusive()


def test_a_file_that_is_no_instance_is_an_error_of_the_database(tmp_path):
    source = Config({}, data=tmp_path)
    sqlite3.connect(source.database_file).close()
    moving._connect(source)
    with pytest.raises(OperationalError, match="no such table"):
        moving._require_exclusive()


def test_a_postgresql_database_with_other_connections_is_not_moved(postgres, tmp_path):
    url = postgres.create("used")
    moving._connect(Config({}, data=tmp_path, database_url=url))
    with psycopg.connect(url) as other:
        with pytest.raises(Conflict, match="1 other connection"):
            moving._require_exclusive()
        other.close()
    connections[moving.SOURCE].close()
    moving._require_exclusive()


def test_a_new_store_that_refuses_the_key_pair_stops_the_move(tmp_path, monkeypatch):
    with S3(tmp_path / "s3") as s3:
        monkeypatch.setattr(moving, "storage", lambda: Storage(tmp_path, s3.url("wrong")))
        with pytest.raises(BadRequest, match="new document store does not work") as refusal:
            moving._require_working_store()
    assert "Nothing was moved" in refusal.value.hint
