"""Rows are inserted whatever their number, many of them by few statements."""

import sqlite3

import pytest

from muniment.store.statements import AT_ONCE, insert_rows


@pytest.fixture
def connection():
    opened = sqlite3.connect(":memory:", isolation_level=None)
    opened.execute("CREATE TABLE pair (one INTEGER, other INTEGER, third INTEGER, PRIMARY KEY (one, other))")
    yield opened
    opened.close()


@pytest.mark.parametrize("count", [0, 1, AT_ONCE - 1, AT_ONCE, AT_ONCE + 1, 3 * AT_ONCE + 7])
def test_every_row_is_inserted(connection, count):
    given = [(number, -number, 7) for number in range(count)]
    insert_rows(connection, "pair", given)
    assert connection.execute("SELECT * FROM pair ORDER BY one").fetchall() == given


def test_columns_may_be_named(connection):
    insert_rows(connection, "pair (other, one)", [(number, 2 * number) for number in range(2 * AT_ONCE)])
    stored = connection.execute("SELECT count(*), sum(one = 2 * other), count(third) FROM pair").fetchone()
    assert stored == (2 * AT_ONCE, 2 * AT_ONCE, 0)


def test_many_rows_are_few_statements(connection):
    statements = []
    connection.set_trace_callback(statements.append)
    insert_rows(connection, "pair", [(number, 0, 0) for number in range(3 * AT_ONCE + 2)])
    assert len(statements) == 3 + 2


def test_a_row_that_is_there_already_is_refused(connection):
    given = [(number, 0, 0) for number in range(2 * AT_ONCE)]
    insert_rows(connection, "pair", given)
    with pytest.raises(sqlite3.IntegrityError):
        insert_rows(connection, "pair", given)
