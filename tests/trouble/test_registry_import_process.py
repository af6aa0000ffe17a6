"""The import command under trouble: killed, interrupted, out of room, twice at once, and while others read."""

import json
import os
import re
import resource
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from make.registry import lines
from services.ports import SEEN_WITHIN_S, wait_until
from services.prepared import demo_registry, new_instance
from services.product import COMMAND, DEMO, Product, environment, run

DATABASE = "muniment.sqlite3"
pytestmark = pytest.mark.sqlite  # they copy and read the database's file


def a_registry(folder: Path, companies: int) -> Path:
    """Write a registry of so many companies, each with a position of one of a hundred people."""
    lines(
        folder / "people.jsonl", *({"slug": f"p{n}", "name": f"Person {n}", "documentId": f"d{n}"} for n in range(100))
    )
    lines(
        folder / "companies.jsonl",
        *(
            {
                "company": {"id": f"c{n}", "name": f"Company {n}", "body": "Words. " * 50, "treasury": "$1K"},
                "positions": [{"title": "Chair", "person": {"slug": f"p{n % 100}"}}],
            }
            for n in range(companies)
        ),
    )
    return folder


@contextmanager
def importing(source: Path, data: Path, **options: Any) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [*COMMAND, "import", str(source)],
        env=environment(data),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return an empty instance of this test's own."""
    return new_instance(tmp_path / "data")


def ask(data: Path, sql: str) -> list[Any]:
    connection = sqlite3.connect(f"file:{data / DATABASE}?mode=ro", uri=True, timeout=60)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()


def count(data: Path, sql: str = "SELECT count(*) FROM registry_company") -> int:
    try:
        return int(ask(data, sql)[0][0])
    except sqlite3.OperationalError:
        return 0  # the file or its tables are not there yet


