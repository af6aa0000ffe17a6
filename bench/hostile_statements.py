"""
Ask a real registry hostile statements, and measure what they cost and what other visitors notice.

    python bench/hostile_statements.py SOURCE [--data FOLDER] [--fronts direct caddy nginx] [--seconds 20]

First each statement by itself, in turns from all addresses: the CPU time that it takes in the process of statements,
and the most memory of that process. Then all addresses at once, as fast as they are answered, by REST, as CSV, as pages
and by the tool, while other visitors read details, lists and pages from addresses of their own. Their times are
compared with those of the same reads before and after, without statements, because a machine that others use makes
them wait too. At the end nothing may have been written: neither the tables nor anything else in the data folder.
"""

import argparse
import asyncio
import hashlib
import itertools
import json
import os
import random
import re
import sqlite3
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack, closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Final
from urllib.parse import quote, urlencode

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from sample import import_sample  # noqa: E402 - beside this file
from under_load import Client, at_share, raise_priority, told  # noqa: E402 - beside this file

from make import hostile_statements as hostile  # noqa: E402 - the tests' own
from muniment import config  # noqa: E402 - after the path
from muniment.store.tables import FILE_NAME  # noqa: E402 - after the path
from services import proxies  # noqa: E402 - the tests' own
from services.ports import wait_until  # noqa: E402 - the tests' own
from services.product import Product  # noqa: E402 - the tests' own

LIMITS: Final = ("rate_limit", "rate_burst", "account_writes", "account_cpu_ms")
ADDRESSES: Final = 50
READERS: Final = 40
READS_A_SECOND: Final = 4
"""Of each reader: less than the limit of an address."""
SAMPLE_S: Final = 0.005
SEED: Final = 91
LONGEST: Final = 5
WAYS: Final = ("json", "csv", "page", "tool")
ATTACKERS_NICENESS: Final = 15
GOAL_CPU_S, GOAL_MEMORY_MB, GOAL_P99_MS = 0.8, 128, 50.0
SEARCHES: Final = ("water", "token", "open source", "dao", "protocol")
MODULE: Final = "muniment.store.tables.answering"


# ---------------------------------------------------------------------- requests


def request(way: str, sql: str) -> tuple[str, bytes]:
    """Return the head and the body of a request that asks a statement: by REST, as CSV, as a page or by the tool."""
    asked = urlencode({"sql": sql}, quote_via=quote)
    match way:
        case "json":
            return f"GET /api/v1/query?{asked} HTTP/1.1", b""
        case "csv":
            return f"GET /api/v1/query?{asked}&format=csv HTTP/1.1", b""
        case "page":
            return f"GET /data/query?{asked} HTTP/1.1", b""
        case _:
            call = {"name": "query", "arguments": {"sql": sql}}
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}).encode()
            head = "POST /api/mcp HTTP/1.1\r\ncontent-type: application/json\r\nmcp-protocol-version: 2025-06-18"
            return f"{head}\r\naccept: application/json, text/event-stream", body


class From(Client):
    """A visitor of an address of its own."""

    def __init__(self, port: int, address: str) -> None:
        super().__init__(port)
        self._source = address, 0

    async def sent(self, head: str, body: bytes = b"") -> int:
        """Return the status; 0 if the connection ended."""
        try:
            return (await self.send(head, body))[0]
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            self._reader = self._writer = None
            return 0


async def attack(port: int, seconds: float, ways: Sequence[str]) -> Counter[int]:
    """Send statements from every address at once; none of them twice as it was, so that no answer is kept."""
    statuses, numbers, end = Counter[int](), itertools.count(), time.monotonic() + seconds
    chance = random.Random(SEED)

    async def visitor(address: str) -> None:
        client = From(port, address)
        while time.monotonic() < end:
            number = next(numbers)
            sql = chance.choice(hostile.ALL if number % 3 else [*hostile.HEAVY, *hostile.ON_REAL_ROWS])
            status = await client.sent(*request(chance.choice(ways), f"{sql} -- {number}"))
            statuses[status] += 1
            if status == 429:
                await asyncio.sleep(0.2)

    await asyncio.gather(*(visitor(f"127.3.0.{number}") for number in range(1, ADDRESSES + 1)))
    return statuses


