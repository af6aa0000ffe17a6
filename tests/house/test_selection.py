"""What a run of the suite keeps of each test, and what it leaves to ``make prove``."""

import subprocess
import sys
from pathlib import Path

import pytest

from services.selection import CASES, kept, spread

SUITE = """
import pytest

@pytest.mark.parametrize("case", range(10))
def test_family(case):
    pass

@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize("case", range(10))
def test_all(case):
    pass

@pytest.mark.whole(keeps=3)
@pytest.mark.parametrize("case", range(10))
def test_three(case):
    pass

@pytest.mark.whole(keeps=0)
def test_none():
    pass

def test_alone():
    pass
"""


@pytest.fixture
def suite(tmp_path, request):
    """Return a function that lists what a run of a small suite keeps, and its last lines."""
    tests = Path(__file__).parents[1]
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "test_families.py").write_text(SUITE)
    # The same hooks as here, in a suite of its own.
    (tmp_path / "tests" / "conftest.py").write_text((tests / "conftest.py").read_text())
    (tmp_path / "pytest.ini").write_text(f"[pytest]\ntestpaths = tests\npythonpath = {tests}\n")

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:schemathesis", *options]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


def test_a_run_of_the_suite_keeps_some_cases_and_says_how_many_it_left(suite):
    answer = suite("--collect-only", "-q")
    assert [line for line in answer.splitlines() if "::" in line] == [
        *(f"tests/test_families.py::test_family[{case}]" for case in (0, 9)),
        *(f"tests/test_families.py::test_all[{case}]" for case in range(10)),
        *(f"tests/test_families.py::test_three[{case}]" for case in (0, 4, 9)),
        "tests/test_families.py::test_alone",
    ]
    assert "16 tests were left to `make prove`" in answer


@pytest.mark.parametrize("option", ["--whole", "tests/test_families.py", "-k test", "-m not proof"])
def test_a_run_that_says_what_it_wants_leaves_nothing(suite, option):
    answer = suite("--collect-only", "-q", *([option] if option.startswith(("--", "tests")) else option.split(" ", 1)))
    assert sum("::" in line for line in answer.splitlines()) == 32
    assert "left to" not in answer


def test_processes_that_share_a_run_leave_the_same_tests(suite):
    answer = suite("-n", "2")
    assert "16 passed" in answer
    assert "16 tests were left to `make prove`" in answer


@pytest.mark.parametrize(
    ("number", "chosen"),
    [
        (0, []),
        (1, [0]),
        (2, [0, 9]),
        (3, [0, 4, 9]),
        (9, [0, 1, 2, 3, 4, 5, 6, 7, 9]),
        (10, [*range(10)]),
        (11, [*range(10)]),
    ],
)
def test_the_first_the_last_and_others_between_them_are_kept(number, chosen):
    assert spread(range(10), number) == chosen


class Case:
    """A case of a test, with its marks."""

    def __init__(self, nodeid: str, **marks: object) -> None:
        self.nodeid = nodeid
        self._marks = marks

    def get_closest_marker(self, name: str):
        return self._marks.get(name)


def test_on_postgresql_one_case_is_kept_and_every_case_that_runs_only_there():
    shared = [Case(f"shared[{number}]") for number in range(6)]
    only_there = [Case(f"only[{number}]", postgresql=pytest.mark.postgresql.mark) for number in range(6)]
    marked = [
        Case(f"marked[{number}]", postgresql=pytest.mark.postgresql.mark, whole=pytest.mark.whole(keeps=2).mark)
        for number in range(6)
    ]
    assert len(kept(shared)) == CASES
    assert kept([*shared, *only_there, *marked], on_postgresql=True) == [
        shared[0],
        *only_there,
        marked[0],
        marked[-1],
    ]
