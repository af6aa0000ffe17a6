"""
Measure what more processes and another database cost a read: requests per CPU second, side by side.

The baseline is two products with one process each, on SQLite. It is compared with one product with two processes, and
with both variants on a temporary PostgreSQL, whose nodes read their own file. Each variant has two processes, each with
a core that it shares with the load generator, and 32 connections, so that all variants are equal on a machine with two
cores. The supervisor of two processes is not counted: it uses 0.05 % of a core.

Every connection has a client thread of its own. A thread with many connections sends its requests in bursts, and where
these lead to two processes each gets half of a burst: with such clients, two independent products answered 2 to 11 %
less on one port than on separate ports.

The variants take turns by the second, in a random order each round, because the speed of a shared host changes within
seconds. Processes that were started the same way differed by 7 % over thirty rounds, so everything is started several
times, in a random order too. A start reports the median of its rounds' ratios; the result is the mean over the starts
with its standard error.

With ``--one-core`` all processes run on one core and the load generator on the other. A single process is alone there;
two processes switch every hundred requests and find the processor's caches filled by the other. That is the price of
fewer cores than processes.

    python bench/nodes.py [--import FOLDER] [--starts 10] [--rounds 8] [--one-core]
"""

import argparse
import contextlib
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple
from urllib.request import urlopen

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from services.postgres import Postgres  # noqa: E402 - the tests' own cluster
from services.product import DEMO, Product, run  # noqa: E402 - the tests' own

BASE = "1 process, SQLite"
WAYS = {BASE: 1, "2 processes, SQLite": 2, "1 process, PostgreSQL": 1, "2 processes, PostgreSQL": 2}
"""Processes per product, by the name of the variant."""
GOAL = 0.95
CONNECTIONS = 32
"""Connections to each process."""


class Way(NamedTuple):
    """Products measured together: two processes, or one that is alone on its core."""

    urls: list[str]
    """One per load of 32 connections."""
    processes: list[psutil.Process]
    """The processes that serve."""


def started(products, count):
    """Return the variant of *products* with *count* processes each."""
    processes = []
    for product in products:
        top = psutil.Process(product.pid)
        serving = top.children() if count > 1 else [top]
        assert len(serving) == count, serving
        processes += serving
    return Way([product.url for product in products for _ in range(count)], processes)


def pin(way, cores):
    """Pin each process to a core of its own."""
    for process, core in zip(way.processes, cores, strict=True):
        for thread in process.threads():
            os.sched_setaffinity(thread.id, {core})


def rate(way, path, load_cores):
    """Return requests per CPU second."""
    before = cpu_s(way)
    command = ["taskset", "-c", load_cores, "wrk", f"-t{CONNECTIONS}", f"-c{CONNECTIONS}", "-d1s"]
    loads = [subprocess.Popen([*command, f"{url}{path}"], stdout=subprocess.PIPE, text=True) for url in way.urls]
    told = [load.communicate()[0] for load in loads]
    assert all("requests in" in each and "Non-2xx" not in each for each in told), told
    return sum(int(each.split(" requests in")[0].split()[-1]) for each in told) / (cpu_s(way) - before)


def cpu_s(way):
    """Return the CPU seconds that the processes have used."""
    return sum(each.cpu_times().user + each.cpu_times().system for each in way.processes)


@contextlib.contextmanager
def served(instances, asked):
    """Start everything that is measured, by name."""
    with contextlib.ExitStack() as running:
        products = {name: [] for name in WAYS}
        wanted = [name for name, count in WAYS.items() for _ in range(1 if asked.one_core else 3 - count)]
        for name in random.sample(wanted, len(wanted)):
            data, url = instances[name.split(", ")[1]]
            options = ("--workers", str(WAYS[name]))
            product = running.enter_context(Product(data, *options, database_url=url, exports_interval_s="0"))
            product.wait_ready(within_s=120)
            products[name].append(product)
        time.sleep(5)  # what is imported behind the pages
        ways = {name: started(products[name], count) for name, count in WAYS.items()}
        for way in ways.values():
            pin(way, [0, 0 if asked.one_core else 1][: len(way.processes)])
        yield ways


def measure(ways, asked, found):
    """Add each variant's ratio, the median of its rounds, to *found*, by path and name."""
    with urlopen(f"{ways[BASE].urls[0]}/api/v1/companies") as answer:
        slug = json.load(answer)["data"][0]["id"]
    for path in ("/api/v1/companies", f"/api/v1/companies/{slug}"):
        ratios = {name: [] for name in ways if name != BASE}
        for _ in range(asked.rounds):
            order = random.sample(list(ways), len(ways))
            rates = {name: rate(ways[name], path, "1" if asked.one_core else "0,1") for name in order}
            for name, told in ratios.items():
                told.append(rates[name] / rates[BASE])
        for name, told in ratios.items():
            found.setdefault((path, name), []).append(statistics.median(told))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--import", dest="source", type=Path, default=DEMO, help="a registry in the import form")
    parser.add_argument("--starts", type=int, default=10, help="two or more")
    parser.add_argument("--rounds", type=int, default=8, help="of each start")
    parser.add_argument("--one-core", action="store_true", help="all processes on one core")
    asked = parser.parse_args()
    found = {}
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Postgres()) as cluster:
        instances = {"SQLite": (Path(folder) / "1", ""), "PostgreSQL": (Path(folder) / "2", cluster.create("bench"))}
        for data, url in instances.values():
            run("import", str(asked.source), data=data, database_url=url)
        for _ in range(asked.starts):
            with served(instances, asked) as ways:
                measure(ways, asked, found)
    good = True
    for (path, name), ratios in found.items():
        ratio, error = statistics.fmean(ratios), statistics.stdev(ratios) / len(ratios) ** 0.5
        good &= ratio >= GOAL
        verdict = "" if ratio >= GOAL else f"  MISSED {GOAL}"
        print(f"{path:30} {name:24} {ratio:6.3f} ±{error:.3f}  {min(ratios):.2f} to {max(ratios):.2f}{verdict}")
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main()
