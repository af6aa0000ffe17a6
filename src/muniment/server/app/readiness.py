"""
Readiness: the checks behind /readyz for load balancers, and the probes that they share.

A health check answers at once from what the probes know. A service answers, refuses, or is silent; silence is decided
by a limit of its own, before anything is concluded from a lag: all nodes share a database, and a proxy that drops all
of them because it is silent serves no reads.
"""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from enum import Enum
from queue import SimpleQueue
from typing import TYPE_CHECKING, Final

import msgspec

from muniment.api.responses import Response
from muniment.config import Config
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Unavailable
from muniment.server.app.app import plain_answer
from muniment.server.app.startup import DATABASE_AWAY, writable
from muniment.server.observability.outages import Outages
from muniment.store.database import patience
from muniment.store.database.faults import DAMAGED, damage_seen, disk_fault, fault_of, notice
from muniment.store.database.patience import SILENT_S
from muniment.store.database.reading import open_for_reading
from muniment.store.reader import Reader

if TYPE_CHECKING:
    from muniment.store.replica import ReplicaStatus

PROBE_EVERY_S: Final = 1.0
PROMPT_S: Final = 0.1
"""Seconds that a health check waits for the probes, which services that work answer within: it uses the last state."""
FIRST_S: Final = 1.0
"""Seconds that it waits while there is no such state: at the first health check, and after a minute without one."""
WANTED_S: Final = 60.0
"""Seconds for which a service is probed in the background after the last health check."""
STUCK_S: Final = 5.0
"""Seconds that a probe waits for the lock that every change needs."""


class State(Enum):
    """What is known of a service."""

    UNKNOWN = "has not answered yet"
    ANSWERS = "answers"
    REFUSES = "refuses"
    SILENT = "silent"
    """It was asked, and has said nothing for so long that it counts as away."""


class Refused(Exception):  # noqa: N818 - what a service does
    """A service refuses, for a reason that a health check may show."""


def _reason(error: Exception) -> str:
    """Return why a service refuses. The words of a driver stay in the log: they name hosts, users, files and tables."""
    if isinstance(error, Refused):
        return str(error)
    return disk_fault(error) or "it refuses, and the log says why"


class Probe:
    """
    Asks a service in the background whether it answers, and knows its last state at any moment.

    It begins with the first health check, and ends a minute after the last one. The question is asked in a thread of
    its own: a silent service blocks that one and no other.

    Args:
        ask: asks once; raises an exception if the service refuses.
        succeeded_for_s: seconds between two questions while it answers.
        silent_after_s: seconds without an answer after which it is silent.
    """

    def __init__(
        self,
        service: str,
        ask: Callable[[], object],
        outages: Outages,
        *,
        succeeded_for_s: float = PROBE_EVERY_S,
        silent_after_s: float = SILENT_S,
    ) -> None:
        self._service, self._ask, self._outages = service, ask, outages
        self._succeeded_for_s, self._silent_after_s = succeeded_for_s, silent_after_s
        self._questions: SimpleQueue[Future[None]] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._asking: asyncio.Task[None] | None = None
        self._resting: asyncio.Task[None] | None = None
        self._wanted_until = 0.0
        self.state = State.UNKNOWN
        self.reason = ""
        """Why the service did not answer the last time; empty if it did."""

    def want(self) -> "asyncio.Task[None] | None":
        """Have the service probed from now on; return the question that is being asked, or None."""
        loop = asyncio.get_running_loop()
        self._wanted_until = loop.time() + WANTED_S
        if self._asking is None and self._resting is None:
            self._begin()
        return self._asking

    def _begin(self) -> None:
        self._resting = None
        if asyncio.get_running_loop().time() < self._wanted_until:
            self._asking = asyncio.create_task(self._look())
            self._asking.add_done_callback(self._rest)
        else:  # the next health check asks again, instead of telling what was true long ago
            self.state, self.reason = State.UNKNOWN, ""
            self._outages.forget(self._service)

    def _rest(self, asked: "asyncio.Task[None]") -> None:
        self._asking = None
        if asked.cancelled():
            return
        rest_s = self._succeeded_for_s if self.state is State.ANSWERS else PROBE_EVERY_S
        self._resting = asyncio.create_task(asyncio.sleep(rest_s))
        self._resting.add_done_callback(self._rested)

    def _rested(self, rest: "asyncio.Task[None]") -> None:
        if not rest.cancelled():
            self._begin()

    def _asked(self) -> "Future[None]":
        """Ask in the thread; it does not keep a process from ending, as those of a pool do."""
        if self._thread is None:
            thread = threading.Thread(target=self._work, name=f"probe of the {self._service}", daemon=True)
            thread.start()
            self._thread = thread  # not before: without memory it does not start, and no question would be answered
        answer: Future[None] = Future()
        self._questions.put(answer)
        return answer

    def _work(self) -> None:
        while True:
            answer = self._questions.get()
            try:
                self._ask()
            except BaseException as error:  # noqa: BLE001 - the caller gets it from the future
                answer.set_exception(error)
            else:
                answer.set_result(None)

    async def _look(self) -> None:
        answer = asyncio.wrap_future(self._asked())
        await asyncio.wait([answer], timeout=self._silent_after_s)
        if not answer.done():
            reason = f"no answer for {self._silent_after_s:g} seconds"
            self._fail(State.SILENT, reason, logged=reason)
        try:
            await answer
        except Exception as error:  # noqa: BLE001 - any failure means that it is unavailable
            notice(error)
            self._fail(State.REFUSES, _reason(error), logged=str(error) or type(error).__name__)
        else:
            self.state, self.reason = State.ANSWERS, ""
            self._outages.answered(self._service)

    def _fail(self, state: State, reason: str, *, logged: str) -> None:
        self.state, self.reason = state, reason
        self._outages.failed(self._service, logged)


