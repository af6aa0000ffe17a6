"""
Answers as CSV: of lists and of statements, written to a file first and sent at the client's pace.

The file has no name and is on the disk of the tables: a slow client holds no snapshot, no process and no memory. When
the room for such files is taken, the slowest of their clients makes room for the next one.
"""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, Final, NamedTuple

from muniment.api.responses import Answer, Response, send_response
from muniment.kernel import fairness
from muniment.kernel.asgi import Scope, Send
from muniment.kernel.csv_text import CsvText
from muniment.kernel.problems import TooMany, Unavailable

log = logging.getLogger(__name__)
CSV: Final = b"text/csv; charset=utf-8"
CHUNK_BYTES: Final = 64 << 10
MAX_LIST_BYTES: Final = 64 << 20
"""Of a list: its texts can be long, and 100,000 companies of the real registry would take 90 MB with all of theirs."""
MAX_UNSENT_BYTES: Final = 512 << 20
"""Files that wait on the disk until their clients have taken them."""
MAX_UNSENT_BYTES_OF_CALLER: Final = 64 << 20
"""An address may hold 256 connections: without a limit, the files that it does not take would fill a disk."""
GRACE_S: Final = 2.0
"""Seconds in which a client is not ended: how fast it reads is not known before."""
MAX_WRITING: Final = 16
MAX_WRITING_OF_CALLER: Final = 2
"""Lists that are being written, which share the two threads of slow reads with searches."""


class Written(NamedTuple):
    """
    What a file has.

    Args:
        cut_by: which of ``rows`` and ``bytes`` cut it.
    """

    rows: int
    cut_by: Sequence[str]


@dataclass
class _Transfer:
    """A file that is being sent."""

    client: str
    size_bytes: int
    began_s: float
    sent_bytes: int = 0
    task: "asyncio.Task[None] | None" = None
    is_ended: bool = False

    def pace(self, now_s: float) -> float:
        return self.sent_bytes / max(now_s - self.began_s, GRACE_S)


class CsvFiles:
    """The files of one process, in *folder*."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._transfers: list[_Transfer] = []
        self._writing: list[str] = []

    @property
    def unsent_bytes(self) -> int:
        return sum([each.size_bytes for each in self._transfers])

    def open(self, client: str) -> IO[bytes]:
        """
        Return an open file without a name.

        Raises:
            TooMany: the client does not take the files that it has asked for.
            Unavailable: no client has had the time to show how slowly it reads.
        """
        unsent_bytes = sum([each.size_bytes for each in self._transfers if each.client == client])
        if unsent_bytes >= MAX_UNSENT_BYTES_OF_CALLER:
            fairness.current().count_refusal("statements")
            raise TooMany("Earlier CSVs are still being sent to this address.", "Take them first.", retry_after_s=5)
        while self.unsent_bytes >= MAX_UNSENT_BYTES:
            self._end_slowest()
        return TemporaryFile(dir=self._folder)

    def _end_slowest(self) -> None:
        """End the transfer to the client that reads most slowly."""
        now_s = time.monotonic()
        known = [each for each in self._transfers if now_s - each.began_s >= GRACE_S]
        if not known:
            raise Unavailable("Too many CSVs are being sent.", "Try again soon, or ask for JSON.", retry_after_s=5)
        slowest = min(known, key=lambda each: each.pace(now_s))
        self._transfers.remove(slowest)
        slowest.is_ended = True
        if slowest.task is not None:
            slowest.task.cancel()

    async def write(self, source: "Source", file: IO[bytes], text: CsvText, pool: Executor, client: str) -> Written:
        """
        Write a list to *file*, in steps that other requests come between.

        Raises:
            TooMany: the statements and CSVs of *client* have taken too much time, or it writes too many at once.
            Unavailable: too many are being written.
        """
        limits = fairness.current()
        limits.check("statements", client)
        if self._writing.count(client) >= MAX_WRITING_OF_CALLER:
            limits.count_refusal("statements")
            raise TooMany("Too many CSVs at once.", "Take one after another.", retry_after_s=1)
        if len(self._writing) >= MAX_WRITING:
            raise Unavailable("Too many CSVs are being written.", "Try again in a few seconds.", retry_after_s=3)
        self._writing.append(client)
        count = 0
        cut_by = ["rows"] if source.is_cut else []
        loop = asyncio.get_running_loop()
        try:
            text.write(source.columns)
            while True:
                step = await loop.run_in_executor(pool, partial(_write_step, source.steps, text, file))
                limits.statements.charge(client, 1_000 * step.cpu_s)
                count += step.rows
                if step.is_last:
                    break
                if file.tell() > MAX_LIST_BYTES:
                    cut_by = ["bytes"]
                    break
        finally:
            self._writing.remove(client)
        return Written(count, cut_by)

    async def send(  # noqa: PLR0917 - what a file is sent with
        self, scope: Scope, send: Send, answer: Answer, file: IO[bytes], name: str, written: Written
    ) -> None:
        """Send a file that is written."""
        size_bytes = file.seek(0, 2)
        file.seek(0)
        made = answer.make(b"")
        lines = b'content-disposition: attachment; filename="%s"\r\n' % name.encode()
        if written.cut_by:
            lines += b"x-muniment-truncated: by=%s; rows=%d\r\n" % (",".join(written.cut_by).encode(), written.rows)
        head = made.head.replace(b"content-length: 0\r\n", b"content-length: %d\r\n" % size_bytes) + lines
        response = Response(200, head, b"")
        if scope["method"] == "HEAD":
            await send_response(send, response, head_only=True)
            return
        client = str(scope.get("state", {}).get("client", ""))
        transfer = _Transfer(client, size_bytes, time.monotonic())
        transfer.task = asyncio.ensure_future(_send_file(send, response, file, transfer))
        self._transfers.append(transfer)
        try:
            await transfer.task
        except asyncio.CancelledError:
            if not transfer.is_ended:
                raise
            # Its connection is closed, since its response is not whole.
            log.info("a CSV of %d bytes was ended at %d: its client was the slowest", size_bytes, transfer.sent_bytes)
        finally:
            if not transfer.is_ended:
                self._transfers.remove(transfer)


class Source(NamedTuple):
    """
    The rows of a list.

    Args:
        name: of its file.
        steps: its rows, each step in some milliseconds; read in a thread of the reader.
        is_cut: whether there are more rows.
        tag: returns the opaque part of the ETag; of rows that changed while they were read, one that nothing has.
    """

    name: str
    columns: Sequence[str]
    steps: Iterator[Sequence[Sequence[Any]]]
    is_cut: bool
    tag: Callable[[], str]


class _Step(NamedTuple):
    rows: int
    cpu_s: float
    is_last: bool


def _write_step(steps: Iterator[Sequence[Sequence[Any]]], text: CsvText, file: IO[bytes]) -> _Step:
    began_s = time.thread_time()
    rows = next(steps, None)
    for row in rows or ():
        text.write(row)
    file.write(text.take())
    return _Step(len(rows or ()), time.thread_time() - began_s, rows is None)


async def _send_file(send: Send, response: Response, file: IO[bytes], transfer: _Transfer) -> None:
    """Send a file in pieces, each when the client has taken the one before."""
    await send({"type": "http.response.start", "status": response.status, "headers": list(response.headers)})
    while chunk := file.read(CHUNK_BYTES):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
        transfer.sent_bytes += len(chunk)
    await send({"type": "http.response.body", "body": b""})
