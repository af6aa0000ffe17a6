"""
Whole-registry exports, made in the background from the published file and named by its edition.

JSON Lines files hold the responses of the detail endpoints, which ``muniment import`` reads; CSV files hold the list
fields. Both start with the oldest publication. The public tables are a SQLite file, and CSV files of their own.
"""

import fcntl
import logging
import sqlite3
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import msgspec

from muniment.durable_files import replacing
from muniment.kernel.wire import parse_timestamp, timestamp
from muniment.schema.objects import Schema
from muniment.store.cache import release_free_memory
from muniment.store.database.faults import DamagedDocument, disk_fault, notice
from muniment.store.exports.files import LATEST, MANIFEST, NAME, NAMES, ExportFile, FoundFile, latest_name
from muniment.store.exports.shared import FileSet, SharedExports
from muniment.store.exports.writing import Writer, reading
from muniment.store.published import UNBUILT

log = logging.getLogger(__name__)

FIRST_AFTER_S: Final = 5.0
"""Delay of the first export after the start, and between checks until there is a registry."""
LOADING_LOOKS: Final = 24
"""Maximum number of checks that the first files wait for a registry that is being loaded: two minutes."""
ERASURE_EVERY_S: Final = 5.0
"""Interval between checks whether a person was erased from the files. They are not served from that moment on."""
SHARED_EVERY_S: Final = 15.0
"""Interval between checks whether another node has made files."""
BREATH_S: Final = 0.01
"""Pause after each batch, so that an export takes a tenth of one core instead of a half, unless a reader waits."""
_LOCK_S: Final = 0.05
_CLOSE_S: Final = 10.0
"""Seconds that the end of the process waits for an export; the document store may hang."""


class Stopped(Exception):  # noqa: N818 - a signal, not an error
    """The process is shutting down during an export."""


