"""
Honest clients beside an attack, in a process of their own: what they are answered, and how fast.

Run as a program, it reads its :class:`Plan` as JSON from its first argument, sends requests until its standard input
closes, and writes its results as JSON.
"""

import http.client
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple


class Plan(NamedTuple):
    """
    What to send to *port*.

    Args:
        sources: loopback addresses of the clients.
        asked: (name, method, path, headers, body) of each kind of request.
        pause_s: between two requests of one kind from one address.
    """

    port: int
    sources: list[str]
    asked: list[tuple[str, str, str, dict[str, str], str]]
    pause_s: float


class Result(NamedTuple):
    """What the clients were answered to one kind of request: seconds of good answers, and faults."""

    seconds: list[float]
    faults: list[str]

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


@contextmanager
def victims(plan: Plan) -> Iterator[dict[str, Result]]:
    """Send the requests of *plan* while the context is open; the yielded results are filled when it ends."""
    results: dict[str, Result] = {}
    process = subprocess.Popen(
        [sys.executable, str(Path(__file__)), json.dumps(plan)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        process.stdout.readline()  # each kind was answered once
        yield results
    finally:
        told, _ = process.communicate(timeout=60)
        results.update({name: Result(*found) for name, found in json.loads(told).items()})


def _ask(plan: Plan, source: str, one: Any, found: Any) -> None:
    _, method, path, headers, body = one
    connection = http.client.HTTPConnection("127.0.0.1", plan.port, timeout=60, source_address=(source, 0))
    began = time.perf_counter()
    try:
        connection.request(method, path, body or None, headers)
        answer = connection.getresponse()
        content = answer.read()
        if answer.status != 200 or b'"isError":true' in content:
            found[1].append(f"{answer.status} {content[:200].decode(errors='replace')}")
        else:
            found[0].append(time.perf_counter() - began)
    except (OSError, http.client.HTTPException) as error:
        found[1].append(repr(error))
    finally:
        connection.close()


def _main() -> None:
    plan = Plan(*json.loads(sys.argv[1]))
    results: dict[str, Any] = {one[0]: ([], []) for one in plan.asked}
    ended = threading.Event()

    def client(source: str, one: Any) -> None:
        while True:
            _ask(plan, source, one, results[one[0]])
            if ended.wait(plan.pause_s):
                return

    threads = [threading.Thread(target=client, args=(source, one)) for source in plan.sources for one in plan.asked]
    for thread in threads:
        thread.start()
    while not all(seconds or faults for seconds, faults in results.values()):
        ended.wait(0.01)
    print("begun", flush=True)  # noqa: T201 - this program's output
    sys.stdin.read()
    ended.set()
    for thread in threads:
        thread.join()
    print(json.dumps(results))  # noqa: T201 - this program's output


if __name__ == "__main__":
    _main()
