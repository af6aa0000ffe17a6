"""
Measure thousands of listeners of the change feed on one process: memory, how soon a change reaches them, and reads.

    python bench/listeners.py [--listeners 5000] [--changes 20]

The listeners connect from many addresses of this machine, since an address can have few streams. Then an owner's
changes are sent, each after the one before has reached everyone.
"""

import argparse
import asyncio
import resource
import statistics
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from visibility import EMAIL, SLUG, change  # noqa: E402 - beside this file

from services.product import Product, Served, run  # noqa: E402 - the tests' own

PER_ADDRESS = 50
LATEST_S = 60.0
READS = 50_000
GOALS = {"KB a listener": 12.0, "p99 in seconds": 1.0, "reads beside them": 0.95}


class Listener(asyncio.Protocol):
    """A stream that counts the events it gets, by the number in their text."""

    def __init__(self, request: bytes, arrivals: list[float]) -> None:
        self._request, self._arrivals = request, arrivals

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        transport.write(self._request)  # type: ignore[attr-defined]  # it can

    def data_received(self, data: bytes) -> None:
        if b"event: change" in data:
            self._arrivals.append(time.monotonic())

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002 - asyncio's signature
        self._arrivals.append(-1.0)


def memory_kb(pid: int) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    raise SystemExit(f"the process {pid} tells no memory")


def cpu_s(pid: int) -> float:
    return sum(int(each.read_text().split()[0]) for each in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


async def reads_a_cpu_second(port: int, pid: int) -> float:
    """Return how many details of a listing a second of the server's CPU answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    began = cpu_s(pid)
    for _ in range(READS // 10):
        writer.write(f"GET /api/v1/companies/{SLUG} HTTP/1.1\r\nHost: bench\r\n\r\n".encode() * 10)
        for _ in range(10):
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0])
            await reader.readexactly(length)
    writer.close()
    return READS / (cpu_s(pid) - began)


async def listen(product: Product, number: int, arrivals: list[float]) -> list[Listener]:
    loop = asyncio.get_running_loop()
    request = b"GET /api/v1/changes/stream HTTP/1.1\r\nHost: bench\r\nAccept: text/event-stream\r\n\r\n"
    held = []
    for each in range(number):
        address = f"127.1.{each // PER_ADDRESS // 250}.{each // PER_ADDRESS % 250 + 1}"
        _, listener = await loop.create_connection(
            lambda: Listener(request, arrivals), "127.0.0.1", product.port, local_addr=(address, 0)
        )
        held.append(listener)
        if not each % 100:
            await asyncio.sleep(0.02)
    return held


async def measure(product: Product, token: str, number: int, changes: int) -> dict[str, float]:
    pid = product.pid
    await reads_a_cpu_second(product.port, pid)
    alone = statistics.median([await reads_a_cpu_second(product.port, pid) for _ in range(7)])
    before_kb = memory_kb(pid)
    arrivals: list[float] = []
    held = await listen(product, number, arrivals)
    await asyncio.sleep(2)
    idle_kb = memory_kb(pid)
    beside = statistics.median([await reads_a_cpu_second(product.port, pid) for _ in range(7)])
    delays = []
    began_cpu = cpu_s(pid)
    for each in range(changes):
        arrivals.clear()
        began = time.monotonic()
        await asyncio.to_thread(change, product, token, f"Heard {each} times, at {time.time_ns()}.")
        until = began + LATEST_S
        while len(arrivals) < number and time.monotonic() < until:  # noqa: ASYNC110 - protocols have no event
            await asyncio.sleep(0.01)
        if len(arrivals) < number or -1.0 in arrivals:
            raise SystemExit(f"only {len(arrivals)} of {number} heard of change {each}")
        delays += [at - began for at in arrivals]
    used = cpu_s(pid) - began_cpu
    after_kb = memory_kb(pid)
    for each in held:
        each.transport.close()
    delays.sort()
    return {
        "listeners": number,
        "KB a listener": round((idle_kb - before_kb) / number, 1),
        "KB a listener afterwards": round((after_kb - before_kb) / number, 1),
        "p50 in seconds": round(delays[len(delays) // 2], 3),
        "p99 in seconds": round(delays[int(len(delays) * 0.99)], 3),
        "ms of CPU a change": round(used / changes * 1000, 1),
        "reads beside them": round(beside / alone, 3),
    }


def main() -> int:
    arguments = argparse.ArgumentParser(description="Measure thousands of listeners of the change feed.")
    arguments.add_argument("--listeners", type=int, default=5000)
    arguments.add_argument("--changes", type=int, default=20)
    given = arguments.parse_args()
    Served.forks = False
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, given.listeners + 1_000), hard))
    with tempfile.TemporaryDirectory() as folder, Product(Path(folder) / "data", "--demo") as product:
        product.wait_ready(within_s=120)
        run("user", "create", EMAIL, "--no-password", data=product.data)
        run("own", EMAIL, SLUG, data=product.data)
        made = run("user", "token", EMAIL, "--name", "bench", data=product.data)
        token = next(word for word in made.stdout.split() if word.startswith("mun_pat_"))
        figures = asyncio.run(measure(product, token, given.listeners, given.changes))
    for name, value in figures.items():
        print(f"{name:26} {value:>10}" + (f"   goal {GOALS[name]}" if name in GOALS else ""))
    is_met = (
        figures["KB a listener"] <= GOALS["KB a listener"]
        and figures["p99 in seconds"] <= GOALS["p99 in seconds"]
        and figures["reads beside them"] >= GOALS["reads beside them"]
    )
    return 0 if is_met else 1


if __name__ == "__main__":
    raise SystemExit(main())
