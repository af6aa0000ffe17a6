"""
Measure the figures of docs/SCALING.md: server CPU for a million reads, and all CPU for a thousand writes.

    python bench/scaling.py reads [--companies N] [--requests N]
    python bench/scaling.py writes [--calls N]

Reads go over 32 connections to `muniment serve` on a generated registry; the client's own CPU is not counted. Writes
are an owner's updates in this process, on SQLite and on a PostgreSQL of its own, whose CPU is reported separately.
"""

import argparse
import asyncio
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

CONNECTIONS = 32


def cpu_s(process: psutil.Process) -> float:
    """Return the CPU seconds of *process* and its children."""
    total = 0.0
    for each in (process, *process.children(recursive=True)):
        used = each.cpu_times()
        total += used.user + used.system
    return total


async def ask(port: int, requests: list[bytes]) -> int:
    """Send *requests* over all connections and return the number of bytes received."""
    waiting = iter(requests)
    received = 0

    async def one() -> None:
        nonlocal received
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for request in waiting:
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            assert head.startswith((b"HTTP/1.1 200", b"HTTP/1.1 304")), head
            lower = head.lower()
            found = lower.find(b"content-length: ")
            length = 0 if found < 0 or b" 304 " in head[:15] else int(lower[found + 16 :].partition(b"\r\n")[0])
            if length:
                await reader.readexactly(length)
            received += len(head) + length
        writer.close()

    await asyncio.gather(*(one() for _ in range(CONNECTIONS)))
    return received


def reads(companies: int, count: int) -> None:
    """Measure each kind of read."""
    from published import make

    from services.product import Product

    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "data"
        data.mkdir()
        make(data / "muniment.sqlite3", companies)
        with Product(data, exports_interval_s="0", trusted_proxies="127.0.0.1") as product:
            product.wait_ready(within_s=300)
            process = psutil.Process(product.pid)
            etag = product.get("/api/v1/companies").headers["etag"].encode()
            chance = random.Random(3)

            def get(target: str, more: bytes = b"") -> bytes:
                return b"GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n" % (target.encode(), more)

            def company() -> str:
                return f"/api/v1/companies/company-{chance.randint(1, companies)}"

            kinds = {
                "first list page, ready": lambda: get("/api/v1/companies"),
                "the same, zstd": lambda: get("/api/v1/companies", b"Accept-Encoding: zstd\r\n"),
                "the same, 304": lambda: get("/api/v1/companies", b"If-None-Match: " + etag + b"\r\n"),
                "one company of many, ready": lambda: get(f"/api/v1/companies/company-{chance.randint(1, 500)}"),
                "one company of all, not ready": lambda: get(company()),
                "the same, behind a proxy": lambda: get(company(), b"X-Forwarded-For: 192.0.2.1\r\n"),
                "a list page of all, not ready": lambda: get(
                    f"/api/v1/companies?page={chance.randint(1, companies // 25)}"
                ),
                "a page in HTML": lambda: get(
                    f"/companies/company-{chance.randint(1, companies)}", b"Accept: text/html\r\n"
                ),
            }
            time.sleep(15)  # what a start leaves to be done is no cost of a request
            before = cpu_s(process)
            time.sleep(10)
            idle = (cpu_s(process) - before) / 10
            for kind, request in kinds.items():
                many = count // 100 if "HTML" in kind else count // 4 if "list page of all" in kind else count
                asyncio.run(ask(product.port, [request() for _ in range(min(many, 2000))]))
                asked = [request() for _ in range(many)]
                before, began = cpu_s(process), time.monotonic()
                received = asyncio.run(ask(product.port, asked))
                spent = cpu_s(process) - before - idle * (time.monotonic() - began)
                print(f"{kind}: {spent / many * 1e6:.0f} s of CPU and {received / many / 1e3:.1f} GB a million")
            print(f"nothing: {idle * 100:.1f} % of a core")
            print(f"memory of the process: {process.memory_full_info().pss >> 20} MB PSS")
            print(f"file: {(data / 'muniment.sqlite3').stat().st_size / companies:.0f} bytes a company")


def writes(calls: int) -> None:
    """Measure an owner's updates on both databases."""
    from services.postgres import Postgres

    cluster = Postgres()
    try:
        for url in ("", cluster.create("scaling")):
            with tempfile.TemporaryDirectory() as folder:
                environment = {**os.environ, "MUNIMENT_DATA": folder, "MUNIMENT_DATABASE_URL": url}
                again = [sys.executable, __file__, "write-here", "--calls", str(calls)]
                subprocess.run(again, env=environment, check=True)
    finally:
        cluster.close()


def write_here(calls: int) -> None:
    """Measure on the database that the settings name."""
    from muniment import cli, config  # the settings are known only now

    cli.use_django()
    from django.db import connection, connections

    from muniment.accounts.models import Account
    from muniment.registry.company.changes import CompanyChange
    from muniment.registry.company.listings import update_company
    from muniment.registry.demo_accounts import demo_sign_ins
    from muniment.registry.exchange.importer import import_registry
    from muniment.registry.models import Ownership
    from muniment.store.database.migrations import migrate
    from services.product import DEMO

    migrate()
    import_registry(DEMO)
    demo_sign_ins()
    owner = Account.objects.get(email="owner@demo.example")
    slug = Ownership.objects.filter(account=owner).order_by("pk").values_list("company__slug", flat=True)[0]
    backend = None
    if config.current().on_postgresql:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_backend_pid()")
            backend = psutil.Process(cursor.fetchone()[0])
    for number in range(50):
        update_company(owner.actor("web"), slug, CompanyChange(team_size=number + 1))
    began, before = time.process_time(), cpu_s(backend) if backend else 0.0
    for number in range(calls):
        update_company(owner.actor("web"), slug, CompanyChange(team_size=number + 100))
    spent = time.process_time() - began
    theirs = f" and {(cpu_s(backend) - before) / calls * 1e3:.1f} s of PostgreSQL's" if backend else ""
    print(f"{connection.vendor}: {spent / calls * 1e3:.1f} s of our CPU{theirs} a thousand updates")
    connections.close_all()


def main() -> None:
    """Run the benchmark."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("reads", "writes", "write-here"))
    parser.add_argument("--companies", type=int, default=100_000)
    parser.add_argument("--requests", type=int, default=40_000)
    parser.add_argument("--calls", type=int, default=500)
    given = parser.parse_args()
    if given.what == "reads":
        reads(given.companies, given.requests)
    elif given.what == "writes":
        writes(given.calls)
    else:
        write_here(given.calls)


if __name__ == "__main__":
    main()