MAX_LAG_S: Final = 10
"""Seconds that a node may be behind: longer than a large import, shorter than people wait for what they saved."""
WRITTEN_EVERY_S: Final = 10.0
"""Monitoring polls often, and these probes write."""


class Readiness:
    """
    Checks everything that public reads need, and on request what writes need too.

    All nodes lose the database or the document store at the same moment; if that made them unready, none would be left
    to serve reads.
    """

    def __init__(self, config: Config, outages: Outages) -> None:
        self._config = config
        self._database = Probe("database", _ask_database, outages)
        self._reads = Probe("published file", self._read_file, outages)
        self._store = Probe("document store", self._ask_store, outages, succeeded_for_s=WRITTEN_EVERY_S)
        self._disk = Probe("data folder", self._write_disk, outages)
        self._writes = Probe(
            "database for writes",
            _write_database,
            outages,
            succeeded_for_s=WRITTEN_EVERY_S,
            silent_after_s=STUCK_S + SILENT_S,
        )

    async def look(
        self,
        reader: Reader | None,
        follower: "ReplicaStatus | None",
        fault: str,
        *,
        is_away: bool,
        has_pages: bool,
        for_writes: bool,
    ) -> Response:
        """
        Return 200 with the state of the node, or raise Unavailable with what is not ready.

        Args:
            follower: the state of the replica; None on SQLite, and before there is a database to replicate.
            fault: what failed during start-up.
            is_away: whether it failed because the database cannot be used now.
        """
        status: JSONObject = {"status": "ready"}
        await self._ask(has_pages=has_pages, tries=for_writes)
        lacking = self._for_reads(reader, follower, status)
        impaired: list[str] = []
        if not has_pages and not is_away:
            lacking.append(fault or "the pages are still starting")
        elif not has_pages:
            impaired.append(fault)
        impaired += self._for_writes(has_pages=has_pages, tries=for_writes)
        if for_writes:
            lacking += impaired
        elif impaired:
            status["status"] = f"reads only: {'; '.join(impaired)}"
        if lacking:
            raise Unavailable(f"Not ready: {'; '.join(lacking)}.", "Try again in a moment.")
        return plain_answer(msgspec.json.encode(status), b"application/json")

    async def _ask(self, *, has_pages: bool, tries: bool) -> None:
        """Have the services probed; wait for a moment, so that those that answer at once are known as they are now."""
        probes = [self._disk, self._reads]
        if has_pages:
            probes += [self._database, self._store]
        if has_pages and tries:
            probes.append(self._writes)
        questions = []
        for probe in probes:
            question = probe.want()
            if question is not None:  # otherwise its last answer is still recent
                questions.append(question)
        if questions:
            is_first = any(probe.state is State.UNKNOWN for probe in probes)
            await asyncio.wait(questions, timeout=FIRST_S if is_first else PROMPT_S)

    def _for_writes(self, *, has_pages: bool, tries: bool) -> list[str]:
        """Return what writes lack; with *tries*, also whether one in the database succeeds."""
        lacking = []
        if self._disk.state in _AWAY:
            lacking.append(f"the data folder is not writable: {self._disk.reason}")
        elif not writable(self._config.data):
            lacking.append("the data folder is almost full")
        if has_pages:
            lacking += self._of_services(tries=tries)
        if damage_seen.is_set() and not self._config.has_copy:
            lacking.append(DAMAGED)
        return lacking

    def _of_services(self, *, tries: bool) -> list[str]:
        """Return what writes lack of the database and the document store."""
        lacking = []
        if self._database.state is not State.ANSWERS:
            lacking.append(DATABASE_AWAY)
        elif tries and self._writes.state is not State.ANSWERS:
            reason = self._writes.reason or "it has not answered yet"
            lacking.append(f"the database cannot be written: {reason}")
        if _is_standby_silent():
            lacking.append("no standby confirms changes")
        if self._store.state is not State.ANSWERS:
            lacking.append("the document store does not answer")
        return lacking

    def _for_reads(self, reader: Reader | None, follower: "ReplicaStatus | None", status: JSONObject) -> list[str]:
        """Return what public reads lack; add the state of a node to *status*."""
        if reader is None:
            return ["the published documents do not exist yet"]
        if self._reads.state in _AWAY:
            return ["the published documents cannot be read"]
        return self._of_node(reader, follower, status) if self._config.has_copy else []

    def _of_node(self, reader: Reader, follower: "ReplicaStatus | None", status: JSONObject) -> list[str]:
        """Add the state of the replica to *status*; return what makes it unready."""
        status["edition"] = reader.edition
        if follower is not None:
            status["newest"] = follower.newest
            status["behindSeconds"] = round(follower.behind_s, 1)
        if damage_seen.is_set():
            return ["the replica of this node is damaged and being rebuilt"]
        if not reader.is_built:
            return ["the replica of this node is being built"]
        if follower is None or follower.newest is None:
            return []
        # When the database answers again, a node has its time to follow: all of them begin at that moment.
        if min(follower.behind_s, follower.answers_s) <= MAX_LAG_S:
            return []
        rebuilt = ", and is being rebuilt" if follower.is_building else ""
        return [
            f"this node is at edition {reader.edition} of {follower.newest}, {follower.behind_s:.0f} s behind{rebuilt}"
        ]

    def _read_file(self) -> None:
        """Open the published file and read from it, as a new connection of the reader does."""
        with contextlib.closing(open_for_reading(self._config.published_file, timeout=1)) as file:
            file.execute("SELECT edition FROM published_meta").fetchone()

    def _write_disk(self) -> None:
        fault = fault_of(self._config.data)
        if fault:
            raise Refused(fault)

    def _ask_store(self) -> None:
        """
        Write, read and delete a probe.

        A local folder is checked together with the data folder, without importing the S3 client.
        """
        if not self._config.storage_url:
            return
        from muniment.documents.records import storage

        storage().probe()


