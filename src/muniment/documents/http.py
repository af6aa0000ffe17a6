"""Upload endpoint and download endpoint, streamed: ``PUT /uploads/{token}`` and ``GET /downloads/{token}``."""

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final

import msgspec

from muniment.documents import downloading, receiving, records
from muniment.documents.records import storage
from muniment.kernel.asgi import Receive, Scope, Send
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, MethodNotAllowed, Problem, TooMany, Unavailable

Call = Callable[..., Awaitable[Any]]

PREFIX: Final = "/uploads/"
DOWNLOADS: Final = "/downloads/"
MAX_AT_ONCE: Final = 16
"""Concurrent uploads per process; each uses about 10 MB."""
MAX_OF_ADDRESS: Final = 8
"""Of these, uploads of one client address."""
PIECE_BYTES: Final = 1 << 20
log = logging.getLogger(__name__)


class Disconnected(Exception):  # noqa: N818 - not an error
    """The client disconnected."""


class UploadLink:
    """The ASGI application of uploads; *call* runs an operation in a thread. Problems are raised to the server."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._running = 0
        self._of_address: Counter[str] = Counter()
        self.results: dict[str, int] = {"received": 0, "refused": 0, "broken off": 0, "not stored": 0}
        """Uploads by outcome, since the start of the process."""
        self.received_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "PUT":
            raise MethodNotAllowed(scope["method"], "PUT")
        if self._running >= MAX_AT_ONCE:
            raise Unavailable("Too many uploads are in progress.", "Try again in a few seconds.", retry_after_s=5)
        address = scope.get("state", {}).get("client", "")
        if self._of_address[address] >= MAX_OF_ADDRESS:
            message = "Too many uploads from this address are in progress."
            raise TooMany(message, "Finish one of them, then try again.", retry_after_s=5)
        self._running += 1
        self._of_address[address] += 1
        result = "not stored"
        try:
            answer = await self._take(scope, receive)
            result = "received"
            self.received_bytes += answer["sizeBytes"]
        except Disconnected:
            result = "broken off"
            return
        except Problem as problem:
            if problem.status < HTTPStatus.INTERNAL_SERVER_ERROR:
                result = "refused"
            raise
        finally:
            self._running -= 1
            self._of_address[address] -= 1
            if not self._of_address[address]:
                del self._of_address[address]
            self.results[result] += 1
        await _answer(send, answer)

    async def _take(self, scope: Scope, receive: Receive) -> JSONObject:
        headers = dict(scope["headers"])
        transfer: receiving.IncomingUpload = await self._call(
            receiving.claim_link,
            scope["path"].removeprefix(PREFIX),
            _length(headers),
            headers.get(b"content-type", b"").decode("latin-1"),
        )
        stream = _Stream(self._call, transfer, receive)
        try:
            await storage().write_stream(transfer.key, stream.pieces())
        except BaseException as error:
            await self._call(receiving.release_link, transfer)
            if stream.fault is not None:  # the storage library wraps the stream's exception
                raise stream.fault from None
            import obstore  # already loaded by the storage; slow to import otherwise

            if isinstance(error, OSError | obstore.exceptions.BaseError):
                log.exception("could not store an uploaded file")
                raise Unavailable("The file could not be stored.", "Try again in a few seconds.") from None
            raise
        sha256 = stream.digest.hexdigest()
        await self._call(receiving.record, transfer, sha256)
        return {
            "uploadId": transfer.document_id,
            "sizeBytes": transfer.size_bytes,
            "sha256": sha256,
            "state": "uploaded",
            "next": "Call complete_document_upload with this uploadId.",
        }


class DownloadLink:
    """The ASGI application of downloads; *call* runs an operation in a thread. Problems are raised to the server."""

    def __init__(self, call: Call) -> None:
        self._call = call

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's signature
        """Send one file, at the client's speed, after it was read once to compare it with its digest."""
        if scope["method"] not in {"GET", "HEAD"}:
            raise MethodNotAllowed(scope["method"], "GET, HEAD")
        token = scope["path"].removeprefix(DOWNLOADS)
        outgoing: downloading.Download = await self._call(downloading.find_download, token)
        start = {"type": "http.response.start", "status": 200, "headers": outgoing.headers}
        if scope["method"] == "HEAD":
            await send(start)
        else:
            await asyncio.to_thread(downloading.require_whole, outgoing)
            try:
                pieces = await storage().read_stream(outgoing.key)
            except FileNotFoundError:
                log.exception("the blob of a document is missing")
                raise Unavailable("The file is not available.", "Contact the operator of this registry.") from None
            await send(start)
            async for piece in pieces:
                await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b""})


class FileLinks:
    """Both endpoints, by path."""

    def __init__(self, call: Call) -> None:
        self.uploads = UploadLink(call)
        self._down = DownloadLink(call)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (self._down if scope["path"].startswith(DOWNLOADS) else self.uploads)(scope, receive, send)


class _Stream:
    """The request body: counted, hashed, and rejected as soon as it exceeds the announced size."""

    def __init__(self, call: Call, transfer: receiving.IncomingUpload, receive: Receive) -> None:
        self._call = call
        self._transfer = transfer
        self._receive = receive
        self.digest = hashlib.sha256()
        self.fault: Problem | Disconnected | None = None

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the body in pieces of about a megabyte."""
        try:
            async for piece in self._pieces():
                yield piece
        except (Problem, Disconnected) as error:
            self.fault = error
            raise

    async def _pieces(self) -> AsyncIterator[bytes]:
        announced, sent, alive_at = self._transfer.size_bytes, 0, time.monotonic()
        waiting, more = bytearray(), True
        while more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part, more = message.get("body", b""), message.get("more_body", False)
            sent += len(part)
            if sent > announced:
                raise receiving.too_large(announced)
            self.digest.update(part)
            waiting += part
            if len(waiting) >= PIECE_BYTES:
                yield bytes(waiting)
                waiting.clear()
            if time.monotonic() - alive_at > records.ALIVE_EVERY_S:  # a piece takes long on a slow connection
                alive_at = time.monotonic()
                if not await self._call(receiving.keep_alive, self._transfer):
                    raise receiving.superseded()
        if sent < announced:
            raise receiving.wrong_size(sent, announced)
        if waiting:
            yield bytes(waiting)


def _length(headers: dict[bytes, bytes]) -> int | None:
    given = headers.get(b"content-length")
    if given is None:
        return None
    if not given.isdigit() or len(given) > 15:
        raise BadRequest("The Content-Length is not a number.", "Let your client set it.")
    return int(given)


async def _answer(send: Send, answer: JSONObject) -> None:
    body = msgspec.json.encode({"data": answer}) + b"\n"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
    ]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": body})
