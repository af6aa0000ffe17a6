"""
Measure what more processes and another database cost a read: requests by CPU second, side by side.

One process on SQLite is 1.00; beside it stand two processes on SQLite, and one and two on a throwaway PostgreSQL whose
node reads its own file. Each round asks all of them, forwards and backwards by turns, so that the ratios are taken in
the same seconds. Servers stand on one core, wrk on the other; every process has as many connections.

Two processes on one core take turns, and each finds the processor's caches full of the other: that is the price of the
shared core, which nobody pays who has a core for each. `--turn-ms 50` asks the kernel (Linux 6.12 or later) for long
turns of all products alike, which leaves little of it; 0 leaves the turns as the kernel makes them, about 3 ms.

    python bench/nodes.py [--import FOLDER] [--rounds 21] [--seconds 1] [--turn-ms 0]
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
from pathlib import Path
from urllib.request import urlopen

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from services.postgres import Postgres  # noqa: E402 - the tests' own cluster
from services.product import DEMO, Product, run  # noqa: E402 - the same

GOALS = {"2 processes, SQLite": 0.95, "1 process, PostgreSQL": 0.95, "2 processes, PostgreSQL": 0.95}
CONNECTIONS = 32
SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""The number of the system call, which the C library has a name for only since 2025."""
SCHED_ATTR = struct.Struct("=IIQiIQQQ")
"""Size, policy, flags, nice, priority, runtime (for ordinary processes: the length of a turn), deadline, period."""


def take_turns(product, turn_ms):
    """Ask the kernel for turns of that length for every thread of a product."""
    asked = SCHED_ATTR.pack(SCHED_ATTR.size, os.SCHED_OTHER, 0, 0, 0, turn_ms * 1_000_000, 0, 0)
    c = ctypes.CDLL(None, use_errno=True)
    for process in (psutil.Process(product.pid), *psutil.Process(product.pid).children(recursive=True)):
        for thread in process.threads():
            if c.syscall(SCHED_SETATTR[platform.machine()], thread.id, asked, 0):
                raise OSError(ctypes.get_errno(), "sched_setattr")


def cpu_s(product):
    """Give the CPU seconds that a product's processes have used."""
    tree = [psutil.Process(product.pid), *psutil.Process(product.pid).children(recursive=True)]
    return sum(each.cpu_times().user + each.cpu_times().system for each in tree)


def rate(product, processes, path, seconds):
    """Give requests by CPU second."""
    before = cpu_s(product)
    load = ["wrk", "-t2", f"-c{CONNECTIONS * processes}", f"-d{seconds}s"]
    command = ["taskset", "-c", "1", *load, f"{product.url}{path}"]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    assert "Non-2xx" not in told, told
    return int(told.split(" requests in")[0].split()[-1]) / (cpu_s(product) - before)


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--import", dest="source", type=Path, default=DEMO, help="a registry in the import form")
    options.add_argument("--rounds", type=int, default=21)
    options.add_argument("--seconds", type=int, default=1, help="length of one measurement")
    options.add_argument("--turn-ms", type=int, default=0, help="how long a process may run at once; 0: the kernel's")
    asked = options.parse_args()
    os.sched_setaffinity(0, {0})
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as running:
        cluster = Postgres()
        running.callback(cluster.close)
        products = {}
        for database, url in (("SQLite", ""), ("PostgreSQL", cluster.create("bench"))):
            data = Path(folder) / database
            run("import", str(asked.source), data=data, database_url=url)
            for number in (1, 2):
                name = f"{number} process{'es' if number > 1 else ''}, {database}"
                products[name] = running.enter_context(
                    Product(data, "--workers", str(number), database_url=url, exports_interval_s="0")
                )
        for product in products.values():
            product.wait_ready(within_s=120)
        first = next(iter(products.values()))
        with urlopen(f"{first.url}/api/v1/companies") as answer:
            slug = json.load(answer)["data"][0]["id"]
        time.sleep(5)  # what is imported behind the pages
        if asked.turn_ms:
            for product in products.values():
                take_turns(product, asked.turn_ms)
        good = True
        for path in ("/api/v1/companies", f"/api/v1/companies/{slug}"):
            rates = {name: [] for name in products}
            for number in range(asked.rounds):
                for name in products if number % 2 else reversed(products):
                    rates[name].append(rate(products[name], int(name[0]), path, asked.seconds))
            base = rates[next(iter(products))]
            for name, found in rates.items():
                ratio = statistics.median(one / other for one, other in zip(found, base, strict=True))
                goal = GOALS.get(name, 0)
                good &= ratio >= goal
                verdict = "" if ratio >= goal else f"  MISSED {goal}"
                print(f"{path:40} {name:26} {statistics.median(found):10.0f}/s CPU  {ratio:5.2f}{verdict}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