_AWAY: Final = frozenset({State.REFUSES, State.SILENT})


def _is_standby_silent() -> bool:
    from muniment.store.database import commits

    return commits.status()[0]


@contextlib.contextmanager
def _connected(wait_s: float) -> Iterator[None]:
    """Let the thread of a probe use its connection to the database, and wait for it at most *wait_s*."""
    from django.db import close_old_connections

    close_old_connections()
    try:
        with patience.within(wait_s):
            yield
    finally:
        close_old_connections()


def _ask_database() -> None:
    from django.db import connection

    with _connected(SILENT_S), connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        cursor.fetchone()


def _write_database() -> None:
    """
    Write to the write-ahead log of PostgreSQL, or take the write lock of SQLite, and change nothing.

    On PostgreSQL, also take the lock of the edition, which every change needs, and give it back at once.
    """
    from django.db import OperationalError, connection, transaction

    from muniment.store.database.form import UnknownDatabase, require_known
    from muniment.store.database.retry import is_given_up, is_lock_timeout, is_unavailable

    with _connected(STUCK_S + PROBE_EVERY_S):
        try:
            require_known()
        except UnknownDatabase as error:
            raise Refused(str(error)) from error
        if connection.vendor != "postgresql":
            try:
                with transaction.atomic():
                    return
            except OperationalError as error:
                if disk_fault(error) or not is_unavailable(error):
                    raise
                message = f"other writers have held the database for {STUCK_S + PROBE_EVERY_S:g} seconds"
                raise Refused(message) from error
        try:
            with transaction.atomic(), connection.cursor() as cursor:
                cursor.execute(f"SET LOCAL lock_timeout = '{STUCK_S:g}s'")
                cursor.execute("SELECT value FROM published_edition FOR UPDATE")
                transaction.set_rollback(True)
        except OperationalError as error:
            # Behind the probe of another process, this one waits twice, and its patience ends before the second wait.
            if not is_lock_timeout(error) and not is_given_up(error):
                raise
            message = f"another session has held the edition for {STUCK_S:g} seconds"
            raise Refused(message) from None
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_logical_emit_message(true, 'muniment', 'probe')")
        connection.close()  # it is used every ten seconds
