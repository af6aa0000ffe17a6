"""Documents, and the upload application called in process."""

import asyncio
import hashlib
import itertools
from collections.abc import Iterable
from typing import Any

import msgspec
from django.db import connections

from muniment.documents import records, uploads
from muniment.documents.http import UploadLink
from muniment.documents.models import Document
from muniment.documents.records import Upload
from muniment.jobs import queue
from muniment.kernel.actor import Actor

BASE = "https://registry.example"
SMALL = b"Minutes of the harbour board."
_numbers = itertools.count(1)


def begin(owner: Actor, slug: str, content: bytes = SMALL, name: str = "minutes.txt", **more: Any) -> Upload:
    return uploads.begin_upload(owner, slug, name, len(content), **{"base_url": BASE, **more})


def token_of(upload: Upload) -> str:
    """Return the secret part of a link."""
    return upload.url.rpartition("/")[2]


def send(upload: Upload | str, content: bytes = SMALL, content_type: str = "") -> uploads.IncomingUpload:
    """Receive an upload, or what is sent to a token, without HTTP."""
    transfer = uploads.claim_link(upload if isinstance(upload, str) else token_of(upload), len(content), content_type)
    records.storage().write(transfer.key, content)
    uploads.record(transfer, hashlib.sha256(content).hexdigest(), len(content))
    return transfer


def uploaded(owner: Actor, slug: str, content: bytes = SMALL, name: str = "minutes.txt", **more: Any) -> Document:
    """Upload a document in all three steps."""
    upload = begin(owner, slug, content, name, **more)
    send(upload, content)
    return uploads.complete_upload(owner, upload.upload_id)


def do_jobs() -> None:
    """Run all queued jobs in this thread."""
    while run := queue.claim("tests"):
        result = run.handler.work(run)
        if not run.finished:
            run.finish(result)


def blob_keys() -> list[str]:
    return sorted(blob.key for blob in records.storage().blobs())


class Link:
    """The upload application, called as the server calls it."""

    def __init__(self) -> None:
        self._application = UploadLink(self._call)

    @staticmethod
    async def _call(operation: Any, *args: Any) -> Any:
        def run() -> Any:
            try:
                return operation(*args)
            finally:
                connections.close_all()

        return await asyncio.to_thread(run)

    def put(
        self, target: Upload | str, pieces: Iterable[bytes] | bytes, *, hang_up: bool = False, **headers: str
    ) -> Any:
        """Send a file; raise its Problem. Header names use underscores for hyphens."""
        return asyncio.run(self.put_async(target, pieces, hang_up=hang_up, **headers))

    async def put_async(
        self,
        target: Upload | str,
        pieces: Iterable[bytes] | bytes,
        *,
        hang_up: bool = False,
        method: str = "PUT",
        **headers: str,
    ) -> Any:
        token = target if isinstance(target, str) else token_of(target)
        given = {"content_length": str(len(pieces)), **headers} if isinstance(pieces, bytes) else headers
        waiting = iter([pieces] if isinstance(pieces, bytes) else pieces)
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            await asyncio.sleep(0)
            piece = next(waiting, None)
            if piece is not None:
                return {"type": "http.request", "body": piece, "more_body": True}
            if hang_up:
                return {"type": "http.disconnect"}
            return {"type": "http.request", "body": b""}  # the last, as more_body is false by default

        async def send_on(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": f"/uploads/{token}",
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in given.items()],
        }
        await self._application(scope, receive, send_on)
        if not sent:
            return None
        assert sent[0]["status"] == 201
        return msgspec.json.decode(sent[1]["body"])["data"]
