"""
Check that the tests notice broken rules: run them against mutants of the features.

The in-process tests run once with a coverage context per test, which maps lines to tests. Then each mutant that is
drawn with the seed of mutants.toml runs against the tests that cover its line, in a forked process that breaks the
module in memory only. The named mutants of mutants.toml run too. No mutant begins after the minutes that mutants.toml
allows. Exits with 1 when fewer than 90 % of those that ran are killed or a named mutant survives. mutants.toml also
lists the equivalent mutants with their reasons.

To try one folder: mutate.py --folder accounts --count 10 (measures with the tests of that folder alone).
"""

import argparse
import hashlib
import importlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import CodeType

import pytest
from coverage import CoverageData
from mutants import ROOT, Mutant, mutants

WANTED = 0.9
OMITTED = {"apps.py", "migrations"}
ELSEWHERE = ("browser", "clients", "conformance", "deploy", "docs", "house", "trouble", "upgrades")
"""Folders whose tests run the product in another process, where no mutant is."""
TESTS_S, TEST_S, FACTOR = 60, 30, 4
"""Seconds of tests per mutant, of one test, and how many times longer than measured they may take."""
SURVIVED = {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}
"""Every other status is a kill: a usage error too, when a broken module stops a test module's import."""
PRELOADED = ("django.test", "httpx", "mcp", "msgspec", "PIL.Image", "psycopg", "pypdfium2", "html5lib")
MAP, LOG = ROOT / "build" / "mutate" / "coverage", ROOT / "build" / "mutate" / "measured.log"
LISTED = tomllib.loads(Path(__file__).with_name("mutants.toml").read_text())
DRAW = LISTED["draw"]


@dataclass(order=True)
class Trial:
    """A mutant, the tests that cover its line, and the result."""

    rank: str
    key: str
    file: Path = field(compare=False)
    place: str = field(compare=False)
    source: str = field(compare=False)
    tests: list[str] = field(compare=False)
    expected_s: float = field(compare=False, default=0.0)
    killed: bool | None = field(compare=False, default=None)
    began: float = field(compare=False, default=0.0)


def measure(workers: int, folders: list[str], tests: list[str]) -> None:
    """Run the in-process tests once, and record which lines of *folders* each executes and how long it takes."""
    covered = [f"--cov=src/muniment/{folder}" for folder in folders]
    ignored = [f"--ignore={ROOT / 'tests' / name}" for name in ELSEWHERE]
    command = [sys.executable, "-m", "pytest", "-n", str(workers), "-vv", "--durations=0", "--durations-min=0.001"]
    environment = {**os.environ, "COVERAGE_FILE": str(MAP)}
    with LOG.open("w") as log:
        subprocess.run(  # noqa: S603 - our own tests
            [*command, *covered, "--cov-context=test", "--cov-report=", *ignored, *tests],
            cwd=ROOT,
            env=environment,
            stdout=log,
            check=False,
        )


class Coverage:
    """The passing tests of each line, the most specific first."""

    def __init__(self) -> None:
        log = LOG.read_text()
        self.seconds = defaultdict[str, float](float)
        for seconds, test in re.findall(r"^([\d.]+)s (?:setup|call|teardown) +(.+)$", log, re.MULTILINE):
            self.seconds[test] += float(seconds)
        self._failed = set(re.findall(r"^(?:FAILED|ERROR) (tests/.+?)(?: - .*)?$", log, re.MULTILINE))
        for test in sorted(self._failed):
            print(f"not used, because it fails without a mutant: {test}")
        data = CoverageData(str(MAP))
        data.read()
        self._tests: dict[str, dict[int, set[str]]] = {}
        self._lines = defaultdict[str, int](int)
        for file in data.measured_files():
            lines = data.contexts_by_lineno(file)
            self._tests[file] = {line: {each.rpartition("|")[0] for each in lines[line]} for line in lines}
            for tests in self._tests[file].values():
                for test in tests:
                    self._lines[test] += 1

    def tests(self, file: Path, lines: Iterable[int]) -> list[str] | None:
        """Return the tests of *lines*; None when only the start-up executes them."""
        of_lines = self._tests.get(str(file), {})
        found = set[str]().union(*(of_lines.get(line, ()) for line in lines))
        if found == {""}:
            return None
        found -= {""} | self._failed
        chosen, total = [], 0.0
        for test in sorted(found, key=lambda each: (self._lines[each], each)):
            total += self.seconds[test]
            if total > TESTS_S and chosen:
                break
            chosen.append(test)
        return chosen


