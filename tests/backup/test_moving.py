"""An instance is moved only while nothing else uses its database."""

import sqlite3

import psycopg
import pytest
from django.db import OperationalError, connections

from muniment.backup import moving
from muniment.config import Config
from muniment.kernel.problems import Conflict


@pytest.fixture(autouse=True)
def _no_source_stays(django_db_blocker):
    with django_db_blocker.unblock():
        yield
    connections[moving.SOURCE].close()
    del connections[moving.SOURCE], connections.databases[moving.SOURCE]


def test_a_sqlite_file_that_another_process_has_open_is_not_moved(tmp_path):
    config = Config({}, data=tmp_path)
    other = sqlite3.connect(config.database_file, isolation_level=None)
    other.execute("CREATE TABLE django_migrations (id)")
    other.execute("BEGIN EXCLUSIVE")
    moving._connect(config)
    connections.databases[moving.SOURCE]["OPTIONS"]["timeout"] = 0.1
    with pytest.raises(Conflict):
        moving._require_exclusive()
    other.execute("ROLLBACK")
    other.close()
    moving._require_exclusive()


def test_a_file_that_is_no_instance_is_an_error_of_the_database(tmp_path):
    config = Config({}, data=tmp_path)
    sqlite3.connect(config.database_file).close()
    moving._connect(config)
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
