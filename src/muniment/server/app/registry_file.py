"""Published file lifecycle in a process: open it as soon as it exists, refresh it, close it."""

import contextlib
import logging
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from muniment.api.application import Api
from muniment.config import Config
from muniment.declared_fields import instance_schema
from muniment.registry_toml.applied import applied
from muniment.server.app.app import App
from muniment.server.app.log_source import DatabaseLog
from muniment.server.process.poller import POLL_S
from muniment.store import published
from muniment.store.database import node_copy
from muniment.store.database.faults import is_damage
from muniment.store.database.handles import open_counted
from muniment.store.database.reading import open_for_reading
from muniment.store.exports.shared import SharedExports
from muniment.store.reader import Reader
from muniment.store.sqlite.lost import LostDatabase, require_present

if TYPE_CHECKING:
    from muniment.documents.storage import Storage


class ExportStore:
    """Reads and writes the S3 store at *url*; every fault is an OSError."""

    def __init__(self, url: str) -> None:
        self._url = url

    @cached_property
    def _storage(self) -> "Storage":
        from muniment.documents.storage import storage_at  # 4 MB: imported on first use

        return storage_at(Path("blobs"), self._url)

    def write(self, key: str, chunks: Iterable[bytes]) -> None:
        with _faults():
            self._storage.write(key, chunks)

    def read(self, key: str) -> Iterator[bytes]:
        with _faults():
            yield from self._storage.stream(key)

    def keys(self, prefix: str) -> list[str]:
        with _faults():
            return [blob.key for blob in self._storage.blobs(prefix)]

    def delete(self, key: str) -> None:
        with _faults():
            self._storage.delete(key)


@contextmanager
def _faults() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise OSError(str(error).partition("Debug source")[0].strip()) from error


log = logging.getLogger("muniment.server")


class RegistryFile:
    """
    The published file that the app, and later the pages, serve.

    Args:
        front: receives the API as soon as the file is filled; a new replica is built first.
        on_registry: called in the event loop when the app has the API.
        on_fields: called in the event loop when the API answers with other declared fields.
        catch_up: as :class:`Reader`.
        since: as :class:`Reader`.
    """

    def __init__(
        self,
        config: Config,
        front: App,
        *,
        on_registry: Callable[[], None],
        catch_up: Callable[[], bool],
        on_fields: Callable[[], None] = lambda: None,
        since: str = "",
    ) -> None:
        self._since = since
        self._config = config
        self._front = front
        self._on_registry = on_registry
        self._on_fields = on_fields
        self._catch_up = catch_up
        self.reader: Reader | None = None
        self._api: Api | None = None
        self._edition = -1
        self._settings = applied()
        self._has_database = self._has_pages = False

    def open(self) -> None:
        if self.reader is not None:
            return
        config, front = self._config, self._front
        file = config.published_file
        try:
            if config.has_copy or not file.exists():
                _make_tables(config)
        except sqlite3.OperationalError as error:  # another process makes them, or the disk is full
            log.info("cannot prepare the published file yet: %s", error)
        try:
            with contextlib.closing(open_for_reading(file)) as own:
                published.check_readable(own)
            reader = Reader(
                file,
                is_copy=config.has_copy,
                may_lag=bool(config.mirrored),
                currency=config.currency,
                base_url=config.base_url,
                cache_bytes=config.cache_mb << 20,
                catch_up=self._catch_up,
                since=max(self._since, self._settings.stamp),
            )
        except (sqlite3.OperationalError, published.SchemaMismatch):
            return  # the first migration creates the tables
        self.reader = reader
        shared = None
        if config.on_postgresql and config.storage_url:
            shared = SharedExports(ExportStore(config.storage_url))
        api = self._api = Api(reader, config, instance_schema(config), shared=shared)
        self._show(reader)
        gauge, counter = front.metrics.gauge, front.metrics.counter
        looks = "Cache look-ups by result."
        counter("muniment_cache_requests_total", looks, "result", lambda: {"hit": api.hits, "miss": api.misses})
        gauge("muniment_edition", "Edition shown by this process.", lambda: reader.edition)
        gauge("muniment_cache_bytes", "Size of the response cache in bytes.", lambda: reader.answers.currsize)

    def close(self) -> None:
        if self._api is not None:
            self._api.close()

    def look(self) -> None:
        """Refresh; open the file if another process has created it since."""
        if self.reader is None:
            self._open_late()
            return
        self.reader.tick()
        settings = applied()
        if settings != self._settings:
            if settings.settings.fields != self._settings.settings.fields and self._api is not None:
                self._use_declared_fields(self._api)
            self._settings = settings
            self.reader.renew(settings.stamp)  # after the fields, so that no answer without them is kept
        if self._front.api is None:
            self._show(self.reader)
            if self._front.api is not None:
                self._on_registry()
        elif self.reader.edition != self._edition:
            self._edition = self.reader.edition
            self._front.update_edition(self._edition)
            self._front.api.live.moved()

    def refresh(self) -> None:
        """Show what was just committed. Thread-safe."""
        if self.reader is not None:
            self.reader.refresh()
            self._front.update_edition(self.reader.edition)

    def database_is_ready(self) -> None:
        """Open the file after the migrations, and start the exports."""
        self._has_database = True
        self.open()
        if self._api is not None:
            self._use_declared_fields(self._api)
            self._api.open_log(DatabaseLog())
            self._api.start()

    def _use_declared_fields(self, api: Api) -> None:
        """Let the API answer with the fields of the applied settings, if they are others than before."""
        schema = instance_schema(self._config)
        if schema != api.schema:
            api.use(schema)
            self._on_fields()

    def pages_are_ready(self) -> None:
        self._has_pages = True
        if self.reader is not None:
            _show_on_pages(self.reader)

    def _open_late(self) -> None:
        self.open()
        if self.reader is None or self._api is None:
            return
        if self._has_database:
            self._api.open_log(DatabaseLog())
            self._api.start()
        if self._has_pages:
            _show_on_pages(self.reader)
        self._on_registry()

    def _show(self, reader: Reader) -> None:
        self._front.update_edition(reader.edition)
        if self._front.api is None and self._api is not None and reader.is_built:
            self._front.open_api(self._api)


