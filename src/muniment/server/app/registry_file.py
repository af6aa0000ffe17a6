"""What a process shows of the published file: opened as soon as it is there, and looked at again and again."""

import contextlib
import sqlite3
from collections.abc import Callable

from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.server.app.app import App
from muniment.server.process.poller import REFRESH_S
from muniment.store import published
from muniment.store.reader import Reader


class RegistryFile:
    """
    The published file as the front, and later the pages, answer from it.

    Args:
        front: given the API as soon as the file shows the registry; a new node has to build it first.
        on_registry: called in the loop when the front has got it there.
    """

    def __init__(self, config: Config, front: App, *, on_registry: Callable[[], None]) -> None:
        self._config = config
        self._front = front
        self._on_registry = on_registry
        self.reader: Reader | None = None
        self._api: Api | None = None
        self._edition = -1
        self._has_database = self._has_pages = False

    def open(self) -> None:
        """Read from the published file, when it is there."""
        if self.reader is not None:
            return
        config, front = self._config, self._front
        file = config.published_file
        try:
            if config.on_postgresql or not file.exists():
                _make_tables(config)
            with contextlib.closing(sqlite3.connect(file)) as own:
                published.check(own)
            reader = Reader(file, currency=config.currency, cache_bytes=config.cache_mb << 20)
        except (sqlite3.OperationalError, published.SchemaMismatch):
            return  # the tables come with the first migration, or are made anew after it
        self.reader = reader
        api = self._api = Api(reader, config, registry_schema(config.currency))
        self._show(reader)
        front.metrics.counter(
            "muniment_cache_requests_total",
            "Answers asked of the cache, by whether they were ready.",
            "result",
            lambda: {"hit": api.hits, "miss": api.misses},
        )
        gauge = front.metrics.gauge
        gauge("muniment_edition", "Edition that this process shows.", lambda: reader.edition)
        gauge("muniment_cache_bytes", "Size of the finished answers kept.", lambda: reader.answers.currsize)

    def close(self) -> None:
        """End what works in the background."""
        if self._api is not None:
            self._api.close()

    def look(self) -> None:
        """Take notice of what others have published; open the file that another was making, or held, until now."""
        if self.reader is None:
            self._open_late()
            return
        self.reader.tick()
        if self._front.api is None:
            self._show(self.reader)
            if self._front.api is not None:
                self._on_registry()
        elif self.reader.edition != self._edition:
            self._edition = self.reader.edition
            self._front.tell_edition(self._edition)

    def refresh(self) -> None:
        """Show what was committed just now; from any thread."""
        if self.reader is not None:
            self.reader.refresh()
            self._front.tell_edition(self.reader.edition)

    def database_is_ready(self) -> None:
        """Open what was missing with the tables, and make exports."""
        self._has_database = True
        self.open()
        if self._api is not None:
            self._api.start()

    def pages_are_ready(self) -> None:
        """Let the pages read from the file too."""
        self._has_pages = True
        if self.reader is not None:
            _show_on_pages(self.reader)

    def _open_late(self) -> None:
        self.open()
        if self.reader is None or self._api is None:
            return
        if self._has_database:
            self._api.start()
        if self._has_pages:
            _show_on_pages(self.reader)
        self._on_registry()

    def _show(self, reader: Reader) -> None:
        self._front.tell_edition(reader.edition)
        if self._front.api is None and self._api is not None and reader.is_built:
            self._front.open_api(self._api)


def _show_on_pages(reader: Reader) -> None:
    from muniment.web.requests import page_cache as shown

    shown.use(reader)


def _make_tables(config: Config) -> None:
    """Let the first answers be empty lists, not refusals: what the database lacks beside these takes seconds."""
    with contextlib.closing(sqlite3.connect(config.published_file, timeout=REFRESH_S, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode=WAL")
        if config.on_postgresql:
            published.prepare_copy(own)
        else:
            own.execute("BEGIN IMMEDIATE")
            published.create(own)
            own.execute("COMMIT")