def assert_whole(data: Path) -> None:
    """What stands is whole: every company has its part, its public document and its place in the list."""
    assert ask(data, "PRAGMA integrity_check") == [("ok",)]
    assert ask(data, "PRAGMA foreign_key_check") == []
    companies = count(data)
    for sql in (
        "SELECT count(*) FROM registry_position",
        "SELECT count(*) FROM published_document WHERE kind = 'company'",
        "SELECT count(*) FROM published_item_company",
        "SELECT n FROM published_total WHERE kind = 'company'",
        "SELECT sum(n) FROM published_block WHERE kind = 'company'",
    ):
        assert count(data, sql) == companies, sql
    assert count(data, "SELECT edition - (SELECT max(sequence) FROM published_change) FROM published_meta") == 0


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGKILL, -9), (signal.SIGINT, 130)])
def test_an_import_that_is_cut_off_leaves_whole_batches_and_a_second_run_completes_it(tmp_path, data, sent, code):
    source = a_registry(tmp_path / "source", 1_500)
    # A suite that runs in the background has interrupts ignored, and so would its children.
    with importing(source, data, preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        wait_until(lambda: count(data) >= 500, within_s=60, what="the first batch")
        process.send_signal(sent)
        _, told = process.communicate(timeout=30)
    assert process.returncode == code
    done = count(data)
    assert done in {600, 1_000}  # the people took 100 rows in one transaction; then 200, 400, and the rest of 1,000
    assert_whole(data)
    if sent == signal.SIGINT:
        assert "run the same command again" in told
    assert (
        f"companies: {1_500 - done:,} new, 0 changed, {done:,} unchanged"
        in run("import", str(source), data=data).stdout
    )
    assert_whole(data)
    assert count(data, "SELECT count(*) FROM registry_waitingperson") == 0


@pytest.mark.whole(keeps=0)
def test_a_full_disk_ends_the_import_with_a_word_and_a_second_run_completes_it(tmp_path, data):
    source = a_registry(tmp_path / "source", 2_000)
    limit = (data / DATABASE).stat().st_size + 2_000_000

    def small_disk() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    with importing(source, data, preexec_fn=small_disk) as process:
        _, told = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "The imported rows are complete" in told
    assert "Traceback" not in told
    assert count(data) < 2_000
    assert_whole(data)
    run("import", str(source), data=data)
    assert count(data) == 2_000
    assert_whole(data)


def test_two_imports_at_once_both_end_well_and_write_everything_once(tmp_path, data):
    source = a_registry(tmp_path / "source", 1_000)
    with importing(source, data) as one, importing(source, data) as other:
        said = [process.communicate(timeout=100) for process in (one, other)]
    assert [one.returncode, other.returncode] == [0, 0], said
    assert "locked" not in str(said)
    assert count(data) == 1_000
    assert count(data, "SELECT count(*) FROM registry_historyentry WHERE company_id IS NOT NULL") == 1_000
    assert_whole(data)


@pytest.mark.requirement("publish.visible")
def test_readers_are_served_while_an_import_runs_and_see_all_of_it_afterwards(tmp_path, data):
    source = a_registry(tmp_path / "source", 1_500)
    with Product(data) as product:
        stop, statuses, totals = threading.Event(), set(), []

        def read() -> None:
            while not stop.is_set():
                answer = product.get("/api/v1/companies?pageSize=100")
                statuses.add(answer.status)
                totals.append(answer.json()["pagination"]["total"])

        reader = threading.Thread(target=read)
        reader.start()
        run("import", str(source), data=data)
        stop.set()
        reader.join(30)
        wait_until(lambda: product.data_of("/api/v1/stats")["total"] == 1_500, within_s=SEEN_WITHIN_S, what="all of it")
    assert statuses == {200}
    assert totals == sorted(totals)
    assert len(set(totals)) > 2  # batches were seen as they came


@pytest.mark.requirement("import.bad-rows", "import.strict", "import.dry-run")
def test_the_command_reports_bad_rows_with_their_place_and_exits_with_1(tmp_path, data):
    file = lines(
        tmp_path / "companies.jsonl",
        {"company": {"id": "a", "name": "A"}},
        {"company": {"id": "b", "name": "B", "treasury": "[red]lots[/red]"}},
    )
    strict = run("import", str(file), "--strict", data=data, check=False)
    assert (strict.returncode, count(data)) == (1, 0)
    assert "Nothing imported" in strict.stdout
    dry = run("import", str(file), "--dry-run", data=data, check=False)
    assert (dry.returncode, count(data)) == (1, 0)
    done = run("import", str(file), data=data, check=False)
    assert done.returncode == 1
    treasury = "company.treasury must be an amount such as $1.2M, of at most $1000T, not '[red]lots[/red]'"
    assert f"companies.jsonl:2: {treasury}" in done.stderr
    assert "companies: 1 new, 0 changed, 0 unchanged; 1 invalid rows" in done.stdout
    missing = run("import", str(data), data=data, check=False)
    assert missing.returncode == 1
    assert "contains none of companies.jsonl" in missing.stderr


DOCUMENTS = "SELECT kind, key, body FROM published_document ORDER BY kind, position"


def items(data: Path) -> list[Any]:
    return [
        ask(data, f"SELECT item FROM published_item_{kind} ORDER BY position")
        for kind in ("company", "person", "framework")
    ]


def assert_same_after_round_trip(source: Path, folder: Path) -> None:
    first, second = (new_instance(folder / name) for name in ("first", "second"))
    told = run("import", str(source), data=first, check=False)  # a real registry has values that are left out
    assert (told.returncode == 0 or "invalid values left out" in told.stdout, "no invalid rows" in told.stdout) == (
        True,
        True,
    )
    run("export", str(folder / "export"), "--private", data=first)
    run("import", str(folder / "export"), data=second)
    documents = ask(first, DOCUMENTS)
    assert len(documents) > 50
    assert ask(second, DOCUMENTS) == documents
    assert items(second) == items(first)
    assert ask(second, "SELECT * FROM published_total") == ask(first, "SELECT * FROM published_total")
    again = run("import", str(folder / "export"), data=first)
    assert again.stdout.count(" 0 new, 0 changed") == 3
    assert ask(first, DOCUMENTS) == documents


@pytest.mark.requirement("export.round-trip", "export.private", "import.upsert")
def test_the_demo_comes_back_byte_for_byte_and_specifications_leave_only_with_private(tmp_path):
    assert_same_after_round_trip(DEMO, tmp_path)
    run("export", str(tmp_path / "public"), data=tmp_path / "first")
    assert '"specification"' in (tmp_path / "export" / "frameworks.jsonl").read_text()
    public = (tmp_path / "public" / "frameworks.jsonl").read_text()
    assert '"specification"' not in public
    assert len(public.splitlines()) == len((tmp_path / "export" / "frameworks.jsonl").read_text().splitlines())


@pytest.mark.proof
@pytest.mark.requirement("export.round-trip")
def test_a_real_registry_comes_back_byte_for_byte(sample_data, tmp_path):
    assert_same_after_round_trip(sample_data, tmp_path)


def peak_memory_mb(pid):
    """Return the most that a process has held so far; None once it has ended."""
    found = re.search(r"^VmHWM:\s+(\d+) kB$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(found[1]) / 1024 if found else None


@pytest.mark.proof
def test_a_real_registry_is_imported_in_bounded_time_and_memory(sample_data, data):
    told = []
    for _ in range(2):
        peak_mb, ended = 0.0, 0
        with importing(sample_data, data) as process:
            while not ended:
                # Not the ru_maxrss of who has ended: a child begins with that of its parent, which may be large.
                peak_mb = peak_memory_mb(process.pid) or peak_mb
                time.sleep(0.02)
                ended, status, used = os.wait4(process.pid, os.WNOHANG)
            process.returncode = os.waitstatus_to_exitcode(status)
            said = process.stdout.read()
        assert process.returncode == 0 or "invalid values left out" in said  # as a real registry has them
        assert "no invalid rows" in said
        told.append((used.ru_utime + used.ru_stime, peak_mb))
    (first_s, first_mb), (second_s, _) = told
    assert first_s < 25, told
    assert first_mb < 300, told
    assert second_s < 8, told


def test_an_export_is_replaced_whole_or_not_at_all(tmp_path):
    data = demo_registry(tmp_path / "data")
    target = tmp_path / "export"
    run("export", str(target), data=data)
    before = {file.name: file.read_bytes() for file in target.iterdir()}
    assert before.keys() == {"companies.jsonl", "people.jsonl", "frameworks.jsonl"}
    assert all(json.loads(line) for line in before["people.jsonl"].splitlines())
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    refused = run("export", str(blocked / "inside"), data=data, check=False)
    assert refused.returncode == 1
    assert "Traceback" not in refused.stderr
    assert {file.name: file.read_bytes() for file in target.iterdir()} == before