def _show_on_pages(reader: Reader) -> None:
    from muniment.web.requests import page_cache as shown

    shown.use(reader)


def _make_tables(config: Config) -> None:
    """Create the published tables, so that the first responses are empty lists while Django starts."""
    file = config.published_file
    if config.has_copy:
        node_copy.open_copy(file, timeout_s=POLL_S).close()
        return
    with contextlib.closing(open_counted(file, timeout=POLL_S, isolation_level=None)) as own:
        own.execute("PRAGMA journal_mode=WAL")
        own.execute("BEGIN IMMEDIATE")
        published.create(own)
        own.execute("COMMIT")


def refuse_unusable(config: Config) -> str:
    """Return why the files of the data folder cannot be served; an empty string if they can."""
    file = config.database_file
    foreign = _not_ours(config)
    if foreign:
        return foreign
    if config.on_postgresql:
        return ""
    try:
        require_present(file)
        if file.exists() and file.stat().st_size:
            open_for_reading(file).close()
    except LostDatabase as error:
        return str(error)
    except sqlite3.DatabaseError as error:
        if is_damage(error):
            return f"The database file {file} is damaged: {error}. Restore a backup with muniment restore."
    return ""


def _not_ours(config: Config) -> str:
    """Return which file belongs to another user, so that this process cannot use it; an empty string if none does."""
    keys = config.data / "keys"
    for file in (config.database_file, config.published_file, keys, keys / "django.key"):
        is_writable = os.access(file, os.R_OK | os.W_OK)
        # A read-only disk can be served from, and may be writable in a moment; the owner of a file does not change.
        if file.exists() and not is_writable and not os.statvfs(file).f_flag & os.ST_RDONLY:
            owner = file.stat().st_uid
            return f"This user ({os.geteuid()}) cannot read and write {file}, which belongs to user {owner}."
    return ""