class Exports:
    """
    Writes the export files in *folder* and lists them.

    Args:
        folder: created if missing; several processes may share it, one of them exports.
        interval_s: minimum seconds between exports; 0 disables them.
        edition: returns the edition that readers see.
        oldest: returns the oldest edition that may be served: older files contain a person who was erased.
        chain_after: returns the chain of the feed at an edition: files of another history are not served.
        shared: what the other nodes of the instance read too. Files are listed once they are there.
    """

    def __init__(  # noqa: PLR0913 - what a process shares with its exports
        self,
        folder: Path,
        published: Path,
        schema: Schema,
        *,
        base_url: str = "",
        interval_s: float = 600,
        edition: Callable[[], int] = lambda: 0,
        oldest: Callable[[], int] = lambda: 0,
        chain_after: Callable[[int], str | None] | None = None,
        shared: SharedExports | None = None,
    ) -> None:
        self._folder = folder
        self._published = published
        self._base_url = base_url
        self._interval_s = interval_s
        self._edition = edition
        self._oldest = oldest
        self._chain_after = chain_after
        self._shared = shared
        self._writer = Writer(folder, schema, base_url, self._breathe)
        self._wake, self._stop = threading.Event(), threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: tuple[int, list[ExportFile]] = (-1, [])
        self._is_settling = False
        """Whether the first registry of this instance is still being loaded."""
        self._waiting = threading.Lock()
        self._wanted: Future[None] | None = None
        self._forgotten = 0
        self._is_hurried = False
        """Whether a reader waits for the export that is being made."""

    def files(self) -> list[ExportFile]:
        return [file for file in self._listed() if not file.is_former]

    def _listed(self) -> list[ExportFile]:
        """Return the current and the former files, without those that may not be served."""
        manifest = self._folder / MANIFEST
        try:
            changed = manifest.stat().st_mtime_ns
            if changed != self._seen[0]:
                self._seen = (changed, msgspec.json.decode(manifest.read_bytes(), type=list[ExportFile]))
        except (FileNotFoundError, msgspec.DecodeError):  # DecodeError: power was lost while it was written
            return []
        oldest = self._oldest()
        return [file for file in self._seen[1] if file.edition >= oldest and self._is_known(file)]

    def _is_known(self, file: ExportFile) -> bool:
        """Return whether the feed had this past when the file was made."""
        return self._chain_after is None or (self._chain_after(file.edition) or "") == file.chain

    def find(self, name: str) -> FoundFile | None:
        """Return a file of this node."""
        is_latest = LATEST.fullmatch(name) is not None
        for file in self._listed():
            if is_latest:
                is_asked_for = not file.is_former and latest_name(file.name) == name
            else:
                is_asked_for = file.name == name
            if not is_asked_for:
                continue
            path = self._folder / file.name
            return FoundFile(path, file, is_latest) if is_latest or path.is_file() else None
        return None

    def may_fetch(self, name: str) -> bool:
        """Return whether another node may list *name*."""
        match = NAME.fullmatch(name)
        return self._shared is not None and match is not None and int(match[1]) >= self._oldest()

    def fetch(self, name: str) -> FoundFile | None:
        """
        Copy a file that another node lists.

        Raises:
            OSError: the shared store does not answer.
            NotKnownYet: ask again in a second.
        """
        if self._shared is None:
            return None
        file = self._shared.find(name, self._state()[1])
        if file is None or file.edition < self._oldest():
            return None
        path = self._folder / name
        self._folder.mkdir(exist_ok=True)
        if not path.is_file():
            self._shared.download(file, self._folder)
        return FoundFile(path, file, is_latest=False)

    def are_due(self) -> bool:
        """Return whether readers must wait, because there are no files of this registry yet."""
        if not self._interval_s:
            return False
        files = self.files()
        return not files or (self._is_settling and files[0].edition != self._edition())

    def request(self) -> "Future[None]":
        """Make files now, at full speed; the future ends with the attempt."""
        with self._waiting:
            if self._wanted is None:
                self._wanted = Future()
                self._wanted.set_running_or_notify_cancel()
            wanted = self._wanted
            if self._stop.is_set():
                self._wanted = None
                wanted.set_result(None)
        self._wake.set()
        return wanted

    def use(self, schema: Schema) -> None:
        """Write the columns of *schema* from now on."""
        self._writer = Writer(self._folder, schema, self._base_url, self._breathe)

    def start(self) -> None:
        if self._interval_s:
            self._is_settling = not self._has_registry()
            self._thread = threading.Thread(target=self._run, name="exports", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the background thread and discard an unfinished export."""
        self._stop.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)
        self._answer(self._take())

    def _run(self) -> None:
        soon_s = wait_s = min(FIRST_AFTER_S, self._interval_s)
        seen, looks = -1, 0
        while not self._pause(wait_s):
            wanted = self._take()
            try:
                if wanted is None and self._is_settling:  # the first files wait for the end of the first import
                    former, seen, looks = seen, self._state()[0], looks + 1
                    is_loaded = seen == former or looks > LOADING_LOOKS
                    if is_loaded:
                        self.make()
                        self._is_settling = not self._has_registry()
                else:
                    self.make(is_wanted=wanted is not None)
            except Stopped:
                return
            except DamagedDocument as error:
                log.warning("export failed: %s", error)
                wait_s = soon_s
                continue
            except (OSError, sqlite3.Error) as error:
                notice(error)
                log.warning("export failed: %s", error, exc_info=self._shared is None and not disk_fault(error))
            finally:
                self._answer(wanted)
            wait_s = soon_s if self._is_settling else self._interval_s
            release_free_memory()

    def _take(self) -> "Future[None] | None":
        with self._waiting:
            wanted, self._wanted = self._wanted, None
        return wanted

    @staticmethod
    def _answer(wanted: "Future[None] | None") -> None:
        if wanted is not None:
            wanted.set_result(None)

    def _state(self) -> tuple[int, str]:
        with reading(self._published) as (_, edition, epoch):
            return edition, epoch

    def _has_registry(self) -> bool:
        """Return whether there are files with rows: a new instance has an edition as soon as it is set up."""
        return any(file.rows for file in self.files())

    def _pause(self, seconds: float) -> bool:
        """Wait, at most until files are wanted or a person was erased; return whether the process is stopping."""
        end, shared_at = time.monotonic() + seconds, time.monotonic() + SHARED_EVERY_S
        while (left_s := end - time.monotonic()) > 0:
            if self._wake.wait(min(left_s, ERASURE_EVERY_S)):
                self._wake.clear()
                break
            if self._remove_erased():
                break
            if self._shared is not None and time.monotonic() >= shared_at:
                shared_at = time.monotonic() + SHARED_EVERY_S
                self._adopt_quietly()
        return self._stop.is_set()

    def _breathe(self) -> None:
        if self._stop.wait(0 if self._is_hurried or self._wanted is not None else BREATH_S):
            raise Stopped

    def _remove_erased(self) -> bool:
        """Delete files that contain a person who was erased since, and return whether there were any."""
        oldest = self._oldest()
        if not oldest or not self._folder.is_dir():
            return False
        removed = False
        for path in self._folder.iterdir():
            match = NAME.fullmatch(path.name)  # the edition is a part of the name
            if match and int(match[1]) < oldest:
                path.unlink(missing_ok=True)
                removed = True
        return removed

    def make(self, *, is_wanted: bool = False) -> bool:
        """
        Export the current edition and return whether it did: not if it exists or another process exports.

        With *is_wanted*, wait for the other process instead, and do not wait for the end of the interval.
        """
        self._folder.mkdir(exist_ok=True)
        self._is_hurried = is_wanted
        with self._locked(waits=is_wanted) as is_held:
            if not is_held:
                return False
            epoch = self._state()[1]
            if epoch == UNBUILT:
                return False  # the replica has not been filled yet
            if self._shared is not None:
                self._adopt(self._shared, epoch)
                if self._is_recent() and not is_wanted:
                    return False
            with reading(self._published) as (connection, edition, epoch):
                former = self.files()
                if former and former[0].is_of(edition, epoch, self._base_url) and not self._missing(former):
                    return False
                at = timestamp(datetime.now(UTC))
                made = []
                for kind in NAMES:
                    for form in ("jsonl", "csv"):
                        made.append(self._writer.write(connection, kind, form, edition=edition, epoch=epoch, at=at))
                made += self._writer.write_tables(connection, edition=edition, epoch=epoch, at=at)
            if self._shared is not None:
                self._shared.put(made, self._folder)
            self._keep(made, former)
        return True

    def _is_recent(self) -> bool:
        """Return whether the files that all nodes list are of this registry and younger than the interval."""
        files = self.files()
        if not files or not files[0].edition or files[0].base_url != self._base_url:
            return False
        made_at = parse_timestamp(files[0].at)  # in the future, if the clock was set back
        return made_at <= datetime.now(UTC) < made_at + timedelta(seconds=self._interval_s)

    def _adopt_quietly(self) -> None:
        """List what another node has made since; the next look is soon."""
        if self._shared is None:
            return
        try:
            with self._locked(waits=False) as is_held:
                if is_held:
                    self._adopt(self._shared, self._state()[1])
        except (OSError, sqlite3.Error) as error:
            log.info("cannot look for exports of other nodes: %s", error)

    def _adopt(self, shared: SharedExports, epoch: str) -> None:
        """List the newest files that all nodes share, once they are here; share those of this node if none are."""
        oldest = self._oldest()
        if oldest > self._forgotten:
            shared.forget_before(oldest)
            self._forgotten = oldest
        current = self.files()
        newest = self._newest(shared.sets(epoch, self._base_url))
        if newest:
            if newest != current or self._missing(current):
                for file in self._missing(newest):
                    shared.download(file, self._folder)
                self._keep(newest, current)
            return
        if not current or current[0].base_url != self._base_url:
            return  # there are none, or the public URL has changed, and the files with it are made next
        if current[0].epoch == epoch and not self._missing(current):
            shared.put(current, self._folder)
        else:
            self._keep([], [])

    def _newest(self, sets: Iterable[FileSet]) -> list[ExportFile]:
        """Return the files of the newest of *sets* whose edition this node has; none if it has none of them."""
        for shared_set in sets:
            if self._is_known(shared_set.files[0]):
                return shared_set.files
        return []

    def _missing(self, files: list[ExportFile]) -> list[ExportFile]:
        """Return those of *files* that are not in the folder, or not completely."""
        sizes = {path.name: path.stat().st_size for path in self._folder.glob("*.gz")}
        return [file for file in files if sizes.get(file.name) != file.size_bytes]

    def _keep(self, files: list[ExportFile], former: list[ExportFile]) -> None:
        """List *files*; keep *former*, which clients may still be downloading, and remove all others."""
        names = {file.name for file in files}
        replaced = [msgspec.structs.replace(file, is_former=True) for file in former if file.name not in names]
        with replacing(self._folder / MANIFEST) as manifest:
            manifest.write(msgspec.json.encode([*files, *replaced]))
        names.update(file.name for file in replaced)
        for path in self._folder.iterdir():
            if (NAME.fullmatch(path.name) and path.name not in names) or path.suffix == ".part":
                path.unlink(missing_ok=True)

    @contextmanager
    def _locked(self, *, waits: bool) -> Iterator[bool]:
        """Hold the lock of the folder, or tell that another process holds it."""
        with (self._folder / ".lock").open("w") as lock:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    if not waits:
                        yield False
                        return
                    if self._stop.wait(_LOCK_S):
                        raise Stopped from None
                else:
                    yield True
                    return
