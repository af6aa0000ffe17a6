"""Readiness: the checks behind /readyz for load balancers, and the probes that they share."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

import msgspec

from muniment.api.responses import Response
from muniment.config import Config
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Unavailable
from muniment.server.app.app import plain_answer
from muniment.server.app.startup import DATABASE_AWAY, writable
from muniment.server.app.threads import Bridge
from muniment.server.observability.outages import Outages
from muniment.store.database.faults import DAMAGED, damage_seen, fault_of, notice
from muniment.store.database.reading import open_for_reading
from muniment.store.reader import Reader

if TYPE_CHECKING:
    from muniment.store.replica import ReplicaStatus

PROBE_WAIT_S: Final = 3.0
"""Seconds that a health check waits for a probe."""
PROBE_EVERY_S: Final = 1.0


class Probe:
    """
    Asks a service whether it answers, at most once per second however many requests need it.

    Args:
        succeeded_for_s: how long a success is reused.
    """

    def __init__(
        self,
        service: str,
        ask: Callable[[], Awaitable[object]],
        outages: Outages,
        *,
        succeeded_for_s: float = PROBE_EVERY_S,
    ) -> None:
        self._service, self._ask, self._outages = service, ask, outages
        self._succeeded_for_s = succeeded_for_s
        self._asking: asyncio.Future[object] | None = None
        self._result: asyncio.Future[bool] | None = None
        self._reused_until = 0.0
        self.reason = ""
        """Why the service did not answer the last time; empty if it did."""

    async def answers(self) -> bool:
        now = asyncio.get_running_loop().time()
        if self._result is None or (self._result.done() and now >= self._reused_until):
            self._result = asyncio.ensure_future(self._look())
        return await asyncio.shield(self._result)

    async def _look(self) -> bool:
        if self._asking is None or self._asking.done():
            # An unresponsive service blocks one thread of the pool, not another one each second.
            self._asking = asyncio.ensure_future(self._ask())
            self._asking.add_done_callback(_retrieve)
        clock = asyncio.get_running_loop().time
        try:
            await asyncio.wait_for(asyncio.shield(self._asking), PROBE_WAIT_S)
        except Exception as error:  # noqa: BLE001 - any failure means that it is unavailable
            notice(error)
            self.reason = str(error) or type(error).__name__
            self._outages.failed(self._service, self.reason)
            self._reused_until = clock() + PROBE_EVERY_S
            return False
        self.reason = ""
        self._outages.answered(self._service)
        self._reused_until = clock() + self._succeeded_for_s
        return True


def _retrieve(asked: "asyncio.Future[object]") -> None:
    """Take the exception of a probe that no request waits for any more."""
    if not asked.cancelled():
        asked.exception()


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

    def __init__(self, config: Config, bridge: Bridge, outages: Outages) -> None:
        self._config = config
        self._bridge = bridge
        self._database = Probe("database", lambda: bridge.call(_ask_database), outages)
        self._reads = Probe("published file", self._read_file, outages)
        self._store = Probe("document store", self._ask_store, outages, succeeded_for_s=WRITTEN_EVERY_S)
        self._disk = Probe("data folder", self._write_disk, outages)
        self._writes = Probe(
            "database for writes", lambda: bridge.call(_write_database), outages, succeeded_for_s=WRITTEN_EVERY_S
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
        lacking = await self._for_reads(reader, follower, status)
        impaired: list[str] = []
        if not has_pages and not is_away:
            lacking.append(fault or "the pages are still starting")
        elif not has_pages:
            impaired.append(fault)
        impaired += await self._for_writes(has_pages=has_pages, tries=for_writes)
        if for_writes:
            lacking += impaired
        elif impaired:
            status["status"] = f"reads only: {'; '.join(impaired)}"
        if lacking:
            raise Unavailable(f"Not ready: {'; '.join(lacking)}.", "Try again in a moment.")
        return plain_answer(msgspec.json.encode(status), b"application/json")

    async def _for_writes(self, *, has_pages: bool, tries: bool) -> list[str]:
        """Return what writes lack; with *tries*, also try one in the database, which may take long."""
        probes = [self._disk]
        if has_pages:
            probes += [self._database, self._store]
        answers = dict(zip(probes, await asyncio.gather(*(probe.answers() for probe in probes)), strict=True))
        lacking = []
        if not answers[self._disk]:
            lacking.append(f"the data folder is not writable: {self._disk.reason}")
        elif not writable(self._config.data):
            lacking.append("the data folder is almost full")
        if has_pages:
            lacking += await self._of_services(answers, tries=tries)
        if damage_seen.is_set() and not self._config.on_postgresql:
            lacking.append(DAMAGED)
        return lacking

    async def _of_services(self, answers: dict[Probe, bool], *, tries: bool) -> list[str]:
        """Return what writes lack of the database and the document store."""
        lacking = []
        if not answers[self._database]:
            lacking.append(DATABASE_AWAY)
        elif tries and not await self._writes.answers():
            lacking.append(f"the database cannot be written: {self._writes.reason}")
        if _is_standby_silent():
            lacking.append("no standby confirms changes")
        if not answers[self._store]:
            lacking.append("the document store does not answer")
        return lacking

    async def _for_reads(
        self, reader: Reader | None, follower: "ReplicaStatus | None", status: JSONObject
    ) -> list[str]:
        """Return what public reads lack; add the state of a node to *status*."""
        if reader is None:
            return ["the published documents do not exist yet"]
        if not await self._reads.answers():
            return ["the published documents cannot be read"]
        return self._of_node(reader, follower, status) if self._config.on_postgresql else []

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
        if follower is None or follower.newest is None or follower.behind_s <= MAX_LAG_S:
            return []
        rebuilt = ", and is being rebuilt" if follower.is_building else ""
        return [
            f"this node is at edition {reader.edition} of {follower.newest}, {follower.behind_s:.0f} s behind{rebuilt}"
        ]

    async def _read_file(self) -> None:
        """Open the published file and read from it, as a new connection of the reader does."""

        def read() -> None:
            with contextlib.closing(open_for_reading(self._config.published_file, timeout=1)) as file:
                file.execute("SELECT edition FROM published_meta").fetchone()

        await asyncio.to_thread(read)

    async def _write_disk(self) -> None:
        if fault := await asyncio.to_thread(fault_of, self._config.data):
            raise OSError(fault)

    async def _ask_store(self) -> None:
        """
        Write, read and delete a probe.

        A local folder is checked together with the data folder, without importing the S3 client.
        """
        if not self._config.storage_url:
            return
        from muniment.documents.records import storage

        await self._bridge.call(lambda: storage().probe())


def _is_standby_silent() -> bool:
    from muniment.store.database import commits

    return commits.status()[0]


def _ask_database() -> None:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM django_migrations")
        cursor.fetchone()


def _write_database() -> None:
    """Write to the write-ahead log of PostgreSQL, or take the write lock of SQLite, and change nothing."""
    from django.db import connection, transaction

    from muniment.store.database.form import require_known

    require_known()
    with transaction.atomic():
        if connection.vendor == "postgresql":
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_logical_emit_message(true, 'muniment', 'probe')")
