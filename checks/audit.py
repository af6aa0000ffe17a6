"""
Check every pinned version of requirements/ against a vulnerability database that speaks OSV's protocol.

Exits with 1 if a version is known to be vulnerable, also if the database cannot be reached with ``--required``.
Without it, an unreachable database is reported, and nothing counts as checked. Source: https://google.github.io/osv.dev/api/.
"""

import argparse
import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

import httpx
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
DATABASE: Final = "https://api.osv.dev"
BATCH: Final = 500
"""A request may contain a thousand queries."""
_PIN = re.compile(r"^([\w.-]+)(?:\[[\w,.-]*\])?==([^\s;\\]+)", re.MULTILINE)

Pin = tuple[str, str]


def pins(locks: Iterable[Path]) -> dict[Pin, list[str]]:
    """Return each pinned name and version with the locks that pin it."""
    found: dict[Pin, list[str]] = {}
    for lock in locks:
        for name, version in _PIN.findall(lock.read_text()):
            found.setdefault((canonicalize_name(name), version), []).append(lock.name)
    return found


def vulnerable(pinned: list[Pin], database: str) -> dict[Pin, list[str]]:
    """
    Return the ids of the known vulnerabilities of each vulnerable version.

    Raises:
        httpx.HTTPError: the database cannot be reached, or does not answer as the protocol says.
    """
    found: dict[Pin, list[str]] = {}
    with httpx.Client(base_url=database, timeout=30) as client:
        for start in range(0, len(pinned), BATCH):
            asked = [(pin, "") for pin in pinned[start : start + BATCH]]
            while asked:
                asked = _ask(client, asked, found)
    return {pin: sorted(set(ids)) for pin, ids in found.items()}


def _ask(client: httpx.Client, asked: list[tuple[Pin, str]], found: dict[Pin, list[str]]) -> list[tuple[Pin, str]]:
    """Send one batch, add what it finds, and return the queries that have another page."""
    queries = [_query(pin, page) for pin, page in asked]
    answer = client.post("/v1/querybatch", json={"queries": queries}).raise_for_status()
    try:
        results: list[dict[str, Any]] = answer.json()["results"]
        pairs = list(zip(asked, results, strict=True))
    except (ValueError, KeyError, TypeError) as error:
        raise httpx.DecodingError(f"an unexpected answer: {error!r}") from error
    again = []
    for (pin, _), result in pairs:
        if ids := [str(each["id"]) for each in result.get("vulns") or ()]:
            found.setdefault(pin, []).extend(ids)
        if page := result.get("next_page_token"):
            again.append((pin, str(page)))
    return again


def _query(pin: Pin, page: str) -> dict[str, Any]:
    query: dict[str, Any] = {"package": {"name": pin[0], "ecosystem": "PyPI"}, "version": pin[1]}
    return {**query, "page_token": page} if page else query


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", default=os.environ.get("AUDIT_DATABASE", DATABASE), help="URL of the database")
    parser.add_argument("--required", action="store_true", help="fail if the database cannot be reached")
    parser.add_argument("locks", nargs="*", type=Path, default=sorted((ROOT / "requirements").glob("*.lock")))
    given = parser.parse_args(arguments)
    pinned = pins(given.locks)
    try:
        found = vulnerable(sorted(pinned), given.database)
    except httpx.HTTPError as error:
        print(f"NOT CHECKED: no vulnerability database is reachable at {given.database}: {error}")
        print("Run make audit where it is, or set AUDIT_DATABASE to the address of a mirror.")
        return 1 if given.required else 0
    for (name, version), ids in sorted(found.items()):
        print(f"{name} {version} ({', '.join(pinned[name, version])}): {', '.join(ids)}")
    print(f"{len(pinned)} pinned versions checked at {given.database}: {len(found)} with known vulnerabilities")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
