"""The server process: listen first, read next, import the rest in the background."""

import asyncio
import contextlib
import logging
import signal
import socket
import sqlite3
import time
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING, Any, Final

import uvicorn
from uvicorn.server import ServerState

from muniment.api.responses import Response
from muniment.config import Config
from muniment.kernel.asgi import Application
from muniment.kernel.http.representations import present, second, stamp_from
from muniment.kernel.problems import Unavailable
from muniment.server.app.app import ON_ADMIN, App
from muniment.server.app.mending import Mending
from muniment.server.app.readiness import Readiness
from muniment.server.app.registry_file import RegistryFile, refuse_unusable
from muniment.server.app.start_failure import StartFailure
from muniment.server.app.startup import Startup, free_ratio
from muniment.server.app.threads import Bridge
from muniment.server.app.tool_servers import ToolServers
from muniment.server.fastpath.protocol import FastPathProtocol, missing_internals
from muniment.server.http.http_limits import LimitedProtocol, retire, sweep
from muniment.server.observability import logs
from muniment.server.process.out_of_memory import end_without_memory
from muniment.server.process.poller import SECOND_S, poll
from muniment.server.process.sockets import backlog_within, raise_file_limit, reachable_file_limit
from muniment.server.process.worker_process import LISTENING, READY, WorkerProcess

if TYPE_CHECKING:
    from muniment.documents.http import UploadLink
    from muniment.jobs.worker import Worker
    from muniment.server.node_scrub import NodeScrub
    from muniment.server.observability.traces import Traces
    from muniment.store.replica import Replica

FOLLOW_AGAIN_S: Final = 1.0
GRACE_S: Final = 10
WAITING_THREADS: Final = 6
log = logging.getLogger("muniment.server")


class Server(uvicorn.Server):
    """Uvicorn's server with additional start-up and shutdown steps."""

    def __init__(self, config: uvicorn.Config, process: "Process") -> None:
        super().__init__(config)
        self._process = process
        self._ending = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self._process.admin is not None:
            self.servers.append(await self._loop.create_server(self._admin_connection, sock=self._process.admin))
        await self._process.begin(self.server_state)

    def _admin_connection(self) -> asyncio.Protocol:
        chosen: Any = self.config.http_protocol_class
        protocol: Any = LimitedProtocol if chosen is FastPathProtocol else chosen
        connection: asyncio.Protocol = protocol(
            config=self.config, server_state=self.server_state, app_state={ON_ADMIN: True}
        )
        return connection

    async def main_loop(self) -> None:
        """Wait for shutdown. Uvicorn's own loop polls ten times a second, also for limits that are not used here."""
        await self._ending.wait()

    def end(self) -> None:
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._ending.set)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        super().handle_exit(sig, frame)
        self.end()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for listening in self.servers:
            listening.close()
        self._process.drain()
        await retire(self.server_state.connections)
        await super().shutdown(sockets)
        await self._process.end()


