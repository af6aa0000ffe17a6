"""Readiness: the checks behind /readyz for load balancers."""

import asyncio
import contextlib
import sqlite3
from typing import TYPE_CHECKING, Final

import msgspec

from muniment.api.responses import Response
from muniment.config import Config
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Unavailable
from muniment.server.app.app import plain_answer
from muniment.server.app.probe import Probe
from muniment.server.app.startup import DATABASE_AWAY, writable
from muniment.server.app.threads import Bridge
from muniment.server.observability.outages import Outages
from muniment.store.reader import Reader

if TYPE_CHECKING:
    from muniment.store.replica import ReplicaStatus

STORE_ASKED_EVERY_S: Final = 10.0
"""Monitoring polls often, and a probe of the store writes."""


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
        self._store = Probe("document store", self._ask_store, outages, succeeded_for_s=STORE_ASKED_EVERY_S)

    async def look(
        self, reader: Reader | None, follower: "ReplicaStatus | None", fault: str, *, has_pages: bool, for_writes: bool
    ) -> Response:
        """
        Return 200 with the state of the node, or raise Unavailable with what is not ready.

        Args:
            follower: the state of the replica; None on SQLite, and before there is a database to replicate.
            fault: what failed during start-up.
        """
        status: JSONObject = {"status": "ready"}
        lacking = await self._for_reads(reader, follower, status)
        impaired = [] if writable(self._config.data) else ["the data folder is not writable"]
        is_away = fault == DATABASE_AWAY
        if has_pages:
            is_away = not await self._database.answers()
            if _is_standby_silent():
                impaired.append("no standby confirms changes")
            if not await self._store.answers():
                impaired.append("the document store does not answer")
        elif not is_away:
            lacking.append(fault or "the pages are still starting")
        if is_away:
            impaired.append(DATABASE_AWAY)
        if for_writes:
            lacking += impaired
        elif impaired:
            status["status"] = f"reads only: {'; '.join(impaired)}"
        if lacking:
            raise Unavailable(f"Not ready: {'; '.join(lacking)}.", "Try again in a moment.")
        return plain_answer(msgspec.json.encode(status), b"application/json")

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
        if not reader.is_built:
            return ["the replica of this node is being built"]
        if follower is None or follower.newest is None or follower.behind_s <= self._config.max_lag_s:
            return []
        rebuilt = ", and is being rebuilt" if follower.is_building else ""
        return [
            f"this node is at edition {reader.edition} of {follower.newest}, {follower.behind_s:.0f} s behind{rebuilt}"
        ]

    async def _read_file(self) -> None:
        """Open the published file and read from it, as a new connection of the reader does."""

        def read() -> None:
            address = f"{self._config.published_file.absolute().as_uri()}?mode=ro"
            with contextlib.closing(sqlite3.connect(address, uri=True, timeout=1)) as file:
                file.execute("SELECT edition FROM published_meta").fetchone()

        await asyncio.to_thread(read)

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
