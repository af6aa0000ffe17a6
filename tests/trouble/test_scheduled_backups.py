"""Backups made inside `serve` while it is written and killed: each is whole, with what was acknowledged before it."""

import json
import shutil
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from http.client import HTTPException
from pathlib import Path
from typing import NamedTuple, Self

import psycopg
import pytest

from services.ports import wait_until
from services.product import Product, run
from services.uploads import Owner

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1800)]
KILLS = 3


class Editor:
    """Edits a listing and uploads documents without a pause, and remembers when each was acknowledged."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.number = 0
        self.at: list[tuple[float, int, str]] = []
        """Time, number of the edit, and document, of each acknowledged pair."""
        self.took: list[float] = []
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._work)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.set()
        self._thread.join(60)

    def _work(self) -> None:
        while not self._ended.is_set():
            began = time.monotonic()
            try:
                self.owner.call(
                    "update_my_company", slug=self.owner.slug, changes={"description": f"{self.number + 1}"}
                )
                self.took.append(time.monotonic() - began)
                text = f"Minutes {self.number}.\n" * 50
                found = self.owner.call("upload_document", companySlug=self.owner.slug, filename="m.txt", text=text)
                self.at.append((time.time(), self.number + 1, found["data"]["documentId"]))
                self.number += 1
                time.sleep(0.3)  # an owner, not a flood: the copies of files have a low priority
            except (OSError, HTTPException, AssertionError, KeyError):  # the server was killed
                time.sleep(0.02)


def records(place):
    found = [json.loads(file.read_bytes()) for file in sorted(place.glob("muniment-*.json"))]
    return [(each["name"], datetime.fromisoformat(each["madeAt"]).timestamp()) for each in found]


class Database(NamedTuple):
    """
    Where an instance of this test is.

    Args:
        url: of the instance; "" is the file in its folder.
        restored: returns the URL of an empty database for a restored one.
        rows: returns the rows of a statement, from the database at a folder and URL.
    """

    url: str
    restored: Callable[[str], str]
    rows: Callable[[Path, str, str], list[tuple[str, str]]]


def rows_of_file(data: Path, _: str, statement: str) -> list[tuple[str, str]]:
    with closing(sqlite3.connect(data / "muniment.sqlite3")) as database:
        return database.execute(statement).fetchall()


def rows_of_server(_: Path, url: str, statement: str) -> list[tuple[str, str]]:
    with psycopg.connect(url) as database:
        return database.execute(statement).fetchall()


@pytest.mark.sqlite
def test_backups_while_serving_are_whole_also_when_the_server_is_killed(tmp_path):
    prove(tmp_path, Database("", lambda _: "", rows_of_file))


@pytest.mark.postgresql
def test_on_postgresql_backups_while_serving_are_whole_also_when_the_server_is_killed(tmp_path, postgres):
    prove(tmp_path, Database(postgres.create("backed_up"), postgres.create, rows_of_server))


def prove(folder: Path, database: Database) -> None:
    """Serve, write and kill; then restore every backup, and compare it with what was acknowledged before it."""
    data, place = folder / "data", folder / "place"
    settings = {
        "backups": str(place),
        "document_quota_mb": "5000",
        "rate_limit": "off",
        "account_writes": "off",
        "database_url": database.url,
    }
    data.mkdir()
    (data / "registry.toml").write_text('[backups]\nkeep = "recent=50"\n')
    product = Product(data, constants={"muniment.backup.scheduled.schedule.INTERVAL_S": 2}, **settings)
    product.start(within_s=60)
    product.wait_ready("/readyz?writes", within_s=180)
    owner = Owner(product, **settings)
    with Editor(owner) as editor:
        for kill in range(KILLS):
            wait_until(lambda kill=kill: len(records(place)) > kill, within_s=300, what="a backup")
            wait_until(lambda: list(place.glob(".*.partial")), within_s=300, what="a backup that is being written")
            product.kill()
            product.start(within_s=60)
            product.wait_ready("/readyz?writes", within_s=180)
        wait_until(lambda: len(records(place)) > KILLS, within_s=300, what="a backup after the kills")
        assert "muniment_backup_overdue 0" in product.metrics()
    product.stop()
    listed = run("backups", "--verify", data=data, timeout_s=600, **settings).stdout
    assert listed.count("OK  ") == len(records(place)), listed
    told = run("doctor", data=data, **settings).stdout
    assert "OK    backups: the last" in told
    for name, made_at in records(place):
        target, url = folder / name, database.restored(name.replace("-", "_").lower())
        at = datetime.fromtimestamp(made_at + 0.000001, UTC).isoformat()
        empty = {**settings, "backups": "", "database_url": url}
        said = run("restore", "--at", at, str(place), data=target, timeout_s=600, **empty).stdout
        assert f"{name} of " in said
        slug = f"SELECT slug, description FROM registry_company WHERE slug = '{owner.slug}'"
        ((_, number),) = database.rows(target, url, slug)
        kept = dict(database.rows(target, url, "SELECT id, blob_key FROM documents_document"))
        before = [(edit, document) for when, edit, document in editor.at if when < made_at]
        assert int(number or 0) >= (before[-1][0] if before else 0)
        for _, document in before:
            assert (target / "blobs" / kept[document]).is_file()
        shutil.rmtree(target)
    took = sorted(editor.took)
    figures = f"{len(records(place))} backups beside {editor.number} edits, median {took[len(took) // 2] * 1000:.0f} ms"
    print(f"{figures}, 99th percentile {took[len(took) * 99 // 100] * 1000:.0f} ms")  # noqa: T201 - the figure