def _every_mutant() -> list[tuple[str, Mutant]]:
    """Return all mutants with their folders, in the order in which they are drawn."""
    every = []
    for folder in DRAW["folders"]:
        for file in sorted((ROOT / "src" / "muniment" / folder).rglob("*.py")):
            if OMITTED.isdisjoint(file.parts):
                every += [(folder, mutant) for mutant in mutants(file)]
    for key in sorted(LISTED["equivalent"].keys() - {mutant.key for _, mutant in every}):
        print(f"mutants.toml: no such mutant any more: {key}")
    return sorted(every, key=lambda item: hashlib.sha256(f"{DRAW['seed']} {item[1].key}".encode()).digest())


def draw(coverage: Coverage, folders: list[str], count: int) -> list[Trial]:
    """Return the mutants with the lowest digests of seed and key, so that a change elsewhere draws the same ones."""
    every = _every_mutant()
    chosen: list[Trial] = []
    left_out = 0
    for folder, mutant in every:
        if folder not in folders or mutant.key in LISTED["equivalent"]:
            continue
        tests = coverage.tests(mutant.file, mutant.lines)
        if tests is None:
            continue
        if not tests and folder in DRAW["tested_elsewhere"]:
            left_out += 1
            continue
        place = f"{mutant.file.relative_to(ROOT)}:{mutant.lines.start}"
        seconds = sum(coverage.seconds[test] for test in tests)
        chosen.append(Trial(f"{len(chosen):03}", mutant.key, mutant.file, place, mutant.source(), tests, seconds))
        if len(chosen) == count:
            break
    if left_out:
        print(f"{left_out} drawn mutants are on lines that only tests with a product of their own execute: left out")
    return chosen


def named() -> Iterator[Trial]:
    """Yield the named mutants: rules that tests once did not cover."""
    for number, each in enumerate(LISTED["named"]):
        file = ROOT / each["file"]
        text = file.read_text()
        if text.count(each["old"]) != 1:
            sys.exit(f"checks/mutants.toml: {each['old']!r} occurs {text.count(each['old'])} times in {each['file']}")
        source = text.replace(each["old"], each["new"])
        yield Trial(f"named {number}", each["rule"], file, each["file"], source, each["tests"], TESTS_S)


def collect(trials: list[Trial]) -> None:
    """Exit unless pytest finds every test while nothing is broken."""
    tests = sorted({test for trial in trials for test in trial.tests})
    command = [sys.executable, "-m", "pytest", "-qq", "--collect-only", "-p", "no:cacheprovider", *tests]
    found = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own tests
    if found.returncode:
        sys.exit(f"pytest does not find every test; measure again:\n{found.stdout[-2000:]}")


def begin(trial: Trial, *, unchanged: bool) -> int:
    """Fork a process that runs the tests of *trial* with its module broken, and return the process id."""
    process = os.fork()
    if process:
        return process
    os.setsid()
    folder = os.environ["TMPDIR"] = tempfile.mkdtemp(prefix="mutant-")
    tempfile.tempdir = None
    with (LOG.parent / f"{trial.rank}.log").open("wb") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
    if not unchanged:
        given = SourceFileLoader.get_code

        def get_code(loader: SourceFileLoader, name: str) -> CodeType | None:
            if loader.path == str(trial.file):
                return compile(trial.source, loader.path, "exec", dont_inherit=True)
            return given(loader, name)

        SourceFileLoader.get_code = get_code  # type: ignore[method-assign]  # before muniment is imported
    code = int(pytest.ExitCode.INTERNAL_ERROR)
    try:
        options = ["-x", "-q", "--assert=plain", "--tb=line", "-p", "no:cacheprovider", f"--timeout={TEST_S}"]
        code = int(pytest.main([*options, *trial.tests]))
    finally:
        sys.stdout.flush()
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(code)