def attack_for(port: int, seconds: float, ways: Sequence[str]) -> Counter[int]:
    """Send hostile statements, in a process whose work delays no read: those who send them have other machines."""
    os.nice(ATTACKERS_NICENESS)
    return asyncio.run(attack(port, seconds, ways))


class Reads:
    """
    What other visitors read meanwhile, and the seconds that each answer took.

    Each run reads other documents, so that pages are made and not kept ones.
    """

    _runs = itertools.count()

    def __init__(self, port: int, slugs: list[str]) -> None:
        self._port, self._slugs = port, slugs
        self._first = next(self._runs) * READERS * 97
        self.times: dict[str, list[float]] = {"details": [], "lists": [], "searches": [], "pages": []}
        self.own: list[float] = []
        self.statuses = Counter[int]()

    @property
    def all(self) -> list[float]:
        return [each for times in self.times.values() for each in times]

    def _next(self, number: int) -> tuple[str, str]:
        slug = self._slugs[number * 7919 % len(self._slugs)]
        match number % 10:
            case 0 | 1:
                return "lists", f"/api/v1/companies?page={number % 400 + 1}"
            case 2:
                return (
                    "searches",
                    f"/api/v1/companies?q={quote(SEARCHES[number % len(SEARCHES)])}&page={number % 9 + 1}",
                )
            case 3 | 4:
                return "pages", f"/companies/{slug}"
            case 5:
                return "pages", f"/companies?page={number % 400 + 1}"
            case _:
                return "details", f"/api/v1/companies/{slug}"

    async def _read(self, reader: int, end: float) -> None:
        client, loop = From(self._port, f"127.4.0.{reader + 1}"), asyncio.get_running_loop()
        due = loop.time() + reader / READERS / READS_A_SECOND
        for number in itertools.count(self._first + reader * 97):
            now = loop.time()
            if now >= end:
                return
            await asyncio.sleep(max(0.0, due - now))
            self.own.append(max(0.0, loop.time() - due))
            kind, path = self._next(number)
            began = loop.time()
            self.statuses[await client.sent(f"GET {path} HTTP/1.1")] += 1
            self.times[kind].append(loop.time() - began)
            due = max(due + 1 / READS_A_SECOND, loop.time())

    async def run(self, seconds: float) -> None:
        end = asyncio.get_running_loop().time() + seconds
        await asyncio.gather(*(self._read(reader, end) for reader in range(READERS)))


# ---------------------------------------------------------------------- the process of statements


class Watched(threading.Thread):
    """Looks at the processes of statements: the most memory of each, and the CPU time of those that are there."""

    def __init__(self, server: int) -> None:
        super().__init__(daemon=True)
        self._server = psutil.Process(server)
        self._over = threading.Event()
        self.peak_kb = 0
        self.process: int | None = None
        self.processes: set[int] = set()

    def run(self) -> None:
        while not self._over.wait(SAMPLE_S):
            if self.process is None or not self._look(self.process):
                self.process = self._found()

    def end(self) -> None:
        self._over.set()
        self.join()

    def _found(self) -> int | None:
        for child in self._server.children(recursive=True):
            try:
                if MODULE in child.cmdline():
                    self.processes.add(child.pid)
                    return child.pid
            except psutil.Error:
                continue
        return None

    def _look(self, process: int) -> bool:
        try:
            status = Path(f"/proc/{process}/status").read_text()
        except OSError:
            return False
        peak = re.search(r"VmHWM:\s+(\d+)", status)
        if peak is None:  # it has ended and is not waited for yet
            return False
        self.peak_kb = max(self.peak_kb, int(peak[1]))
        return True


def cpu_s(process: int | None) -> float:
    """Return the CPU time of a process; 0 if it has ended."""
    try:
        return int(Path(f"/proc/{process}/schedstat").read_text().split()[0]) / 1e9
    except OSError:
        return 0.0


