"""
Statements about the tables, asked of a process of their own: one at a time, charged to their callers, and kept.

The process is started by the first statement and ends when it is idle. A caller who goes away ends it at once.
"""

import asyncio
import contextlib
import os
import re
import sqlite3
import subprocess
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final, NamedTuple

import msgspec

from muniment import child_process
from muniment.kernel import csv_text, fairness
from muniment.kernel.http.representations import digest
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.problems import BadRequest, TooMany, Unavailable
from muniment.store.database.node_copy import identity
from muniment.store.tables.answering import (
    END,
    HEAD,
    MAX_SQL_BYTES,
    MEMORY_BYTES,
    PART,
    Answered,
    Asked,
    Refused,
    answer,
    limit,
)
from muniment.store.tables.copying import FOLLOWED, create
from muniment.store.tables.form import Form

if TYPE_CHECKING:
    from muniment.store.reader import PublishedFile

MAX_ROWS: Final = 1_000
MAX_BYTES: Final = 1 << 20
MAX_CSV_ROWS: Final = csv_text.MAX_ROWS
MAX_CSV_BYTES: Final = 32 << 20
MAX_PARAMETERS: Final = 20
MAX_PARAMETER_CHARACTERS: Final = 1_000
DEADLINE_S: Final = 10.0
"""Seconds of the clock, beside other processes that take the CPU; the process itself ends after less CPU time."""
MAX_WAITING: Final = 32
"""Statements that wait or run, of all callers."""
MAX_WAITING_OF_CALLER: Final = 4
MAX_USED_S: Final = 60.0
"""The most CPU that a statement is charged: a process that a statement took over could report any number."""
START_S: Final = 0.1
"""What a caller is charged for a process that had to be ended: about what its successor takes to start."""
WAIT_S: Final = 5.0
"""Seconds that a statement waits for the first tables, which those of a small registry take."""
LOOK_S: Final = 0.1
LEAST_MS: Final = 1.0
"""What a statement is charged at least: its process knows its time to some milliseconds."""
_ENDING_BYTES: Final = 4 * MAX_BYTES
"""The largest end of an answer: names of columns may take as much as rows."""


class Reply(NamedTuple):
    """
    An answer, and what caches need to know about it.

    Args:
        tag: the opaque part of its ETag: of the statement and the edition.
        version: the version of the published documents that it belongs to, for caches; None if it must not be kept.
    """

    answered: Answered
    tag: str
    version: int | None


class Statements:
    """
    Asks statements of the tables at *path*.

    Args:
        published: the documents that the tables follow.
    """

    def __init__(self, path: Path, published: "PublishedFile") -> None:
        self._path = path
        self._published = published
        self._reader = _Process(path)
        self._form = ""
        self._waiting: Counter[str] = Counter()
        self._turn = asyncio.Lock()
        self._pool: ThreadPoolExecutor | None = None

    def use(self, form: Form) -> None:
        """Let caches keep answers from tables of this form alone: those of a former one are about to be replaced."""
        self._form = form.id

    async def answer(self, asked: Asked, client: str, file: IO[bytes] | None = None) -> Reply:
        """
        Return the answer to a statement; the rows of a CSV are written to *file*.

        Raises:
            BadRequest: the statement is not allowed, wrong, or takes too much.
            TooMany: the statements of *client* have taken too much.
            Unavailable: too many wait.
            TablesMissing: the tables are not there yet.
        """
        end_s = time.monotonic() + WAIT_S
        while True:
            try:
                return await self._reply(asked, client, file)
            except TablesMissing:
                if time.monotonic() >= end_s:
                    raise
            await asyncio.sleep(LOOK_S)

    async def _reply(self, asked: Asked, client: str, file: IO[bytes] | None) -> Reply:
        _check(asked)
        limits = fairness.current()
        limits.check("statements", client)
        if self._waiting[client] >= MAX_WAITING_OF_CALLER:
            limits.count_refusal("statements")
            raise TooMany("Too many statements at once.", "Wait for the answers, then try again.", retry_after_s=1)
        if self._waiting.total() >= MAX_WAITING:
            raise Unavailable("Too many statements are waiting.", "Try again in a few seconds.", retry_after_s=3)
        if not self._path.exists():
            raise TablesMissing
        # Noted before the statement is asked: an answer from another edition than this one is not kept.
        version, place = self._published.version, self._published.place
        self._waiting[client] += 1
        try:
            async with self._turn:
                answered = await self._answered(asked, client, file)
        finally:
            self._waiting[client] -= 1
            if not self._waiting[client]:
                del self._waiting[client]
        if isinstance(answered, Refused):
            if answered.has_no_tables:
                raise TablesMissing
            raise BadRequest(answered.message, answered.hint)
        is_level = (answered.edition, answered.epoch) == place and answered.form == self._form and not answered.changes
        return Reply(answered, _tag_of(asked, answered), version if is_level else None)

    async def _answered(self, asked: Asked, client: str, file: IO[bytes] | None) -> Answered | Refused:
        """Ask the process, and end it if the caller goes away meanwhile."""
        if self._pool is None:
            self._pool = ThreadPoolExecutor(1, thread_name_prefix="statements")
        began_s = time.monotonic()
        work = asyncio.get_running_loop().run_in_executor(self._pool, self._reader.ask, asked, file)
        charge = fairness.current().statements.charge
        try:
            found = await asyncio.shield(work)
        except asyncio.CancelledError:
            self._reader.kill()
            await asyncio.wait([work])
            charge(client, 1_000 * (time.monotonic() - began_s + START_S))
            raise
        charge(client, max(LEAST_MS, 1_000 * found.cpu_s))
        return found

    def close(self) -> None:
        """End the process."""
        self._reader.kill()
        if self._pool is not None:
            self._pool.shutdown()
        self._reader.close()