def run(trials: list[Trial], workers: int, *, until: float, unchanged: bool) -> None:
    """Run the trials, *workers* at once, and print the results; none begins after the moment *until*."""
    waiting, running = list(reversed(trials)), dict[int, Trial]()
    while waiting or running:
        if time.monotonic() > until:
            waiting.clear()
        while waiting and len(running) < workers:
            trial = waiting.pop()
            if not trial.tests:
                trial.killed = False
                tell(trial)
                continue
            trial.began = time.monotonic()
            running[begin(trial, unchanged=unchanged)] = trial
        for process, trial in list(running.items()):
            if time.monotonic() - trial.began > TEST_S + FACTOR * trial.expected_s:
                os.killpg(process, signal.SIGKILL)
            ended, status = os.waitpid(process, os.WNOHANG)
            if ended:
                del running[process]
                trial.killed = os.waitstatus_to_exitcode(status) not in SURVIVED
                tell(trial)
        time.sleep(0.02)


def tell(trial: Trial) -> None:
    """Print the result of a trial."""
    what = "killed  " if trial.killed else "SURVIVED" if trial.tests else "NO TEST "
    seconds = time.monotonic() - trial.began if trial.tests else 0
    print(f"{trial.rank} {what} {seconds:5.1f} s {len(trial.tests):4} tests  {trial.place}  {trial.key}", flush=True)


def main() -> int:
    """Measure, draw and run; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--workers", type=int, default=2, help="how many processes at once")
    parser.add_argument("--measured", action="store_true", help="use the coverage of the last run")
    parser.add_argument("--named", action="store_true", help="run only the named mutants")
    parser.add_argument("--only", metavar="RANKS", help="run only these, such as 003,017")
    parser.add_argument("--folder", action="append", choices=DRAW["folders"], help="break only rules of this folder")
    parser.add_argument("--count", type=int, default=DRAW["count"], help="how many mutants to draw")
    parser.add_argument("--unchanged", action="store_true", help="break nothing: every mutant must survive")
    options = parser.parse_args()
    began = time.monotonic()
    LOG.parent.mkdir(parents=True, exist_ok=True)
    trials = [] if options.folder else list(named())
    if not options.named:
        folders = options.folder or DRAW["folders"]
        if not options.measured:
            tests = [str(ROOT / "tests" / folder) for folder in options.folder or ()]
            measure(options.workers, folders, tests)
        trials += draw(Coverage(), folders, options.count)
    if options.only:
        trials = [trial for trial in trials if trial.rank in options.only.split(",")]
    collect(trials)
    for module in PRELOADED:
        importlib.import_module(module)
    print(f"{len(trials)} mutants after {time.monotonic() - began:.0f} s", flush=True)
    run(trials, options.workers, until=began + 60 * DRAW["minutes"], unchanged=options.unchanged)
    begun = [trial for trial in trials if trial.killed is not None]
    if len(begun) < len(trials):
        print(f"{len(trials) - len(begun)} mutants did not run within {DRAW['minutes']} minutes")
    drawn = [trial for trial in begun if not trial.rank.startswith("named")]
    killed = sum(bool(trial.killed) for trial in drawn)
    lost = [trial.key for trial in trials if trial.rank.startswith("named") and not trial.killed]
    print(
        f"{killed} of {len(drawn)} killed, {len(LISTED['equivalent'])} equivalent, named survivors: {lost or 'none'}, "
        f"{(time.monotonic() - began) / 60:.0f} minutes"
    )
    return 1 if lost or killed < WANTED * len(drawn) else 0


if __name__ == "__main__":
    sys.exit(main())
