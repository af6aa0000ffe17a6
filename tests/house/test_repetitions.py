"""What the run on PostgreSQL leaves out: tests whose statements others pass too."""

import subprocess
import sys
from pathlib import Path

import pytest

from services.statements import RECORDS, Passed, Recorder, form, recorded, repetitions


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE a IN (%s, %s, %s)", "SELECT a FROM t WHERE a IN (%s)"),
        ("INSERT INTO t (a, b) VALUES (%s, %s), (%s, %s)", "INSERT INTO t (a, b) VALUES (%s, %s)"),
        ('SAVEPOINT "s140_x7"', 'SAVEPOINT "s141_x12"'),
        ('RELEASE SAVEPOINT "s140_x7"', 'RELEASE SAVEPOINT "s141_x12"'),
        ("SELECT a FROM t LIMIT 21", "SELECT a FROM t LIMIT 1"),
    ],
)
def test_statements_for_other_values_are_the_same(one, other):
    assert form(one) == form(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("SELECT a FROM t WHERE a = %s", "SELECT a FROM t WHERE a IS NULL"),
        ("SELECT a FROM t1_a", "SELECT a FROM t2_a"),
        ('SAVEPOINT "s1_x1"', 'ROLLBACK TO SAVEPOINT "s1_x1"'),
        ("INSERT INTO t (a) VALUES (%s)", "INSERT INTO t (a, b) VALUES (%s, %s)"),
    ],
)
def test_other_statements_are_others(one, other):
    assert form(one) != form(other)


def test_a_statement_that_fails_is_another_one():
    recorder = Recorder()
    recorder.begin()
    recorder.note("INSERT INTO t (a) VALUES (%s)")
    recorder.note("INSERT INTO t (a) VALUES (%s)", "IntegrityError")
    passed = recorder.passed()
    assert (len(passed.statements), passed.number) == (2, 2)
    recorder.begin()
    assert recorder.passed() == Passed(frozenset(), 0)


def record(**tests):
    return {name: Passed(frozenset(statements), max(1, len(statements))) for name, statements in tests.items()}


def test_a_test_is_kept_for_each_statement_that_no_other_passes():
    passed = record(list="ab", change="bc", both="abc", alone="d", empty="")
    repeated = repetitions([*passed, "not recorded"], passed)
    kept = set(passed) - repeated
    assert {statement for name in kept for statement in passed[name].statements} == set("abcd")
    assert "alone" in kept
    assert "empty" in repeated
    assert "not recorded" not in repeated
    assert repetitions(list(reversed(passed)), passed) == repeated, "the order of the tests decides"


def test_what_runs_anyway_is_not_repeated_and_is_no_repetition_itself():
    passed = record(commits="abc", reads="ab", changes="bcd")
    assert repetitions(["reads", "changes"], passed, ["commits", "not recorded"]) == {"reads"}
    assert repetitions(["reads"], passed, ["commits"]) == {"reads"}
    assert repetitions([], passed, ["commits"]) == set()


def test_the_same_statements_are_kept_of_the_test_that_passes_fewer_times():
    passed = {name: Passed(frozenset("ab"), number) for name, number in {"long": 900, "quick": 2, "other": 30}.items()}
    assert repetitions(list(passed), passed) == {"long", "other"}


def test_without_a_record_nothing_is_left_out(tmp_path):
    assert recorded(tmp_path) == {}
    assert repetitions(["one", "two"], {}) == set()


RECORDED = """
import pytest
from django.db import connection

@pytest.mark.django_db
@pytest.mark.parametrize("value", [1, 2])
def test_asks(value):
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s AS asked", [value])

def test_asks_nothing():
    pass
"""


def test_what_each_test_passes_is_recorded_by_every_process(tmp_path):
    tests = Path(__file__).parents[1]
    (tmp_path / "test_asking.py").write_text(RECORDED)
    (tmp_path / "conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntestpaths = .\npythonpath = {tests}\n")
    plugin = (tests / "services" / "statements.py").read_text()
    (tmp_path / "recording.py").write_text(plugin.replace("Path(__file__).parents[2]", "Path(__file__).parent"))
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "-p",
            "no:schemathesis",
            "-p",
            "recording",
            "-n",
            "1",
        ],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(tmp_path), "TMPDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    passed = recorded(tmp_path / RECORDS.name)
    names = {name.rpartition("::")[2]: test.statements for name, test in passed.items()}
    assert set(names) == {"test_asks[1]", "test_asks[2]"}
    assert names["test_asks[2]"] <= names["test_asks[1]"], "the first one also makes the database"
    assert len(repetitions(list(passed), passed)) == 1