class TablesMissing(Unavailable):
    """The tables of a new registry are not there yet."""

    def __init__(self) -> None:
        super().__init__(marked("The tables are being built."), marked("Try again in a few seconds."), retry_after_s=5)


def _check(asked: Asked) -> None:
    size_bytes = len(asked.sql.encode())
    if size_bytes > MAX_SQL_BYTES:
        raise BadRequest(
            Phrase(
                "The statement has {size:,} bytes; at most {most:,} are allowed.", size=size_bytes, most=MAX_SQL_BYTES
            ),
            "Split a long list of values into several statements.",
        )
    if "\0" in asked.sql:
        raise BadRequest("The statement contains a NUL character.", "Leave it out.")
    if len(asked.parameters) > MAX_PARAMETERS:
        message = Phrase("There are more than {most} parameters.", most=MAX_PARAMETERS)
        raise BadRequest(message, "Write some of them into the statement.")
    for name, value in asked.parameters.items():
        if isinstance(value, str) and len(value) > MAX_PARAMETER_CHARACTERS:
            raise BadRequest(
                Phrase(
                    "The parameter {name} has {count:,} characters; at most {limit:,} are allowed.",
                    name=name[:100],
                    count=len(value),
                    limit=MAX_PARAMETER_CHARACTERS,
                ),
                "Send a shorter value.",
            )


def _tag_of(asked: Asked, answered: Answered) -> str:
    """Return a digest of what the answer depends on: the statement and the tables, or, if it may change, all of it."""
    source = answered if answered.changes else (answered.edition, answered.epoch, answered.form)
    return digest(msgspec.json.encode([asked, source]))


# ---------------------------------------------------------------------- the process


class _Running(NamedTuple):
    """A process and the file that it has opened."""

    process: "subprocess.Popen[bytes]"
    identity: object


class _Ended(Exception):  # noqa: N818 - a state
    """The process ended instead of answering."""