def cpu_of_children_s(server: int) -> float:
    """Return the CPU time of all ended processes that a process has waited for."""
    fields = Path(f"/proc/{server}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK")


def asked_from(address: str, port: int, number: int, sql: str) -> int:
    """Ask a statement, as JSON or as CSV, and return the status of the answer."""
    asked = urlencode({"sql": sql, "format": ("json", "csv")[number % 2]}, quote_via=quote)
    connection = HTTPConnection("127.0.0.1", port, timeout=60, source_address=(address, 0))
    with closing(connection):
        connection.request("GET", f"/api/v1/query?{asked}")
        answer = connection.getresponse()
        answer.read()
        return answer.status


def one_by_one(port: int, server: int, watched: Watched) -> list[tuple[float, int, str]]:
    """Ask each statement by itself; return the CPU seconds that it took, the status and the statement."""
    found = []
    for number, sql in enumerate(hostile.ALL):
        address = f"127.2.{number // 200}.{number % 200 + 1}"
        asked_from(address, port, 0, f"SELECT {number}")  # so that there is a process
        wait_until(lambda: watched.process is not None, within_s=10, what="the process of statements")
        process = watched.process
        before_s, ended_s = cpu_s(process), cpu_of_children_s(server)
        status = asked_from(address, port, number, sql)
        used_s = cpu_s(process) - before_s
        if used_s < 0:  # it was ended, and the server has its time
            used_s = cpu_of_children_s(server) - ended_s - before_s
        found.append((used_s, status, sql))
    return found


