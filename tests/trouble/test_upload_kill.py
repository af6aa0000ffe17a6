"""
The server is killed as a power cut would, in the middle of an upload, of completing and of the sweep.

Afterwards no document lacks its blob, one sweep leaves no blob without its row, the quota is right, and
what was under way can be done again.
"""

import http.client
import os
import random
import threading
import time
from datetime import timedelta

import pytest

from make import files
from make import registry as make
from make.documents import begin, blob_keys, send
from muniment.accounts import tokens
from muniment.accounts.models import Account
from muniment.documents import cleanup, operations, records, uploads
from muniment.documents.models import Document, DocumentState
from muniment.jobs import queue
from muniment.kernel.actor import SCOPES
from muniment.kernel.ids import now
from services.ports import wait_until
from services.product import Product
from services.uploads import Owner

pytestmark = [
    pytest.mark.django_db(transaction=True),
    pytest.mark.sqlite,  # what is killed is the server; the database's own recovery is not ours to test
]
CONTENT = files.pdf("The board meets.", size_bytes=6 << 20)


class Scene:
    """An owner, and a server over this test's own database and folder that dies again and again."""

    def __init__(self, stand) -> None:
        self.owner = make.owner()
        self.slug = make.draft(self.owner).slug
        self.token = tokens.create_token(self.owner, "tests", permitted=SCOPES).text
        self.folder = stand.folder

    def start(self) -> Product:
        product = Product(self.folder)
        product.start(within_s=60)
        product.wait_ready(within_s=120)
        return product

    def client(self, product: Product) -> Owner:
        client = Owner.__new__(Owner)
        client.product, client.slug, client.token = product, self.slug, self.token
        return client

    def whole_after_one_sweep(self) -> None:
        """Check what must hold however the server ended."""
        assert cleanup.examine().missing == []
        cleanup.sweep(at=now() + timedelta(seconds=records.RECEIVING_S + 60))
        found = cleanup.examine()
        assert (found.missing, found.orphans, list(records.storage().unfinished())) == ([], [], [])
        rows = Document.objects.exclude(blob_key="")
        assert blob_keys() == sorted(row.blob_key for row in rows)
        alive = Document.objects.filter(records.alive(now()), deleted_at=None)
        quota = operations.quota(self.owner)
        assert quota.used_bytes + quota.reserved_bytes == sum(row.size_bytes for row in alive)

    def during_an_upload(self, product: Product) -> None:
        upload = begin(self.owner, self.slug, CONTENT, "a.pdf", base_url=product.url)
        path = upload.url.removeprefix(product.url)
        connection = http.client.HTTPConnection("127.0.0.1", product.port, timeout=30)
        connection.putrequest("PUT", path)
        connection.putheader("Content-Length", str(len(CONTENT)))
        connection.endheaders()
        connection.send(CONTENT[: random.randrange(len(CONTENT) * 9 // 10, len(CONTENT))])
        taken = Document.objects.filter(pk=upload.upload_id, attempt=1)
        wait_until(taken.exists, within_s=60, what="the transfer")
        product.kill()
        connection.close()
        self.whole_after_one_sweep()
        again = self.start()
        assert again.request("PUT", path, {}, CONTENT).status == 201
        assert uploads.complete_upload(self.owner, upload.upload_id).state == DocumentState.READY
        again.kill()

    def during_completing(self, product: Product) -> None:
        upload = begin(self.owner, self.slug, CONTENT, "a.pdf")
        send(upload, CONTENT)
        client = self.client(product)

        def complete() -> None:
            try:
                client.call("complete_document_upload", uploadId=upload.upload_id)
            except OSError:
                return  # the server died under it

        asking = threading.Thread(target=complete)
        asking.start()
        time.sleep(random.uniform(0, 0.08))  # the moment of death is the point
        product.kill()
        asking.join(30)
        assert Document.objects.get(pk=upload.upload_id).state in {DocumentState.UPLOADED, DocumentState.READY}
        self.whole_after_one_sweep()
        assert uploads.complete_upload(self.owner, upload.upload_id).state == DocumentState.READY

    def during_the_sweep(self, product: Product) -> None:
        for number in range(40):
            records.storage().write(f"documents/{os.urandom(8).hex()}/{number}", b"orphan")
        for _ in range(5):
            upload = begin(self.owner, self.slug)
            send(upload)
            Document.objects.filter(pk=upload.upload_id).update(changed_at=now() - timedelta(days=2))
        kept = len(blob_keys())
        queue.enqueue("documents.grown_old")
        wait_until(lambda: len(blob_keys()) < kept, within_s=60, what="the sweep", every_s=0.002)
        product.kill()
        self.whole_after_one_sweep()

    def clear(self) -> None:
        for key in blob_keys():
            records.storage().delete(key)
        for log in self.folder.parent.glob(f"{self.folder.name}-*.log"):
            log.unlink()


@pytest.fixture
def scene(stand):
    made = Scene(stand)
    assert Account.objects.exists()
    yield made
    made.clear()


@pytest.mark.whole(keeps=1)
@pytest.mark.parametrize("moment", ["during_an_upload", "during_completing", "during_the_sweep"])
def test_a_kill_leaves_rows_and_blobs_together(scene, moment):
    product = scene.start()
    try:
        getattr(scene, moment)(product)
    finally:
        if product._process is not None:
            product.kill()


@pytest.mark.proof
@pytest.mark.timeout(1700)
def test_fifty_kills_leave_rows_and_blobs_together(scene):
    moments = ["during_an_upload", "during_completing", "during_the_sweep"]
    for kill in range(50):
        product = scene.start()
        try:
            getattr(scene, moments[kill % 3])(product)
        finally:
            if product._process is not None:
                product.kill()
        Document.objects.filter(state=DocumentState.READY).update(deleted_at=now() - timedelta(days=40))
