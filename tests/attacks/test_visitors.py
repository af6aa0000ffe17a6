"""Visitors without an account leave little behind, each kind of it with a bound and an end that THREATS names."""

import asyncio
import contextlib
import re
import sqlite3
import time
from pathlib import Path

import pytest

from attacks.conftest import attacked_with
from attacks.visitors import areas, rows, visit
from services.clock import Clock
from services.ports import wait_until
from services.prepared import copied
from services.product import Product

THREATS = Path(__file__).parents[2] / "docs" / "THREATS.md"
DEFAULTS = {"rate_limit": "600", "rate_burst": "100", "account_writes": "60", "account_cpu_ms": "2000"}
MAX_GROWTH_BYTES = 20 << 20
ADDRESSES = [f"192.0.2.{number}" for number in range(1, 21)]
ENDED = (
    *("accounts_account", "account_emailaddress", "oauth_client", "django_session", "accounts_cache"),
    "web_kept_forms",
)
REST_BYTES = 1 << 20
"""Of the periodic jobs of the day, and of the security log."""
MAX_WAL_BYTES = 5 << 20
"""The write-ahead log of every instance: SQLite begins it again at 4 MB, and keeps the file."""
OF_THE_PROCESS = {"accounts_keyholder", "scrub_scrubstate", "exports", "keys", "registry.toml", "ready"}
"""What a server writes by itself, whoever visits."""


def named() -> dict[str, list[str]]:
    """Return the rows of the table in THREATS, by each table and folder that they name."""
    section = THREATS.read_text().partition("**What visitors leave behind.**")[2].partition("\n**")[0]
    lines = [
        [cell.strip() for cell in line.strip().strip("|").split("|")]
        for line in section.splitlines()
        if line.startswith("| `")
    ]
    return {place: line for line in lines for place in re.findall(r"`([a-z0-9_.*-]+)`", line[0])}


def test_every_line_about_what_visitors_leave_behind_has_a_bound_an_end_and_a_test():
    found = named()
    assert len(found) >= 8
    for place, (_, each, in_all, end, test) in found.items():
        assert re.search(r"\d", each), place
        assert re.search(r"\d", in_all), place
        assert re.search(r"\d+ (?:minutes|hours|days)|an hour|a day", end), place
        assert re.search(r"`test_\w+`", test), place


@pytest.fixture
def visited(tmp_path):
    return copied(attacked_with, tmp_path / "data")


@pytest.mark.whole(keeps=0)
@pytest.mark.sqlite
def test_whatever_grows_when_visitors_send_everything_is_named_in_threats(visited):
    with Product(visited, "--workers", "1", trusted_proxies="127.0.0.1", **DEFAULTS) as product:
        product.wait_ready(within_s=60)
        before = rows(visited), areas(visited)
        statuses = asyncio.run(visit(product, ADDRESSES, 20))
        after = rows(visited), areas(visited)
        assert "Traceback" not in product.output()
    assert statuses.keys() & {0, 500, 502, 503} == set(), statuses
    assert statuses[200] > 100
    grown = {name for name, count in after[0].items() if count > before[0].get(name, 0)}
    grown |= {name for name, size in after[1].items() if size > before[1].get(name, 0)}
    grown = {name for name in grown - OF_THE_PROCESS if not name.startswith("muniment.sqlite3")}  # by its tables
    assert {"django_session", "accounts_account", "oauth_client", "jobs_job", "mail"} <= grown
    assert grown - named().keys() == set()


@pytest.mark.proof
@pytest.mark.sqlite
@pytest.mark.timeout(1_800)
def test_ten_minutes_of_everything_from_twenty_addresses_leave_20_mb_that_are_gone_a_day_later(
    visited, tmp_path, monkeypatch
):
    clock = Clock(tmp_path)
    product = Product(visited, "--workers", "1", trusted_proxies="127.0.0.1", **DEFAULTS)
    with monkeypatch.context() as patched:
        for name, value in clock.environment.items():
            patched.setenv(name, value)
        product.start(within_s=60)
    try:
        product.wait_ready(within_s=60)
        leave(product, clock, visited, seconds=600)
    finally:
        product.stop()


def leave(product: Product, clock: Clock, data: Path, *, seconds: float) -> dict[str, object]:
    """Visit, measure, let a day pass by the clock, and measure again."""
    settled(data)
    before, rest, rows_before = size_bytes(data), size_bytes(data, wal=False), rows(data)
    statuses = asyncio.run(visit(product, ADDRESSES, seconds))
    settled(data)
    grown = size_bytes(data) - before
    assert grown <= MAX_GROWTH_BYTES, (grown, areas(data), rows(data), statuses)

    def ended() -> bool:
        now = rows(data)
        return all(now[name] <= rows_before[name] for name in ENDED)

    clock.set(26 * 3_600)
    wait_until(ended, within_s=120, what="the end of what visitors left behind")
    clock.set(28 * 3_600)
    wait_until(lambda: size_bytes(data, wal=False) <= rest + REST_BYTES, within_s=120, what="the former size")
    assert size_bytes(data) - size_bytes(data, wal=False) <= MAX_WAL_BYTES
    assert "Traceback" not in product.output()
    return {"statuses": statuses, "before": before, "grown": grown, "left": size_bytes(data, wal=False) - rest}


def size_bytes(data: Path, *, wal: bool = True) -> int:
    return sum(size for name, size in areas(data).items() if wal or not name.endswith("-wal"))


def settled(data: Path) -> None:
    """Wait until no job waits or runs."""

    def is_idle() -> bool:
        with contextlib.closing(sqlite3.connect(f"file:{data / 'muniment.sqlite3'}?mode=ro", uri=True)) as database:
            now = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime())
            waiting = "SELECT count(*) FROM jobs_job WHERE state = 'running' OR (state = 'queued' AND run_at <= ?)"
            return database.execute(waiting, [now]).fetchone()[0] == 0

    wait_until(is_idle, within_s=120, what="the end of all jobs")