def content(data: Path) -> dict[str, str]:
    """Return a digest of the tables and of their log."""
    files = [file for file in data.glob(f"{FILE_NAME}*") if not file.name.endswith("-shm")]
    return {file.name: hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def names(data: Path) -> set[str]:
    """Return the files of a data folder, without those that SQLite makes and removes."""
    found = {str(file.relative_to(data)) for file in data.rglob("*")}
    return {name for name in found if not name.endswith(("-wal", "-shm", "-journal"))}


# ---------------------------------------------------------------------- the measurement


def waited_s(process: int) -> float:
    """Return how long the main thread of a process has waited for a core."""
    return int(Path(f"/proc/{process}/schedstat").read_text().split()[1]) / 1e9


def slugs_of(data: Path) -> list[str]:
    with closing(sqlite3.connect(f"file:{data / 'muniment.sqlite3'}?mode=ro", uri=True)) as own:
        rows = own.execute("SELECT key FROM published_document WHERE kind = 'company' ORDER BY key").fetchall()
    return [key for (key,) in rows]


def read_beside(
    port: int, server: int, slugs: list[str], seconds: float, ways: Sequence[str]
) -> tuple[Reads, Counter[int]]:
    """Read for some seconds, with or without hostile statements, and print what was measured."""
    reads, statuses, pool = Reads(port, slugs), Counter[int](), ProcessPoolExecutor(1)
    with pool:
        attacking = pool.submit(attack_for, port, seconds, ways) if ways else None
        cpu, waited, whole = cpu_s(server), waited_s(server), psutil.Process(server).cpu_times()
        asyncio.run(reads.run(seconds))
        cpu, waited = cpu_s(server) - cpu, waited_s(server) - waited
        now = psutil.Process(server).cpu_times()
        threads = now.user + now.system - whole.user - whole.system
        if attacking is not None:
            statuses = attacking.result()
    print(f"  {'with' if ways else 'without'} statements: the main thread of the server took {cpu:.2f} s of CPU,")
    print(f"  all threads {threads:.2f} s; the main one waited {waited:.2f} s for a core, of {seconds:.0f} s")
    for kind, times in {**reads.times, "all reads": reads.all, "this program's delay": reads.own}.items():
        print("  " + told(kind, times))
    return reads, statuses


def measure(given: argparse.Namespace, folder: Path, front: str) -> bool:
    """Measure behind one front, and return whether all goals are met."""
    print(f"{front}:", flush=True)
    data = Path(given.data)
    limits = {each.name: each.default for each in config.SETTINGS if each.name in LIMITS}
    options = {"trusted_proxies": "127.0.0.1/32", "exports_interval_s": "0", "backups": "off", **limits}
    with ExitStack() as stack:
        product = stack.enter_context(Product(data, "--workers", "1", **options))
        product.wait_ready(within_s=120)
        wait_until(lambda: product.get("/api/v1/tables").status == 200, within_s=60, what="the tables")
        port, slugs = product.port, slugs_of(data)
        if front != "direct":
            (folder / front).mkdir()
            port = stack.enter_context(getattr(proxies, front)(folder / front, product.host))
        before, files = content(data), names(data)
        watched = Watched(product.pid)
        watched.start()
        alone = one_by_one(port, product.pid, watched) if given.alone else []
        print(f"  {len(alone)} statements by themselves: {dict(Counter(status for _, status, _ in alone))}")
        print(f"  at most {watched.peak_kb / 1024:.1f} MB; the longest:")
        for used_s, status, sql in sorted(alone, reverse=True)[:LONGEST]:
            print(f"  {used_s:.3f} s of CPU, {status}: {sql[:90]}")
        quiet, _ = read_beside(port, product.pid, slugs, given.seconds, ())
        reads, statuses = read_beside(port, product.pid, slugs, given.seconds, given.ways)
        later, _ = read_beside(port, product.pid, slugs, given.seconds, ())
        watched.end()
        print(f"  {statuses.total()} statements from {ADDRESSES} addresses at once: {dict(statuses)}")
        print(f"  {len(watched.processes)} processes of statements, at most {watched.peak_kb / 1024:.1f} MB")
        is_same, new = content(data) == before, names(data) - files
    p99_ms, quiet_ms, later_ms = (at_share(each.all, 0.99) for each in (reads, quiet, later))
    answered = [sql for _, status, sql in alone if sql in hostile.REFUSED and status != 400]
    goals = {
        f"no statement takes {GOAL_CPU_S} s of CPU": max([used_s for used_s, _, _ in alone], default=0) < GOAL_CPU_S,
        f"no process takes {GOAL_MEMORY_MB} MB": watched.peak_kb < GOAL_MEMORY_MB << 10,
        f"p99 of others {p99_ms:.1f} ms is below {GOAL_P99_MS:g} ms (without: {quiet_ms:.1f} and {later_ms:.1f} ms)": (
            p99_ms < GOAL_P99_MS
        ),
        f"what must be refused is refused {answered[:3] or ''}": not answered,
        "the tables and their log are the same bytes": is_same,
        f"there is no new file {new or ''}": not new,
        "every read of others was answered": set(reads.statuses) == {200},
    }
    for goal, is_met in goals.items():
        print(f"{'OK  ' if is_met else 'MISS'}  {front}: {goal}", flush=True)
    return all(goals.values())


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source")
    parser.add_argument("--data", default="", help="a data folder to use and keep")
    parser.add_argument("--fronts", nargs="+", choices=("direct", "caddy", "nginx"), default=("direct", "nginx"))
    parser.add_argument("--ways", nargs="+", choices=WAYS, default=WAYS, help="in which statements are sent at once")
    parser.add_argument("--alone", action=argparse.BooleanOptionalAction, default=True, help="ask each by itself too")
    parser.add_argument("--seconds", type=float, default=20, help="of each of the three runs of reads")
    parser.add_argument("--priority", type=int, default=0, help="niceness of the server and of this program")
    given = parser.parse_args()
    if given.priority:
        raise_priority(given.priority)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        given.data = given.data or str(folder / "data")
        if not (Path(given.data) / "muniment.sqlite3").exists():
            import_sample(Path(given.source), Path(given.data))
        met = [measure(given, folder, front) for front in given.fronts]
    return 0 if all(met) else 1


if __name__ == "__main__":
    sys.exit(main())
