"""
Measure how long a change takes to show: in the process that wrote it, in another of the machine, and on another node.

    python bench/visibility.py [--changes 100] [--priority -10]

Two products share a data folder with SQLite; two others have one each and share a temporary PostgreSQL. An owner's
change is sent to the first of both, at random moments, and both are read without a pause until it shows. Times begin
with the response to the change, and are of the wall clock: on a busy machine they hold what other programs took.
"""

import argparse
import contextlib
import http.client
import json
import random
import shutil
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from under_load import raise_priority  # noqa: E402 - beside this file

from services.postgres import Postgres  # noqa: E402 - the tests' own cluster
from services.product import Product, run  # noqa: E402 - the tests' own

SLUG, EMAIL = "quillmere", "bench@visibility.example"
VERSION = "2026-07-28"
GOALS_MS = {"the process that wrote": 0, "another process": 150, "another node": 300}
LATEST_S = 30.0


def change(product: Product, token: str, text: str) -> None:
    """Update the description of the listing."""
    arguments = {"slug": SLUG, "changes": {"description": text}}
    meta = {
        "io.modelcontextprotocol/protocolVersion": VERSION,
        "io.modelcontextprotocol/clientCapabilities": {},
        "io.modelcontextprotocol/clientInfo": {"name": "visibility", "version": "1"},
    }
    params = {"name": "update_my_company", "arguments": arguments, "_meta": meta}
    headers = {
        "Authorization": f"Bearer {token}",
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": VERSION,
        "MCP-Method": "tools/call",
        "MCP-Name": "update_my_company",
    }
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}).encode()
    answer = product.request("POST", "/api/manage/mcp", headers, body)
    if answer.status != 200 or answer.json()["result"].get("isError"):
        message = f"the change was refused: {answer.status} {answer.body[:300]!r}"
        raise SystemExit(message)


def seen_at(product: Product, text: str, found: list[float]) -> None:
    """Read the listing until it has *text*, and note when."""
    connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=LATEST_S)
    until = time.monotonic() + LATEST_S
    with contextlib.closing(connection):
        while time.monotonic() < until:
            connection.request("GET", f"/api/v1/companies/{SLUG}")
            if text.encode() in connection.getresponse().read():
                found.append(time.monotonic())
                return
            time.sleep(0.002)


def measure(writer: Product, other: Product, token: str, changes: int) -> tuple[list[float], list[float]]:
    """Return after how many seconds changes showed at the writer and at the other product."""
    own, others = [], []
    for number in range(changes):
        text = f"Seen {number} times, at {time.time_ns()}."
        found: list[float] = []
        waiting = threading.Thread(target=seen_at, args=(other, text, found))
        waiting.start()
        change(writer, token, text)
        done = time.monotonic()
        here: list[float] = []
        seen_at(writer, text, here)
        waiting.join()
        own.append(here[0] - done)
        others.append(max(0.0, found[0] - done))
        time.sleep(random.uniform(0, 0.3))
    return own, others


def told(name: str, values: list[float]) -> str:
    ordered = sorted(value * 1e3 for value in values)
    p50, p95 = ordered[len(ordered) // 2], ordered[int(len(ordered) * 0.95)]
    return (
        f"{name:26}{len(ordered):5}  p50 {p50:7.1f}  p95 {p95:7.1f}  max {ordered[-1]:7.1f} ms  goal {GOALS_MS[name]}"
    )


def main() -> int:
    """Run the measurement."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--changes", type=int, default=100)
    parser.add_argument("--priority", type=int, default=0, help="niceness of everything measured")
    given = parser.parse_args()
    if given.priority:
        raise_priority(given.priority)
    with tempfile.TemporaryDirectory() as folder, contextlib.closing(Postgres()) as cluster:
        for database, second in (("SQLite", "another process"), ("PostgreSQL", "another node")):
            first = Path(folder) / database
            url = cluster.create("visibility") if database == "PostgreSQL" else ""
            beside = first if not url else Path(folder) / "node"
            with Product(first, "--demo", database_url=url) as writer:
                writer.wait_ready(within_s=120)
                run("user", "create", EMAIL, "--no-password", data=first, database_url=url)
                run("own", EMAIL, SLUG, data=first, database_url=url)
                made = run("user", "token", EMAIL, "--name", "bench", data=first, database_url=url)
                token = next(word for word in made.stdout.split() if word.startswith("mun_pat_"))
                if url:
                    shutil.copytree(first / "keys", beside / "keys")
                with Product(beside, database_url=url) as other:
                    other.wait_ready(within_s=120)
                    own, others = measure(writer, other, token, given.changes)
            print(database)
            print(told("the process that wrote", own))
            print(told(second, others), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
