"""
Record which statements each test passes to the database, so that the run on PostgreSQL can do without repetitions.

A plugin for pytest, ``PYTHONPATH=tests pytest -p services.statements``; each process writes a file to ``RECORDS``. Two
statements are the same if they differ in their values alone, in the number of these, and in the names of savepoints;
one that fails is another one, because PostgreSQL then ends the transaction and SQLite does not.
"""

import hashlib
import heapq
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
from django.db.backends.utils import CursorWrapper

RECORDS: Final = Path(__file__).parents[2] / ".statements"
START: Final = 20
"""What starting and ending a test costs, in statements."""
_VALUES: Final = re.compile(r"%s(?:, ?%s)+")
_ROWS: Final = re.compile(r"\(%s\)(?:, ?\(%s\))+")
_NUMBERS: Final = re.compile(r"\b\d+\b")
_SAVEPOINT: Final = re.compile(r"(?<=SAVEPOINT )\S+")


class Passed(NamedTuple):
    """What a test passed to the database."""

    statements: frozenset[str]
    """Digests of what the statements have in common with others of their form."""
    number: int
    """How many times any of them was passed."""


def form(sql: str) -> str:
    """Return what *sql* has in common with the same statement for other values."""
    rows = _ROWS.sub("(%s)", _VALUES.sub("%s", sql))
    return _NUMBERS.sub("0", _SAVEPOINT.sub("", rows))


class Recorder:
    """Notes the statements of the test that runs."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._statements: set[str] = set()
        self._number = 0

    def begin(self) -> None:
        self._statements, self._number = set(), 0

    def note(self, sql: str, fault: str = "") -> None:
        digest = self._digests.get(sql)
        if digest is None:
            digest = self._digests[sql] = hashlib.blake2b(form(sql).encode(), digest_size=6).hexdigest()
        self._statements.add(digest + fault)
        self._number += 1

    def passed(self) -> Passed:
        return Passed(frozenset(self._statements), self._number)


_recorder = Recorder()
_passed: dict[str, Passed] = {}


def _watch() -> None:
    """Note every statement of Django's connections, also one that fails."""
    for name in ("_execute", "_executemany"):
        own = getattr(CursorWrapper, name)

        def noted(self: Any, sql: Any, *arguments: Any, own: Any = own) -> Any:
            try:
                result = own(self, sql, *arguments)
            except Exception as error:
                _recorder.note(str(sql), type(error).__name__)
                raise
            _recorder.note(str(sql))
            return result

        setattr(CursorWrapper, name, noted)


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(RECORDS, ignore_errors=True)
        RECORDS.mkdir()
    _watch()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _recorder.begin()
    result = yield
    _passed[item.nodeid] = _recorder.passed()
    return result


def pytest_unconfigure() -> None:
    """Write what the tests of this process passed."""
    record = {name: [sorted(passed.statements), passed.number] for name, passed in _passed.items() if passed.number}
    (RECORDS / f"{os.getpid()}.json").write_text(json.dumps(record))


def recorded(folder: Path = RECORDS) -> dict[str, Passed]:
    """Return what each test passed in the recorded run."""
    passed = {}
    for file in folder.glob("*.json"):
        for name, (statements, number) in json.loads(file.read_text()).items():
            passed[name] = Passed(frozenset(statements), number)
    return passed


def repetitions(tests: Collection[str], passed: Mapping[str, Passed], always: Collection[str] = ()) -> set[str]:
    """
    Return which of *tests* pass no statement that the others do not pass, those that *always* run among them.

    A test that was not recorded is none of them. Kept are first those with the most new statements for each that they
    pass: these are quick tests of one thing.
    """
    covered: set[str] = set()
    for name in always:
        if name in passed:
            covered |= passed[name].statements
    # What a test is worth only falls while others are kept: the first one is kept if it is still worth the same.
    queue = [(-_worth(passed[name], covered), name) for name in sorted(tests) if name in passed]
    heapq.heapify(queue)
    while queue and queue[0][0] < 0:
        worth, name = queue[0]
        worth_now = -_worth(passed[name], covered)
        if worth_now == worth:
            heapq.heappop(queue)
            covered |= passed[name].statements
        else:
            heapq.heapreplace(queue, (worth_now, name))
    return {name for _, name in queue}


def _worth(passed: Passed, covered: set[str]) -> float:
    """Return how many statements a test would add for each that it passes, with a fixed share for its start."""
    return len(passed.statements - covered) / (passed.number + START)
