"""Start-up in the background, behind the first responses: migrations, pages and tool servers."""

import asyncio
import contextlib
import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any, Final
from wsgiref.util import setup_testing_defaults

from muniment.config import Config
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Unavailable
from muniment.server.app.start_failure import StartFailure, failure_of
from muniment.store.cache import release_free_memory

RETRY_S: Final = 2.0
"""Seconds to wait between attempts to start while the database cannot be reached."""
FIRST_PAGES: Final = ("/", "/accounts/login/")
"""Rendered once in advance, so that templates and views are loaded before the first visitor."""
WAIT_S: Final = 25.0
"""Seconds that a request waits for startup."""
LOOK_S: Final = 0.05
DATABASE_AWAY: Final = "the database does not answer"
log = logging.getLogger("muniment.server")


class Refusal(Exception):  # noqa: N818 - its message is for the operator
    """This process must not serve this database."""


class Startup:
    """
    Runs once in its own thread, and notifies the event loop of its progress.

    Args:
        on_tools: called in the loop when the tool servers can be created without further imports.
        on_database: called in the loop when all migrations are applied.
        on_pages: called in the loop with the WSGI application.
        on_published: a method that receives the publisher's signal, in the publishing thread.
        on_failure: called in the loop with the reason if the start cannot succeed, or the database must not be served.
        has_registry: whether the public reads can be served without the database, in any thread.
        load: called in the start-up thread when the database is ready, for example to load the demo registry.
    """

    def __init__(  # noqa: PLR0913 - a callback for each stage of the start
        self,
        config: Config,
        loop: asyncio.AbstractEventLoop,
        *,
        on_tools: Callable[[], None],
        on_database: Callable[[], None],
        on_pages: Callable[[Any], None],
        on_published: Callable[..., object],
        on_failure: Callable[[StartFailure], None],
        has_registry: Callable[[], bool],
        load: Callable[[], None] | None = None,
    ) -> None:
        self._config = config
        self._loop = loop
        self._on_tools = on_tools
        self._on_database = on_database
        self._on_pages = on_pages
        self._on_published = on_published
        self._on_failure = on_failure
        self._has_registry = has_registry
        self._load = load
        self.is_loading = load is not None
        """Whether initial data is still being loaded."""
        self.has_database = self.has_pages = False
        """Whether all migrations are applied, and whether pages are served."""
        self._stopping = threading.Event()
        self.fault = ""
        """The reason why startup failed, for the operator; empty if it did not fail."""
        self.is_away = False
        """Whether it failed because the database cannot be used now; public reads do not need it."""
        self._thread = threading.Thread(target=self._run, name="warm-up", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Ask the thread to stop; do not wait for a running import."""
        self._stopping.set()

    async def until(self, is_there: Callable[[], bool], otherwise: str) -> None:
        """Wait for a part of start-up; raise Unavailable with the message *otherwise* if it stops or takes too long."""
        deadline = time.monotonic() + WAIT_S
        while not is_there():
            if self.is_away and not self.has_pages:
                says = "The database is unavailable" if self.fault == DATABASE_AWAY else self.fault.capitalize()
                raise Unavailable(
                    f"{says}; nothing was saved. Public reads still work.",
                    "Try again in a few seconds.",
                    retry_after_s=5,
                )
            if self.fault and not self.has_pages:
                raise Unavailable("The pages could not start.", "Tell the operator; /readyz shows the cause.")
            if time.monotonic() > deadline:
                raise Unavailable(otherwise, "Try again in a moment.", retry_after_s=5)
            await asyncio.sleep(LOOK_S)

    def _run(self) -> None:
        began = time.monotonic()
        # Imports and jobs hold the interpreter lock. Measured beside a busy thread: one that waits for input continues
        # after 2 ms instead of 24 ms (99th percentile).
        sys.setswitchinterval(0.001)
        if self._persist():
            gc.collect()
            # A collection holds the interpreter lock. What is imported stays, so that none looks through it again:
            # a full one took 160 to 270 ms of CPU in the middle of requests, to free a few hundred objects.
            gc.freeze()
            release_free_memory()
            log.info("ready", extra={"seconds": round(time.monotonic() - began, 2)})

    def _persist(self) -> bool:
        """Run start-up until it succeeds; wait only for a database or a disk that may work in a moment."""
        while not self._stopping.is_set():
            try:
                self._prepare()
            except Refusal as error:
                self._fail(StartFailure(str(error)))
                return False
            except Exception as error:
                if not self._may_pass(error):
                    log.debug("start-up failed", exc_info=True)
                    self._fail(failure_of(error))
                    return False
            else:
                self.fault, self.is_away = "", False
                return True
            self._stopping.wait(RETRY_S)
        return False

    def _fail(self, failure: StartFailure) -> None:
        self.fault = "this process cannot start: see the log"
        self._notify(self._on_failure, failure)

    def _may_pass(self, error: Exception) -> bool:
        """Return whether start-up failed because the database or the disk cannot be used now, and note why."""
        from django.db import DatabaseError, InterfaceError, OperationalError

        from muniment.store.database.faults import disk_fault
        from muniment.store.database.retry import disk_problem, is_refused, is_unavailable

        if isinstance(error, Unavailable) and isinstance(error.__cause__, Exception):
            error = error.__cause__  # an operation of start-up has given up
        if disk_fault(error):
            fault = disk_problem(error).fault
            # A full disk only stops changes of a registry that is there; where there is none, nothing can be served.
            if not self._has_registry():
                return False
        elif is_refused(error):
            return False
        elif isinstance(error, InterfaceError | OperationalError) or (
            isinstance(error, DatabaseError) and is_unavailable(error)
        ):
            fault = DATABASE_AWAY
        else:
            return False
        if self.fault != fault:  # once: /readyz and `muniment_database_up` tell the rest
            log.warning("%s; retrying until the database can be used: %s", fault, error)
        self.fault, self.is_away = fault, True
        return True

    def _prepare(self) -> None:
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
        # The tool servers come first: they do not need Django if the database is already migrated.
        import_module("muniment.server.app.public_tools")
        self._notify(self._on_tools)
        import django

        django.setup()
        from django.db import connections

        connections.close_all()  # of a former attempt, whose connection may be dead
        import_module("muniment.mcp.tools.owner.server")

        self._bring_up_database()
        from django.core.wsgi import get_wsgi_application

        application = get_wsgi_application()
        for path in FIRST_PAGES:
            _visit(application, path)
        self._notify(self._on_pages, application)
        self.has_pages = True
        if self._load is not None:
            self._load()
            self.is_loading = False
        _record_settings()
        connections.close_all()

    def _bring_up_database(self) -> None:
        from muniment.accounts.identity_providers import missing_operator
        from muniment.accounts.keys.keyring import WrongKey
        from muniment.registry.currency import OtherCurrency
        from muniment.registry.publishing import publisher
        from muniment.registry.publishing.upgrade import bring_up_to_date
        from muniment.store.database.form import UnknownDatabase

        try:
            upgrade = bring_up_to_date()
        except (OtherCurrency, UnknownDatabase, WrongKey) as error:
            raise Refusal(str(error)) from None
        if upgrade.migrations:
            log.info("database migrations applied", extra={"migrations": upgrade.migrations})
            gc.collect()  # the models of every migration refer to each other
        if upgrade.renewed:
            log.warning(
                "every document was published again: another version, or other declared fields, had written them"
            )
        missing = missing_operator()
        if missing:
            raise Refusal(missing)
        publisher.published.connect(self._on_published, dispatch_uid="muniment.server")
        if not self.has_database:
            self.has_database = True
            self._notify(self._on_database)

    def _notify(self, callback: Callable[..., None], *args: Any) -> None:
        if not self._stopping.is_set():
            self._loop.call_soon_threadsafe(callback, *args)


def _record_settings() -> None:
    """Record changed settings in the audit log; without it, the server serves all the same."""
    from django.db import DatabaseError

    from muniment.accounts.security.effective_settings import record_settings

    try:
        record_settings()
    except DatabaseError as error:
        log.warning("changed settings were not recorded: %s", error)


def _visit(application: Any, path: str) -> None:
    environ: JSONObject = {"PATH_INFO": path, "REMOTE_ADDR": "127.0.0.1"}
    setup_testing_defaults(environ)
    with contextlib.closing(application(environ, lambda *_: None)) as answer:
        for _ in answer:
            pass


def free_ratio(folder: Path) -> float:
    """Return the part of the disk of *folder* that can be written; 0 if the folder is not there."""
    try:
        room = os.statvfs(folder)
    except OSError:
        return 0.0
    return room.f_bavail / max(1, room.f_blocks)


def writable(folder: Path) -> bool:
    try:
        room = os.statvfs(folder)
    except OSError:
        return False
    return os.access(folder, os.W_OK | os.X_OK) and room.f_bavail * room.f_frsize > 16 << 20