class Process:
    """
    The background work of a server process.

    Args:
        admin: the administrative listener, if it is separate.
        load: called once the database is ready.
    """

    def __init__(
        self,
        config: Config,
        *,
        admin: socket.socket | None = None,
        load: Callable[[], None] | None = None,
        member: WorkerProcess | None = None,
    ) -> None:
        self.config = config
        self.admin = admin
        self.front = App(config)
        self._member = member
        if member is not None:
            self.front.metrics.shared = member.metrics
        self.bridge = Bridge()
        self._tools = ToolServers(
            self.front, self.bridge, file=lambda: self._registry_file, startup=lambda: self._startup
        )
        began = present() if member is None else second(member.since)
        self._registry_file = RegistryFile(
            config,
            self.front,
            on_registry=self._tools.mount,
            on_fields=self._tools.renew,
            catch_up=self._catch_up,
            since=stamp_from(began),
        )
        self._load = load
        self._pages: asyncio.Future[Application] | None = None
        self._startup: Startup | None = None
        self._follower: Replica | None = None
        self._tasks: list[asyncio.Task[None]] = []
        """Polling and replication; canceled at the end."""
        self._tracing: asyncio.Task[None] | None = None
        self._worker: Worker | None = None
        self._scrub: NodeScrub | None = None
        self._readiness = Readiness(config, self.front.outages)
        self._mending = Mending(config, self.bridge.call, self.front.metrics)
        self._stop: Callable[[], None] = lambda: None
        self.failure: StartFailure | None = None
        """Why this process does not serve; it then ends."""

    def run(self, listener: socket.socket) -> None:
        self._registry_file.open()
        missing = missing_internals()
        protocol: Any = FastPathProtocol
        if missing:
            protocol = "httptools"
            message = "this version of uvicorn lacks required internals; using its own connections"
            log.warning(message, extra={"lacks": missing})
        settings = uvicorn.Config(
            self.front,
            http=protocol,
            loop="uvloop",
            ws="none",
            interface="asgi3",
            lifespan="off",
            log_config=None,
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            backlog=backlog_within(self.front.holders.max_connections, reachable_file_limit()),
            timeout_graceful_shutdown=GRACE_S,
        )
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # uvicorn raises a signal again after a graceful shutdown
        server = Server(settings, self)
        self._stop = server.end
        server.run(sockets=[listener])

    async def begin(self, state: ServerState) -> None:
        loop = asyncio.get_running_loop()
        self._pages = loop.create_future()
        self.front.pages = self.pages
        self.front.health = self.health
        self._tools.begin()
        pages, gauge, connections = self._pages, self.front.metrics.gauge, state.connections
        gauge("muniment_ready", "1 when pages and tools are up, not only reads.", lambda: float(pages.done()))
        free = "Free part of the disk that the data folder is on, 0 to 1."
        gauge("muniment_disk_free_ratio", free, lambda: free_ratio(self.config.data))
        holders = self.front.holders
        gauge("muniment_connections", "Open connections.", lambda: len(connections))
        gauge("muniment_connections_allowed", "Open connections allowed.", lambda: holders.max_connections)
        gauge("muniment_listeners", "Open streams of changes.", self.front.listeners)
        gauge("muniment_holders", "Client addresses that hold connections.", lambda: len(holders))
        gauge("muniment_largest_holder_connections", "Most connections of an address.", lambda: holders.largest)
        gauge("muniment_unfinished_requests", "Connections waiting for a request.", lambda: holders.unfinished)
        gauge("muniment_body_bytes", "Request bodies in memory.", lambda: holders.body_bytes)
        polling = poll(self._registry_file.look, lambda now: self._each_second(connections, now))
        self._tasks.append(asyncio.create_task(polling))
        if self.config.on_postgresql:
            self._tasks.append(asyncio.create_task(self._follow()))
            self._tasks.append(asyncio.create_task(self._follow_settings()))
        self._startup = Startup(
            self.config,
            loop,
            on_tools=self._tools.mount,
            on_database=self._database_is_ready,
            on_pages=self._pages_are_ready,
            on_published=self._published,
            on_failure=self._fail,
            has_registry=lambda: self._registry_file.reader is not None,
            load=self._load_first if self._load is not None else None,
        )
        self._startup.start()
        if self.config.otlp_url:
            self._tracing = asyncio.create_task(self._trace())
        if self._member is not None:
            self._member.watch(loop, self._stop)
            self._member.tell(LISTENING)

    def _fail(self, failure: StartFailure) -> None:
        self.failure = failure
        self._stop()

    async def _follow(self) -> None:
        """Replicate from the first moment: it needs neither Django nor migrations."""
        config = self.config

        def begin() -> "Replica":
            from muniment.store.replica import Replica

            return Replica(
                config.database_url,
                config.published_file,
                on_moved=self._registry_file.refresh,
            )

        while self._follower is None:
            try:
                self._follower = await asyncio.to_thread(begin)
            except sqlite3.Error as error:  # another process of this node is building the file
                log.warning("cannot replicate yet: %s", error)
                await asyncio.sleep(FOLLOW_AGAIN_S)
        follower = self._follower
        follower.start()
        explanation = "Seconds since this node was known to show the newest edition."
        self.front.metrics.gauge("muniment_edition_lag_seconds", explanation, lambda: follower.status.behind_s)
        explanation = "Rebuilds of this node's file by reason."
        self.front.metrics.counter("muniment_replica_rebuilds_total", explanation, "reason", lambda: follower.rebuilds)

    async def _follow_settings(self) -> None:
        """Apply settings of the registry that another node has changed, within about a second."""
        while True:
            await asyncio.sleep(SECOND_S)
            if self._pages is None or not self._pages.done():
                continue
            from muniment.registry.settings.versions import follow

            with contextlib.suppress(Exception):  # without the database, the last settings stay; /readyz tells
                await self.bridge.call(follow)

    def drain(self) -> None:
        self._tools.drain()
        if self.front.api is not None:
            self.front.api.live.end()

    async def end(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._scrub is not None:
            self._scrub.close()
        if self._worker is not None:
            await asyncio.to_thread(self._worker.stop, within_s=GRACE_S)
        if self._startup is not None:
            self._startup.stop()
        await self._tools.end()
        self._registry_file.close()
        if self._follower is not None:
            await asyncio.to_thread(self._follower.close)
        self.bridge.close()
        if self._tracing is not None:
            await self._tracing
        if self.front.traces is not None:
            await asyncio.to_thread(self.front.traces.close)

    async def _trace(self) -> None:
        """Trace requests as soon as the tracer is imported; earlier ones are not traced."""

        def begin() -> "Traces":
            from muniment.server.observability.traces import Traces

            return Traces(self.config.otlp_url)

        self.front.traces = await asyncio.to_thread(begin)

    def _each_second(self, connections: set[Any], now: float) -> None:
        self.front.update_date()
        self.front.metrics.share()
        sweep(connections, now)
        if self._pages is not None and self._pages.done():
            self._mending.look()

    def _database_is_ready(self) -> None:
        self._registry_file.database_is_ready()
        self._tools.mount(has_database=True)

    def _published(self, **_: object) -> None:
        """Show what this process has just committed, before its response is sent. Called in the publishing thread."""
        if self._follower is not None:
            self._follower.catch_up_if_possible()
        self._registry_file.refresh()

    def _catch_up(self) -> bool:
        """Bring a replica to the newest edition and return whether it is known to be there. Called in any thread."""
        if not self.config.on_postgresql:
            return True
        if self._follower is None:
            return False
        self._follower.catch_up_if_possible()
        status = self._follower.status
        return status.newest == status.edition

    def _pages_are_ready(self, application: Any) -> None:
        from muniment.documents.http import DOWNLOADS, PREFIX, FileLinks
        from muniment.jobs.worker import Worker
        from muniment.server.app.interfaces import describe_interfaces
        from muniment.server.app.statement_pages import StatementPages
        from muniment.server.app.wsgi import WSGIApplication
        from muniment.server.node_scrub import NodeScrub
        from muniment.server.observability.database_metrics import DatabaseMetrics, observe_commits, observe_standby

        if self._pages is None or self._pages.done():
            return
        self._registry_file.pages_are_ready()
        describe_interfaces(self.config, self.bridge)
        pages = StatementPages(WSGIApplication(application, self.bridge), lambda: self._registry_file.reader)
        links = FileLinks(self.bridge.call, pages)
        self.front.mounts_with_pages.update(dict.fromkeys((PREFIX, DOWNLOADS), links))
        self._count_uploads(links.uploads)
        database_metrics = DatabaseMetrics(self.bridge.call, self.front.outages)
        self.front.metrics.source_of_instance(database_metrics.families)
        self.front.refresh_gauges = database_metrics.refresh
        observe_commits(self.front.metrics)
        if self.config.on_postgresql:
            observe_standby(self.front.metrics)
        if not self.config.mirrored:  # which has no jobs, and no rows to compare with
            # A run with a model mostly waits; it must not delay text extraction of documents.
            self._scrub = NodeScrub(self.config, self.front.metrics).start()
            self._worker = Worker(threads=WAITING_THREADS if self.config.model_url else 2).start()
        self._pages.set_result(pages)
        if self._member is not None and self._load is None:
            self._member.tell(READY)

    def _load_first(self) -> None:
        """Load initial data, or wait for another process that does, and show it. Called in the start-up thread."""
        if self._load is not None:
            self._load()
        self._published()
        if self._member is not None:
            self._member.tell(READY)

    def _count_uploads(self, uploads: "UploadLink") -> None:
        counter, received = self.front.metrics.counter, "Bytes received by upload links."
        counter("muniment_uploads_total", "Files sent to upload links, by result.", "result", lambda: uploads.results)
        counter("muniment_upload_bytes_total", received, "result", lambda: {"received": uploads.received_bytes})

    async def pages(self) -> Application:
        if self._pages is None or self._startup is None:
            raise Unavailable("The pages are still starting.", "Try again in a moment.")
        reader = self._registry_file.reader
        if reader is not None and not reader.is_built:
            message = "The replica of this node is still being built."
            raise Unavailable(message, "Try again in a moment.", retry_after_s=5)
        await self._startup.until(self._pages.done, "The pages are still starting.")
        if self._member is not None:
            self._registry_file.refresh()  # a redirect after a save may reach another process
        return self._pages.result()

    async def health(self, for_writes: bool) -> Response:  # noqa: FBT001 - the only argument of a callback
        """Check everything needed for reads, and for writes if requested; raise Unavailable with what does not work."""
        fault = self._startup.fault if self._startup is not None else ""
        is_away = self._startup is not None and self._startup.is_away
        has_pages = self._pages is not None and self._pages.done()
        if has_pages and self._startup is not None and self._startup.is_loading:
            has_pages, fault = False, fault or "the initial registry is still being loaded"
        follower = self._follower.status if self._follower is not None else None
        if self.front.api is None:
            self._registry_file.look()  # a node that is ready answers, also before the next tick
        return await self._readiness.look(
            self._registry_file.reader,
            follower,
            fault,
            is_away=is_away,
            has_pages=has_pages,
            for_writes=for_writes,
        )


def serve(
    config: Config,
    listener: socket.socket,
    *,
    admin: socket.socket | None = None,
    load: Callable[[], None] | None = None,
    member: WorkerProcess | None = None,
) -> StartFailure | None:
    """Serve until a signal; return why the process could not start, or None."""
    logs.set_up(config.log_format, config.log_level)
    end_without_memory()
    began = time.monotonic()
    refusal = refuse_unusable(config)
    if refusal:
        return StartFailure(refusal)
    process = Process(config, admin=admin, load=load, member=member)
    process.front.holders.limit_connections(raise_file_limit())
    process.run(listener)
    if process.failure is None:
        log.info("ended", extra={"seconds": round(time.monotonic() - began)})
    return process.failure
