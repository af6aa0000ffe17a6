"""
Answers to calls that wait: JSON, or an event stream from the first news of progress on.

A client that accepts event streams gets one as soon as the call reports progress, or after 15 s, with pings from then
on, so that no proxy takes the connection for idle. When the client goes away, the call is canceled.

Source: MCP specification 2026-07-28 and 2025-11-25, Streamable HTTP, progress.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from muniment.kernel.asgi import Receive, Send
from muniment.mcp.declarations import Report
from muniment.mcp.protocol.http import CORS, Headers, Reply

PING_S: Final = 15.0
_HEADERS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    *CORS,
]


class EventStream:
    """
    The event stream of one call, which begins with its first event.

    Args:
        token: the progress token of the call; None if it asked for none.
    """

    def __init__(self, send: Send, token: str | int | None) -> None:
        self._send, self._token = send, token
        self.is_open = False

    @property
    def report(self) -> Report | None:
        return None if self._token is None else self._report

    async def _report(self, done: int, total: int, words: str) -> None:
        params = {"progressToken": self._token, "progress": done, "total": total, "message": words}
        note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}
        await self._write(_event(msgspec.json.encode(note)))

    async def ping(self) -> None:
        await self._write(b": ping\r\n\r\n")

    async def finish(self, body: bytes) -> None:
        await self._write(_event(body), is_last=True)

    async def _write(self, data: bytes, *, is_last: bool = False) -> None:
        if not self.is_open:
            self.is_open = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def answer(
    call: Callable[[Report | None], Awaitable[Reply]], stream: EventStream | None, receive: Receive
) -> Reply | None:
    """
    Return the reply of *call*; None if *stream* has sent it or the client went away.

    Args:
        call: gets the function that reports progress, if the client wants to know it.
        stream: None for a client that accepts JSON only.
    """
    work = asyncio.ensure_future(call(stream.report if stream else None))
    gone = asyncio.ensure_future(_gone(receive))
    try:
        while not work.done():
            await asyncio.wait({work, gone}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                break
            if gone.done():
                return None
            if stream is not None:
                await stream.ping()
        reply = work.result()
        if stream is None or not stream.is_open:
            return reply
        await stream.finish(reply.body)
        return None
    finally:
        work.cancel()
        gone.cancel()
        await asyncio.gather(work, gone, return_exceptions=True)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _event(body: bytes) -> bytes:
    return b"event: message\r\ndata: " + body + b"\r\n\r\n"
