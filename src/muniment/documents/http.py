"""
Upload endpoint and download endpoint, streamed: ``PUT /uploads/{token}`` and ``GET /downloads/{token}``.

A browser that opens an upload link gets a page, whose form posts the file to the same link.
"""

import asyncio
import hashlib
import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from http import HTTPStatus
from typing import Any, Final, NamedTuple

import msgspec

from muniment.documents import downloading, records, uploads
from muniment.documents.records import storage
from muniment.kernel.asgi import Application, Message, Receive, Scope, Send
from muniment.kernel.http.form_file import FormFile
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, MethodNotAllowed, Problem, TooMany, Unavailable

Call = Callable[..., Awaitable[Any]]

PREFIX: Final = "/uploads/"
DOWNLOADS: Final = "/downloads/"
MAX_AT_ONCE: Final = 16
"""Concurrent uploads per process; each uses about 10 MB."""
MAX_OF_ADDRESS: Final = 8
"""Maximum number of these uploads from one client address."""
PIECE_BYTES: Final = 1 << 20
_OF_BODY: Final = frozenset({b"content-type", b"content-length", b"transfer-encoding"})
OUTCOME: Final = "muniment.upload"
"""The state of a request for the page of a link, after its form was sent: a Problem, or the name of the file."""
_ANY_ORIGIN: Final = (b"access-control-allow-origin", b"*")
"""The link is the credential, so a page of any origin that knows it may send the file, such as an app in a chat."""
_PREFLIGHT: Final = (
    (b"access-control-allow-methods", b"PUT, POST"),
    (b"access-control-allow-headers", b"Content-Type"),
    (b"access-control-max-age", b"86400"),
    (b"allow", b"GET, HEAD, OPTIONS, POST, PUT"),
    (b"cache-control", b"no-store"),
    _ANY_ORIGIN,
)
log = logging.getLogger(__name__)


class Disconnected(Exception):  # noqa: N818 - not an error
    """The client disconnected."""


class SentFile(NamedTuple):
    """A file on its way: its bytes as the messages of a body, its size if it is known, and its type or nothing."""

    receive: Receive
    length: int | None
    content_type: str


