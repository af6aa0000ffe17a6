"""The SQL statements that the product executes, with the work that each took in the database."""

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final
from unittest import mock

from django.db import connection, transaction

from muniment.store.database import handles

STEP: Final = 10
"""Instructions between two counts; with fewer, counting itself takes too long."""
_COSTS: Final = {
    "enable_seqscan": "off",
    "seq_page_cost": 0,
    "random_page_cost": 0,
    "cpu_tuple_cost": 1,
    "cpu_index_tuple_cost": 1,
}
EXAMPLES: Final = 3
"""Executions of a statement whose plans are read."""
LITERALS: Final = re.compile(r"[xX]?'(?:[^']|'')*'|(?<![\w\"])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?\b|\bNULL\b")
_LISTS: Final = re.compile(r"\(\s*\?(?:\s*,\s*\?)*\s*\)(?:\s*,\s*\(\s*\?(?:\s*,\s*\?)*\s*\))*")
_SAVEPOINTS: Final = re.compile(r"SAVEPOINT \S+")
_WITHOUT_A_PLAN: Final = ("BEGIN", "COMMIT", "ROLLBACK", "SAVEPOINT", "RELEASE", "PRAGMA", "CREATE", "DROP", "ALTER")


def form_of(statement: str) -> str:
    """Return the statement without its values, so that executions with other values are the same statement."""
    text = LITERALS.sub("?", statement)
    text = _SAVEPOINTS.sub("SAVEPOINT", text)
    return " ".join(_LISTS.sub("(?)", text).split())


class Executed:
    """
    The executions of one statement.

    Args:
        example: the statement with the values of its dearest execution.

    Its steps are the instructions of SQLite's virtual machine: a measure of the rows that were visited, and the same on
    every machine.
    """

    def __init__(self, example: str) -> None:
        self.example = example
        self.most_steps = 0
        self.all_steps = 0


class _Running:
    """The statement that a connection executes now."""

    def __init__(self, executed: dict[str, Executed]) -> None:
        self._executed = executed
        self._sql = ""
        self._steps = 0

    def begin(self, sql: str) -> None:
        if sql.startswith("--"):
            return  # a statement of the full-text index, inside the one that uses it
        self.end()
        if not sql.startswith(_WITHOUT_A_PLAN):
            self._sql = sql

    def step(self) -> int:
        self._steps += STEP
        return 0

    def end(self) -> None:
        if self._sql:
            found = self._executed.setdefault(form_of(self._sql), Executed(self._sql))
            found.all_steps += self._steps
            if self._steps > found.most_steps:
                found.most_steps, found.example = self._steps, self._sql
        self._sql, self._steps = "", 0


@contextmanager
def executed_on_sqlite() -> Iterator[dict[str, Executed]]:
    """Record what every connection of this process to a SQLite file executes, by the statements' forms."""
    executed: dict[str, Executed] = {}
    running: list[tuple[sqlite3.Connection, _Running]] = []

    def follow(opened: sqlite3.Connection) -> None:
        one = _Running(executed)
        running.append((opened, one))
        opened.set_trace_callback(one.begin)
        opened.set_progress_handler(one.step, STEP)

    open_first = handles.Connection.__init__

    def open_and_follow(self: handles.Connection, *arguments: Any, **options: Any) -> None:
        open_first(self, *arguments, **options)
        follow(self)

    for opened in list(handles._open):
        follow(opened)
    with mock.patch.object(handles.Connection, "__init__", open_and_follow):
        try:
            yield executed
        finally:
            for opened, one in running:
                one.end()
                try:
                    opened.set_trace_callback(None)
                    opened.set_progress_handler(None, STEP)
                except sqlite3.ProgrammingError:
                    continue  # it is closed


@contextmanager
def executed_on_postgresql() -> Iterator[dict[str, list[tuple[str, Any]]]]:
    """Record the questions to Django's database, with the values of some executions, by the statements' forms."""
    executed: dict[str, list[tuple[str, Any]]] = {}

    def note(execute: Any, sql: str, values: Any, many: bool, context: Any) -> Any:
        if sql.startswith(("SELECT", "WITH")) and not many:
            examples = executed.setdefault(form_of(sql.replace("%s", "?")), [])
            if len(examples) < EXAMPLES:
                examples.append((sql, values))
        return execute(sql, values, many, context)

    with connection.execute_wrapper(note):
        yield executed


def visits_on_postgresql(sql: str, values: Any) -> tuple[int, int]:
    """
    Return the rows that PostgreSQL reads to execute a statement, and those that it returns.

    Only rows cost here what they cost in a large table, so that its plans are those of one: of a table as small as
    those of a test, PostgreSQL reads all pages.
    """
    with transaction.atomic(), connection.cursor() as cursor:
        for setting, value in _COSTS.items():
            cursor.execute(f"SET LOCAL {setting} = {value}")
        cursor.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", values)
        plans = cursor.fetchone()[0]
        transaction.set_rollback(True)
    (found,) = json.loads(plans) if isinstance(plans, str) else plans
    return _visits_of(found["Plan"]), int(found["Plan"]["Actual Rows"])


def _visits_of(plan: dict[str, Any]) -> int:
    visits = sum(map(_visits_of, plan.get("Plans", ())))
    if "Scan" in plan["Node Type"]:
        rows = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        visits += int(rows * plan["Actual Loops"])
    return visits


def plan_on_sqlite(statement: str) -> list[str]:
    """Return the lines of SQLite's plan of a statement in Django's database."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {statement}")
        return [row[3] for row in cursor.fetchall()]
