"""
Measure every kind of work once in a registry of a million companies: `python bench/million.py FOLDER`.

The registry is the fictional one of `bench/growth.py`: companies, half as many people, two or three positions each.
Every figure is printed when it is known: CPU of all processes of a command, its time by the clock and its most memory;
for requests the CPU of one answer, its dearest answer by the CPU clock, which ticks every 10 ms, and its slowest by
the wall clock. FOLDER must have room: about 25 GB for a million companies.
"""

import argparse
import os
import subprocess
import sys
import time
from collections.abc import Callable
from http.client import HTTPException
from pathlib import Path

import growth
from services.ports import wait_until
from services.product import COMMAND, Product, Served, environment

MOST_S, MOST_MS = 3_600.0, 250.0
"""The most CPU of a command and of an answer."""


def run(data: Path, *arguments: str) -> bool:
    """Run a command, print its costs, and return whether they are within `MOST_S`."""
    log = data.parent / "log"
    began = time.monotonic()
    with log.open("wb") as output:
        process = subprocess.Popen(
            [*COMMAND, *arguments], env=environment(data), stdout=output, stderr=subprocess.STDOUT
        )
        _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"muniment {' '.join(arguments)}: {process.returncode}\n{log.read_text()[-3000:]}")
    cpu_s = used.ru_utime + used.ru_stime
    took_s, memory_mb = time.monotonic() - began, used.ru_maxrss / 1024
    print(f"{arguments[0]:32} {cpu_s:8.0f} s CPU {took_s:8.0f} s {memory_mb:8.0f} MB", flush=True)
    return cpu_s <= MOST_S


class Watched(growth.Visitor):
    """A visitor that notes the dearest and the slowest answer of each kind of request."""

    dearest_ms = slowest_ms = 0.0

    def __init__(self, product: Product) -> None:
        super().__init__(product)
        self.worst_ms: list[tuple[float, float]] = []

    def ask(self, path: str, body: bytes | None = None) -> bytes:
        cpu_ms, began = self._cpu_ms(), time.monotonic()
        answer = super().ask(path, body)
        self.slowest_ms = max(self.slowest_ms, (time.monotonic() - began) * 1e3)
        self.dearest_ms = max(self.dearest_ms, self._cpu_ms() - cpu_ms)
        return answer

    def cost_ms(self, work: Callable[[int], object], rounds: int = growth.ROUNDS) -> float:
        self.dearest_ms = self.slowest_ms = 0.0
        cost = super().cost_ms(work, rounds)
        self.worst_ms.append((self.dearest_ms, self.slowest_ms))
        return cost


def serve(data: Path, count: int) -> bool:
    """Measure the first answer and requests, and return whether each answer is within `MOST_MS`."""
    Served.forks = False  # the interpreter that others are forked from would be imported within the first answer
    began = time.monotonic()
    with Product(data, exports_interval_s="0") as product:
        watched = Watched(product)
        wait_until(lambda: is_answered(watched), within_s=600, what="a first answer")
        print(f"{'first answer after a start':32} {time.monotonic() - began:8.2f} s", flush=True)
        product.wait_ready(within_s=600)
        print(f"{'tables and other work of a start':32} {growth.settled_s(watched):8.0f} s", flush=True)
        watched = Watched(product)  # its former connection was idle for too long
        costs = growth.requests(watched, count, changed=growth.late_change(data))
    for (name, cost_ms), (dearest_ms, slowest_ms) in zip(costs.items(), watched.worst_ms, strict=True):
        print(f"{name:32} {cost_ms:8.1f} ms CPU, dearest {dearest_ms:5.0f}, slowest {slowest_ms:5.0f} ms", flush=True)
    return all(dearest_ms <= MOST_MS for dearest_ms, _ in watched.worst_ms)


def is_answered(visitor: growth.Visitor) -> bool:
    """Return whether a detail is answered yet."""
    try:
        visitor.ask("/api/v1/companies/company-5")
    except (OSError, HTTPException):
        return False
    return True


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--companies", type=int, default=1_000_000)
    given = parser.parse_args()
    folder, count = given.folder, given.companies
    data = folder / "data"
    registry = growth.write_registry(folder / "registry", count)
    kept = [run(data, "import", str(registry)), serve(data, count)]
    print(f"published file and source: {(data / 'muniment.sqlite3').stat().st_size >> 20} MB", flush=True)
    kept += [run(data, "backup", str(folder / "backup.zip")), run(data, "doctor", "--deep")]
    kept.append(run(folder / "restored", "restore", str(folder / "backup.zip")))
    print("every cost is within its limit" if all(kept) else "FAIL: a cost is over its limit")
    return int(not all(kept))


if __name__ == "__main__":
    sys.exit(main())
