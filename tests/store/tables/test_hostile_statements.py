"""Two hundred hostile statements: each is refused or ends in time, and none changes anything or leads out."""

import asyncio
import hashlib

import pytest

from make.hostile_statements import ALL, BROKEN, HEAVY, ON_REAL_ROWS, REFUSED
from make.published import company
from muniment.kernel import fairness
from muniment.kernel.problems import BadRequest
from muniment.store.tables import answering, statements
from muniment.store.tables.answering import Asked


@pytest.fixture
def made(publisher, reader, tables, monkeypatch):
    monkeypatch.setattr(statements, "DEADLINE_S", 120)
    publisher.publish(*(company(number, themes=["a", "b"]) for number in range(1, 40)))
    reader.refresh()
    tables.follow()
    tables.close()
    return reader.statements


@pytest.fixture
def charged(monkeypatch):
    """Collect the milliseconds that statements are charged."""
    found = []
    monkeypatch.setattr(fairness.current().statements, "charge", lambda _, cost: found.append(cost))
    return found


def is_answered(made, sql):
    try:
        asyncio.run(made.answer(Asked(sql, {}, 1_000, 60_000), "203.0.113.1"))
    except BadRequest as refusal:
        return not (refusal.message and refusal.hint)
    return True


def content(folder):
    return {
        file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in folder.iterdir() if "shm" not in file.name
    }


def test_there_are_two_hundred():
    assert len(set(ALL)) >= 200


def test_hostile_statements_are_refused_or_end_in_time_and_change_nothing(made, tables, charged):
    asyncio.run(made.answer(Asked("SELECT 1", {}, 9, 99), "c"))
    before = content(tables.path.parent)
    assert [sql for sql in REFUSED if is_answered(made, sql)] == []
    for sql in BROKEN:
        is_answered(made, sql)
    assert max(charged) < 800
    assert content(tables.path.parent) == before
    assert asyncio.run(made.answer(Asked("SELECT count(*) FROM companies", {}, 9, 99), "c")).answered.rows == [[39]]


def test_a_statement_whose_fault_is_looked_for_changes_nothing_for_the_next_one(made, tables):
    connection = answering.open_guarded(tables.path)
    kept = ("query_only", "trusted_schema", "locking_mode", "cache_size", "hard_heap_limit", "busy_timeout")

    def of_connection():
        return [connection.execute(f"PRAGMA {name}").fetchall() for name in kept]

    def answered(sql):
        return answering.answer(connection, Asked(sql, {}, 9, 999), lambda *_: None)

    before = of_connection()
    changes = (
        "query_only = 0",
        "trusted_schema = 1",
        "locking_mode = EXCLUSIVE",
        "cache_size = -9",
        "busy_timeout = 9",
    )
    for change in (*changes, "case_sensitive_like = 1", "hard_heap_limit = 9000000"):
        # SQLite is asked again with the word EXPLAIN, which makes a statement of it.
        found = answered(f"QUERY PLAN PRAGMA {change} -- QUERY")
        assert found.message.startswith('Syntax error near "QUERY"')
    assert of_connection() == before
    assert answered("SELECT 'a' LIKE 'A'").rows == [[1]]
    connection.close()


def test_statements_that_take_much_end_by_their_limits_within_the_memory_of_their_process(made, charged):
    ended = []
    much = (*HEAVY, *ON_REAL_ROWS)
    for sql in much:
        before = made._reader._running
        is_answered(made, sql)
        running = made._reader._running
        if running is None or (before is not None and running.process is not before.process):
            ended.append(sql)  # its process was ended by the kernel, at the same time
            continue
        assert charged[-1] < 800, sql
        with open(f"/proc/{running.process.pid}/status", encoding="ascii") as status:  # noqa: PTH123 - of the system
            peak_kb = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        assert peak_kb < 128 << 10, sql
    assert len(ended) < len(much) // 2
