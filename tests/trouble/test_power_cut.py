"""Power cuts during mixed writes: every acknowledged change and document is there after the restart."""

import hashlib
import random
import sqlite3
import threading
import time
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPException

import psycopg
import pytest

from services.disk import Disk
from services.ports import wait_until
from services.product import Product
from services.uploads import Owner

pytestmark = [pytest.mark.proof, pytest.mark.timeout(1500)]
CUTS = 20


class Writer:
    """Writes until the power is cut, and remembers what was acknowledged."""

    def __init__(self, owner: Owner) -> None:
        self.owner = owner
        self.description = 0
        self.documents: dict[str, str] = {}
        """The SHA-256 of acknowledged documents, by id."""
        self.refused: list[object] = []
        self._is_cut = threading.Event()

    def edit(self) -> None:
        while not self._is_cut.is_set():
            number = self.description + 1
            if "data" in self._call(
                "update_my_company", slug=self.owner.slug, changes={"description": f"No. {number}"}
            ):
                self.description = number

    def upload(self) -> None:
        while not self._is_cut.is_set():
            text = f"The board meets, {random.random()}.\n" * random.randrange(1, 120)
            name = f"minutes-{len(self.documents)}.txt"
            found = self._call("upload_document", companySlug=self.owner.slug, filename=name, text=text)
            if "data" in found:
                self.documents[found["data"]["documentId"]] = hashlib.sha256(text.encode()).hexdigest()

    def _call(self, name: str, **arguments: object) -> dict[str, object]:
        try:
            found = self.owner.call(name, **arguments)
        except (OSError, HTTPException, AssertionError):  # the server died, or says that it cannot write
            time.sleep(0.01)
            return {}
        if "data" not in found and found["error"]["code"] != "internal_error":  # of the disk that is gone
            self.refused.append(found)
        return found

    def until_the_cut(self, disk: Disk, product: Product, after_s: float) -> None:
        """Cut the power *after_s* after a change and a document were acknowledged."""
        edits, documents = self.description, len(self.documents)
        threads = [threading.Thread(target=each) for each in (self.edit, self.upload, self.upload)]
        for thread in threads:
            thread.start()
        wait_until(
            lambda: self.description > edits and len(self.documents) > documents, within_s=60, what="changes of both"
        )
        time.sleep(after_s)  # the moment of the cut is the point
        disk.cut()
        self._is_cut.set()
        product.kill()
        for thread in threads:
            thread.join(60)
        # The process of statements ends when it finds the one that started it gone.
        wait_until(disk.is_idle, within_s=20, what="the end of all processes")
        disk.unmount()


@pytest.mark.sqlite
def test_nothing_acknowledged_is_lost_by_power_cuts(tmp_path):
    with Disk(tmp_path) as disk:
        _cut_again_and_again(disk, _stored_in_file)


@pytest.mark.postgresql
def test_on_postgresql_no_acknowledged_document_is_lost_by_power_cuts_of_the_node(tmp_path, postgres):
    """The database is on another disk; documents, keys and the copy of what is published are on the one that is cut."""
    postgres.drop("cut")
    url = postgres.create("cut")

    def stored(_: Disk, slug: str) -> tuple[str, dict[str, str]]:
        with psycopg.connect(url) as database:
            found = database.execute("SELECT description FROM registry_company WHERE slug = %s", (slug,)).fetchone()
            assert found is not None
            rows = database.execute("SELECT id, blob_key FROM documents_document WHERE state = 'ready'")
            return found[0], dict(rows.fetchall())

    with Disk(tmp_path) as disk:
        _cut_again_and_again(disk, stored, database_url=url)


Stored = Callable[[Disk, str], tuple[str, dict[str, str]]]
"""Returns the description of a listing and the keys of the documents that are ready."""


def _cut_again_and_again(disk: Disk, stored: Stored, **settings: str) -> None:
    lost: list[str] = []
    edits = documents = 0
    with Product(disk.path, document_quota_mb="5000", **settings) as product:
        product.wait_ready(within_s=60)
        owner = Owner(product, **settings)
        writer = Writer(owner)
        for cut in range(CUTS):
            if cut:
                disk.mount()
                product.start(within_s=60)
                product.wait_ready(within_s=60)
            before = (writer.description, len(writer.documents))
            writer = _next(writer, owner)
            writer.until_the_cut(disk, product, random.uniform(0, 2))
            edits += writer.description - before[0]
            documents += len(writer.documents) - before[1]
            assert writer.refused == []
            disk.mount()
            lost += _missing(disk, writer, stored)
            disk.unmount()
        figures = f"{edits} acknowledged changes and {documents} documents, {len(lost)} lost"
        print(f"{CUTS} power cuts: {figures}")  # noqa: T201 - the figure, for who runs it with -s
    assert edits >= CUTS
    assert documents >= CUTS
    assert lost == []


def _next(former: Writer, owner: Owner) -> Writer:
    writer = Writer(owner)
    writer.description, writer.documents = former.description, former.documents
    return writer


def _stored_in_file(disk: Disk, slug: str) -> tuple[str, dict[str, str]]:
    with closing(sqlite3.connect(disk.path / "muniment.sqlite3")) as database:
        assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
        (found,) = database.execute("SELECT description FROM registry_company WHERE slug = ?", (slug,))
        rows = dict(database.execute("SELECT id, blob_key FROM documents_document WHERE state = 'ready'"))
    return str(found[0] or ""), rows


def _missing(disk: Disk, writer: Writer, stored: Stored) -> list[str]:
    """Return what was acknowledged and is not on the disk."""
    description, rows = stored(disk, writer.owner.slug)
    last = int(description.removeprefix("No. ") or 0)
    missing = [f"change {number}" for number in range(last + 1, writer.description + 1)]
    for key, sha256 in writer.documents.items():
        blob = disk.path / "blobs" / rows.get(key, "missing")
        if not blob.is_file() or hashlib.sha256(blob.read_bytes()).hexdigest() != sha256:
            missing.append(f"document {key}")
    return missing
