"""Fixtures of the tables: their follower over a small published file, and a way to read them."""

import sqlite3
from contextlib import closing

import pytest

from muniment.schema.objects import registry_schema
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables


@pytest.fixture
def tables(reader):
    made = Tables(reader.path.with_name(FILE_NAME), reader, registry_schema("USD"))
    reader.statements.use(made.form)
    yield made
    made.close()


@pytest.fixture
def rows(tables):
    """Return what a statement finds in the tables, which have followed before."""

    def found(sql, *values):
        with closing(sqlite3.connect(tables.path)) as own:
            return own.execute(sql, values).fetchall()

    return found