class UploadLink:
    """
    The ASGI application of uploads. Problems are raised to the server.

    Args:
        call: runs an operation in a thread.
        pages: renders the page of a link.
    """

    def __init__(self, call: Call, pages: Application | None = None) -> None:
        self._call = call
        self._pages = pages
        self._running = 0
        self._of_address: Counter[str] = Counter()
        self.results: dict[str, int] = {"received": 0, "refused": 0, "broken off": 0, "not stored": 0}
        """Uploads by outcome, since the start of the process."""
        self.received_bytes = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        method, headers = scope["method"], dict(scope["headers"])
        content_type = headers.get(b"content-type", b"")
        if method == "OPTIONS":
            await send({"type": "http.response.start", "status": 204, "headers": _PREFLIGHT})
            await send({"type": "http.response.body", "body": b""})
        elif self._pages is not None and method in {"GET", "HEAD"} and _wants_page(headers):
            await self._pages(scope, receive, send)
        elif method == "POST" and content_type.lower().startswith(b"multipart/form-data"):
            await self._take_form(scope, FormFile(content_type, receive), send)
        elif method != "PUT":
            raise MethodNotAllowed(method, "PUT")
        else:
            file = SentFile(receive, _length(headers), content_type.decode("latin-1"))
            answer = await self._take_file(scope, file)
            if answer is not None:
                await _answer(send, answer)

    async def _take_form(self, scope: Scope, form: FormFile, send: Send) -> None:
        """Take the file of the page's form and keep it; respond with JSON to a script, otherwise with the page."""
        outcome: Problem | JSONObject
        try:
            if not await form.open():
                return
            await self._call(uploads.require_type, scope["path"].removeprefix(PREFIX), form.name)
            answer = await self._take_file(scope, SentFile(form.receive, None, ""), is_form=True)
            if answer is None:
                return
            outcome = answer
        except Problem as problem:
            await form.discard(records.max_bytes())
            outcome = problem
        if self._pages is not None and _wants_page(dict(scope["headers"])):
            headers = [(name, value) for name, value in scope["headers"] if name not in _OF_BODY]
            state = {**scope.get("state", {}), OUTCOME: outcome}
            await self._pages({**scope, "method": "GET", "headers": headers, "state": state}, _nothing, send)
        elif isinstance(outcome, Problem):
            raise outcome
        else:
            await _answer(send, outcome)

    async def _take_file(self, scope: Scope, file: SentFile, *, is_form: bool = False) -> JSONObject | None:
        """Return the answer; None if the client disconnected."""
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
            answer = await self._take(scope, file, is_form=is_form)
            result = "received"
            self.received_bytes += answer["sizeBytes"]
        except Disconnected:
            result = "broken off"
            return None
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
        return answer

    async def _take(self, scope: Scope, file: SentFile, *, is_form: bool) -> JSONObject:
        token = scope["path"].removeprefix(PREFIX)
        transfer: uploads.IncomingUpload = await self._call(uploads.claim_link, token, file.length, file.content_type)
        stream = _Stream(self._call, transfer, file.receive)
        try:
            await storage().write_stream(transfer.key, stream.pieces())
        except BaseException as error:
            await self._call(uploads.release_link, transfer)
            if stream.fault is not None:  # the storage library wraps the stream's exception
                raise stream.fault from None
            import obstore  # already loaded by the storage; slow to import otherwise

            if isinstance(error, OSError | obstore.exceptions.BaseError):
                log.exception("could not store an uploaded file")
                raise Unavailable("The file could not be stored.", "Try again in a few seconds.") from None
            raise
        sha256 = stream.digest.hexdigest()
        await self._call(uploads.record, transfer, sha256, stream.sent_bytes)
        answer = {"uploadId": transfer.document_id, "sizeBytes": stream.sent_bytes, "sha256": sha256}
        if is_form:
            document = await self._call(uploads.complete_received, transfer)
            return {**answer, "filename": document.filename, "state": document.state}
        return {
            **answer,
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

    def __init__(self, call: Call, pages: Application | None = None) -> None:
        self.uploads = UploadLink(call, pages)
        self._down = DownloadLink(call)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        endpoint = self._down if scope["path"].startswith(DOWNLOADS) else self.uploads
        await endpoint(scope, receive, send)


class _Stream:
    """The request body: counted, hashed, and rejected as soon as it exceeds the announced size."""

    def __init__(self, call: Call, transfer: uploads.IncomingUpload, receive: Receive) -> None:
        self._call = call
        self._transfer = transfer
        self._receive = receive
        self.digest = hashlib.sha256()
        self.sent_bytes = 0
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
        announced = self._transfer.size_bytes
        alive_at = time.monotonic()
        waiting = bytearray()
        has_more = True
        while has_more:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise Disconnected
            part = message.get("body", b"")
            has_more = message.get("more_body", False)
            self.sent_bytes += len(part)
            if self.sent_bytes > announced:
                raise uploads.too_large(announced)
            self.digest.update(part)
            waiting += part
            if len(waiting) >= PIECE_BYTES:
                yield bytes(waiting)
                waiting.clear()
            if time.monotonic() - alive_at > records.ALIVE_EVERY_S:  # a piece takes long on a slow connection
                alive_at = time.monotonic()
                if not await self._call(uploads.renew_lease, self._transfer.document_id, self._transfer.attempt):
                    raise uploads.superseded()
        if not self.sent_bytes:
            raise BadRequest("The file is empty.", "Send a file with content.")
        if self.sent_bytes < announced and not self._transfer.has_any_size:
            raise uploads.wrong_size(self.sent_bytes, announced)
        if waiting:
            yield bytes(waiting)


def _wants_page(headers: dict[bytes, bytes]) -> bool:
    return b"text/html" in headers.get(b"accept", b"")


async def _nothing() -> Message:
    return {"type": "http.request", "body": b"", "more_body": False}


def _length(headers: dict[bytes, bytes]) -> int | None:
    declared = headers.get(b"content-length")
    if declared is None:
        return None
    if not declared.isdigit() or len(declared) > 15:
        raise BadRequest("The Content-Length is not a number.", "Let your client set it.")
    return int(declared)


async def _answer(send: Send, answer: JSONObject) -> None:
    body = msgspec.json.encode({"data": answer}) + b"\n"
    headers = [
        (b"content-type", b"application/json"),
        (b"content-length", b"%d" % len(body)),
        (b"cache-control", b"no-store"),
        _ANY_ORIGIN,
    ]
    await send({"type": "http.response.start", "status": 201, "headers": headers})
    await send({"type": "http.response.body", "body": body})