class _Process:
    """The process that answers, started when it is needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._running: _Running | None = None
        self._lock = threading.Lock()

    def ask(self, asked: Asked, file: IO[bytes] | None) -> Answered | Refused:
        """Return the answer to a statement, whose CSV is written to *file*. Called by one thread at a time."""
        began_s = time.monotonic()
        for _ in range(2):  # an idle process may end while it is asked
            running = self._started()
            try:
                return _answer_of(running.process, asked, file, time.monotonic() + DEADLINE_S)
            except (_Ended, OSError, msgspec.MsgspecError):
                status = self.close()
                if status != 0:
                    break
                if file is not None:
                    file.seek(0)
                    file.truncate()
        return Refused(
            "The statement takes too much time or memory.",
            "Filter before joining, and leave out long texts such as body; LIKE with many wildcards is slow.",
            time.monotonic() - began_s + START_S,
        )

    def _started(self) -> _Running:
        with self._lock:
            found = self._running
            opened = identity(self._path)
            if found is not None and found.process.poll() is None and found.identity == opened:
                return found
        self.close()
        memory_bytes, pipe = child_process.memory_limit(MEMORY_BYTES), subprocess.PIPE
        # Without a limit of CPU time: it answers one statement after another, each of which has its own.
        command = child_process.command(
            "muniment.store.tables.answering", str(self._path), cpu_s=0, memory_bytes=memory_bytes
        )
        process = subprocess.Popen(  # noqa: S603 - our own module
            command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, bufsize=0, env={}
        )
        with self._lock:
            self._running = _Running(process, opened)
            return self._running

    def kill(self) -> None:
        """End the process, from any thread; the one that asks it notices."""
        with self._lock:
            if self._running is not None:
                self._running.process.kill()

    def close(self) -> int | None:
        """End the process; return its status, None if there was none. Called by the thread that asks."""
        with self._lock:
            running, self._running = self._running, None
        if running is None:
            return None
        process = running.process
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(0.1)  # of one that is ending by itself
        process.kill()
        status = process.wait()
        for stream in (process.stdin, process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return status


def _answer_of(
    process: "subprocess.Popen[bytes]", asked: Asked, file: IO[bytes] | None, end_s: float
) -> Answered | Refused:
    """
    Return what a process answers.

    Raises:
        _Ended: it has ended, takes too long, or says more than it may.
    """
    assert process.stdin is not None  # noqa: S101 - a pipe
    assert process.stdout is not None  # noqa: S101 - a pipe
    pipe = process.stdout.fileno()
    process.stdin.write(msgspec.json.encode(asked) + b"\n")
    left_bytes = MAX_CSV_BYTES + MAX_BYTES
    while True:
        kind, size_bytes = HEAD.unpack(_read(pipe, HEAD.size, end_s))
        if kind == END and size_bytes <= _ENDING_BYTES:
            found: Answered | Refused = msgspec.json.decode(_read(pipe, size_bytes, end_s), type=Answered | Refused)
            if not 0 <= found.cpu_s <= MAX_USED_S:
                raise _Ended
            return found
        left_bytes -= size_bytes
        if kind != PART or file is None or left_bytes < 0:
            raise _Ended
        file.write(_read(pipe, size_bytes, end_s))


def _read(pipe: int, size_bytes: int, end_s: float) -> bytes:
    parts: list[bytes] = []
    while size_bytes:
        part = os.read(pipe, min(size_bytes, 1 << 16)) if child_process.has_said(pipe, end_s) else b""
        if not part:
            raise _Ended
        parts.append(part)
        size_bytes -= len(part)
    return b"".join(parts)


def value_of(text: str) -> str | int | float:
    """Return a parameter of a URL: a number if it is written as one, otherwise the text."""
    for read in (int, float):
        with contextlib.suppress(ValueError):
            number: int | float = read(text)
            if str(number) == text and abs(number) < 2**63:
                return number
    return text


# ---------------------------------------------------------------------- before a statement is asked


_PARAMETER: Final = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|--[^\n]*|/\*.*?\*/|:([A-Za-z_]\w*)", re.DOTALL)


def parameters_in(sql: str) -> list[str]:
    """Return the names of the parameters of a statement, in their order: not those in a text or a comment."""
    return list(dict.fromkeys(match[1] for match in _PARAMETER.finditer(sql) if match[1]))


def fault_of(sql: str, form: Form) -> Refused | None:
    """Return why a statement would be refused, by asking it of empty tables; None if it would be answered."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as own:
        own.execute(FOLLOWED)
        create(own, form)
        own.execute("INSERT INTO _followed VALUES (1, 0, '', '', 0)")
        limit(own)
        found = answer(own, Asked(sql, dict.fromkeys(parameters_in(sql)), 1, MAX_BYTES), lambda _kind, _content: None)
    return found if isinstance(found, Refused) else None
