"""
Measure what more processes and another database cost a read: requests by CPU second, side by side.

One process on SQLite is 1.00; beside it stand two processes on SQLite, and one and two on a throwaway PostgreSQL whose
node reads its own file. A plain uvicorn that answers fixed bytes, with one process and with two, is the yardstick: what
it loses by its second process, the machine takes. Servers stand on one core, wrk on the other; every process has as
many connections.

Each round asks all of them, forwards and backwards by turns, so that the ratios are taken in the same seconds. Two
processes that were started alike differed by 7 % through thirty rounds, so all are started anew several times, and a
ratio is that of the means over all starts.

Two processes on one core take turns, and each finds the processor's caches full of the other: that is the price of the
shared core. So the kernel (Linux 6.12 or later) is asked for long turns of everything that is measured, which leaves
little of that price; `--turn-ms 0` leaves the turns as the kernel makes them, about 3 ms.

    python bench/nodes.py [--import FOLDER] [--starts 6] [--rounds 5] [--seconds 1] [--turn-ms 50]
"""

import argparse
import contextlib
import ctypes
import json
import os
import platform
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from services.ports import free_port, wait_until  # noqa: E402 - the tests' own
from services.postgres import Postgres  # noqa: E402 - the tests' own cluster
from services.product import DEMO, Product, run  # noqa: E402 - the same

GOALS = {"2 processes, SQLite": 0.95, "1 process, PostgreSQL": 0.95, "2 processes, PostgreSQL": 0.95}
YARDSTICK = "uvicorn's fixed bytes"
CONNECTIONS = 32
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call, which the C library has a name for only since 2025."""
SCHED_ATTR = struct.Struct("=IIQiIQQQ")
"""Size, policy, flags, nice, priority, runtime (for ordinary processes: the length of a turn), deadline, period."""


class Server(NamedTuple):
    """Something that is measured."""

    pid: int
    """Of the process that is above all its others."""
    processes: int
    url: str


async def fixed(scope, _receive, send):
    """Answer every request with the same bytes, as many as a company has."""
    assert scope["type"] == "http", "started without a lifespan"
    headers = [(b"content-type", b"application/json"), (b"content-length", b"2500")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": b"x" * 2500})


@contextlib.contextmanager
def yardstick(processes):
    """Serve :func:`fixed` by uvicorn alone."""
    port = free_port()
    command = [sys.executable, "-m", "uvicorn", "--app-dir", str(Path(__file__).parent), "nodes:fixed"]
    options = f"--port {port} --workers {processes} --lifespan off --no-access-log --log-level critical"
    with subprocess.Popen([*command, *options.split()]) as process:
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until(lambda: answers(url), within_s=60, what="the yardstick answering")
            yield Server(process.pid, processes, url)
        finally:
            process.terminate()


def answers(url):
    """Tell whether somebody answers there."""
    with contextlib.suppress(OSError), urlopen(url) as answer:
        return answer.status == HTTPStatus.OK
    return False


def take_turns(server, turn_ms):
    """Ask the kernel for turns of that length for every thread of a server."""
    asked = SCHED_ATTR.pack(SCHED_ATTR.size, os.SCHED_OTHER, 0, 0, 0, turn_ms * 1_000_000, 0, 0)
    c = ctypes.CDLL(None, use_errno=True)
    for process in (psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)):
        for thread in process.threads():
            if c.syscall(SCHED_SETATTR[platform.machine()], thread.id, asked, 0):
                raise OSError(ctypes.get_errno(), "sched_setattr")


def cpu_s(server):
    """Give the CPU seconds that a server's processes have used."""
    tree = [psutil.Process(server.pid), *psutil.Process(server.pid).children(recursive=True)]
    return sum(each.cpu_times().user + each.cpu_times().system for each in tree)


def rate(server, path, seconds):
    """Give requests by CPU second."""
    before = cpu_s(server)
    load = ["wrk", "-t2", f"-c{CONNECTIONS * server.processes}", f"-d{seconds}s"]
    command = ["taskset", "-c", "1", *load, f"{server.url}{path}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in told, told
    return int(told.split(" requests in")[0].split()[-1]) / (cpu_s(server) - before)


@contextlib.contextmanager
def served(instances):
    """Start everything that is measured, by name."""
    with contextlib.ExitStack() as running:
        servers = {}
        for database, (data, url) in instances.items():
            for number in (1, 2):
                product = Product(data, "--workers", str(number), database_url=url, exports_interval_s="0")
                running.enter_context(product)
                product.wait_ready(within_s=120)
                servers[name_of(number, database)] = Server(product.pid, number, product.url)
        for number in (1, 2):
            servers[name_of(number, YARDSTICK)] = running.enter_context(yardstick(number))
        time.sleep(5)  # what is imported behind the pages
        yield servers


def name_of(processes, what):
    """Name a server as the table does."""
    return f"{processes} process{'es' if processes > 1 else ''}, {what}"


def measure(servers, asked, found):
    """Ask every server in turns, and add the median of each to *found*, by path and name."""
    with urlopen(f"{servers[name_of(1, 'SQLite')].url}/api/v1/companies") as answer:
        slug = json.load(answer)["data"][0]["id"]
    if asked.turn_ms:
        for server in servers.values():
            take_turns(server, asked.turn_ms)
    for path in ("/api/v1/companies", f"/api/v1/companies/{slug}"):
        rates = {name: [] for name in servers}
        for number in range(asked.rounds):
            for name in servers if number % 2 else reversed(servers):
                rates[name].append(rate(servers[name], path, asked.seconds))
        for name in servers:
            found.setdefault(path, {}).setdefault(name, []).append(statistics.median(rates[name]))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--import", dest="source", type=Path, default=DEMO, help="a registry in the import form")
    parser.add_argument("--starts", type=int, default=6)
    parser.add_argument("--rounds", type=int, default=5, help="of each start")
    parser.add_argument("--seconds", type=int, default=1, help="length of one measurement")
    parser.add_argument("--turn-ms", type=int, default=50, help="how long a process may run at once; 0: the kernel's")
    asked = parser.parse_args()
    os.sched_setaffinity(0, {0})
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Postgres()) as cluster:
        instances = {"SQLite": (Path(folder) / "1", ""), "PostgreSQL": (Path(folder) / "2", cluster.create("bench"))}
        for data, url in instances.values():
            run("import", str(asked.source), data=data, database_url=url)
        for _ in range(asked.starts):
            with served(instances) as servers:
                measure(servers, asked, found)
    good = True
    for path, medians in found.items():
        for name, rates in medians.items():
            base = statistics.fmean(medians[name_of(1, YARDSTICK if name.endswith(YARDSTICK) else "SQLite")])
            ratio = statistics.fmean(rates) / base
            goal = GOALS.get(name, 0)
            good &= ratio >= goal
            spread = f"{min(rates):7.0f} to {max(rates):6.0f}/s CPU"
            verdict = "" if ratio >= goal else f"  MISSED {goal}"
            print(f"{path:30} {name:34} {spread}  {ratio:6.3f}{verdict}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
