"""
Whole-registry exports, made in the background from the published file and named by its edition.

JSON Lines files hold the responses of the detail endpoints, which ``muniment import`` reads; CSV files hold the list
fields. Both start with the oldest publication.
"""

import csv
import fcntl
import gzip
import hashlib
import io
import logging
import re
import sqlite3
import threading
import time
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec

from muniment.durable_files import replacing, sync
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp, with_picture_addresses
from muniment.schema.objects import Schema
from muniment.store.cache import release_free_memory
from muniment.store.published import UNBUILT

log = logging.getLogger(__name__)

NAMES: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
_NAME = re.compile(r"(?:companies|people|frameworks)-(\d{1,19})\.(?:jsonl|csv)\.gz")
_EDITION = re.compile(r"-\d+\.")
_LATEST = re.compile(r"(companies|people|frameworks)-latest\.(jsonl|csv)\.gz")
_PUBLICATION_NUMBER: Final = (1 << 40) - 1
FIRST_AFTER_S: Final = 5.0
"""Delay of the first export after the start, and between checks until there is a registry."""
LOADING_LOOKS: Final = 24
"""How many times the first files wait for a registry that is being loaded: two minutes."""
_BATCH: Final = 50
ERASURE_EVERY_S: Final = 5.0
"""Interval between checks whether a person was erased from the files. They are not served from that moment on."""
_BREATH_S: Final = 0.01
"""Pause after each batch, so that an export takes a tenth of one core instead of a half."""


class ExportFile(msgspec.Struct, frozen=True):
    """A finished export file."""

    name: str
    rows: int
    size_bytes: int
    sha256: str
    edition: int
    at: str
    base_url: str = ""
    """The public URL of the instance, which the addresses of pictures begin with."""


class FoundFile(NamedTuple):
    """
    A file to serve.

    Args:
        file: its entry in the list; None for one of the previous edition, which clients may still be downloading.
        is_latest: it was asked for by the name that stays.
    """

    path: Path
    file: ExportFile | None
    is_latest: bool


class Stopped(Exception):  # noqa: N818 - a signal, not an error
    """The process is shutting down during an export."""


class Exports:
    """
    Writes the export files in *folder* and lists them.

    Args:
        folder: created if missing; several processes may share it, one of them exports.
        interval_s: minimum seconds between exports; 0 disables them.
        oldest: returns the oldest edition that may be served: older files contain a person who was erased.
    """

    def __init__(
        self,
        folder: Path,
        published: Path,
        schema: Schema,
        *,
        base_url: str = "",
        interval_s: float = 600,
        oldest: Callable[[], int] = lambda: 0,
    ) -> None:
        self._folder = folder
        self._published = published
        self._base_url = base_url
        self._interval_s = interval_s
        self._oldest = oldest
        self._columns = {"company": schema.company.csv, "person": schema.person.csv, "framework": schema.framework.csv}
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._seen: tuple[int, list[ExportFile]] = (-1, [])

    def files(self) -> list[ExportFile]:
        manifest = self._folder / "manifest.json"
        try:
            changed = manifest.stat().st_mtime_ns
            if changed != self._seen[0]:
                self._seen = (changed, msgspec.json.decode(manifest.read_bytes(), type=list[ExportFile]))
        except (FileNotFoundError, msgspec.DecodeError):  # DecodeError: power was lost while it was written
            return []
        oldest = self._oldest()
        return [file for file in self._seen[1] if file.edition >= oldest]

    def find(self, name: str) -> FoundFile | None:
        files = {latest_name(file.name): file for file in self.files()}
        latest = files.get(name) if _LATEST.fullmatch(name) else None
        if latest is not None:
            return FoundFile(self._folder / latest.name, latest, is_latest=True)
        match = _NAME.fullmatch(name)
        if match is None or int(match[1]) < self._oldest():
            return None
        path = self._folder / name
        listed = next((file for file in files.values() if file.name == name), None)
        return FoundFile(path, listed, is_latest=False) if path.is_file() else None

    def start(self) -> None:
        if self._interval_s:
            self._thread = threading.Thread(target=self._run, name="exports", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Stop the background thread and discard an unfinished export."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        soon_s = wait_s = min(FIRST_AFTER_S, self._interval_s)
        seen, looks = -1, 0
        while not self._pause(wait_s):
            wait_s, former = self._interval_s, seen
            looks += 1
            try:
                seen = self._edition()
                is_loading = seen != former and looks <= LOADING_LOOKS
                if self._has_registry() or not is_loading:  # the first files wait for the end of the first import
                    self.make()
                if not self._has_registry():
                    wait_s = soon_s
            except Stopped:
                return
            except (OSError, sqlite3.Error):
                log.exception("export failed")
            release_free_memory()

    def _edition(self) -> int:
        with _reading(self._published) as (_, edition, _):
            return edition

    def _has_registry(self) -> bool:
        """Return whether there are files, and not only those of the empty registry of a new instance."""
        return any(file.edition for file in self.files())

    def _pause(self, seconds: float) -> bool:
        """Wait, at most until a person was erased from the latest files; return whether the process is stopping."""
        end = time.monotonic() + seconds
        while (left_s := end - time.monotonic()) > 0:
            if self._stop.wait(min(left_s, ERASURE_EVERY_S)):
                return True
            if self._remove_erased():
                break
        return self._stop.is_set()

    def _remove_erased(self) -> bool:
        """Delete files that contain a person who was erased since, and return whether there were any."""
        oldest, removed = self._oldest(), False
        for path in self._folder.iterdir() if oldest and self._folder.is_dir() else ():
            match = _NAME.fullmatch(path.name)
            if match and int(match[1]) < oldest:
                path.unlink(missing_ok=True)
                removed = True
        return removed

    def make(self) -> bool:
        """Export the current edition and return whether it did: not if it exists or another process exports."""
        self._folder.mkdir(exist_ok=True)
        with (self._folder / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return False
            with _reading(self._published) as (connection, edition, epoch):
                if epoch == UNBUILT:
                    return False  # the replica has not been filled yet
                former = {file.edition for file in self.files() if file.base_url == self._base_url}
                if edition in former:
                    return False
                at = timestamp(datetime.now(UTC))
                made = [self._write(connection, kind, form, edition, at) for kind in NAMES for form in ("jsonl", "csv")]
            with replacing(self._folder / "manifest.json") as manifest:
                manifest.write(msgspec.json.encode(made))
            self._clean({edition} | former)
        return True

    def _clean(self, editions: set[int]) -> None:
        """Remove files of older editions; keep the previous one, which clients may still be downloading."""
        for path in self._folder.iterdir():
            match = _NAME.fullmatch(path.name)
            if (match and int(match[1]) not in editions) or path.suffix == ".part":
                path.unlink(missing_ok=True)

    def _write(self, connection: sqlite3.Connection, kind: str, form: str, edition: int, at: str) -> ExportFile:
        name = f"{NAMES[kind]}-{edition}.{form}.gz"
        part = self._folder / f"{name}.part"
        rows = 0
        with part.open("wb") as raw, gzip.GzipFile("", "wb", 6, raw, 0) as packed:
            lines = (
                _csv_lines(connection, kind, self._columns[kind], self._base_url)
                if form == "csv"
                else _json_lines(connection, kind, self._base_url)
            )
            for rows, line in enumerate(lines):
                packed.write(line)
                if rows % _BATCH == 0 and self._stop.wait(_BREATH_S):
                    raise Stopped
        if form == "jsonl":
            (rows,) = connection.execute("SELECT n FROM published_total WHERE kind = ?", (kind,)).fetchone()
        with part.open("rb") as finished:
            sha256 = hashlib.file_digest(finished, "sha256").hexdigest()
        size_bytes = part.stat().st_size
        sync(part)  # its name is kept with the manifest's
        part.replace(self._folder / name)
        return ExportFile(name, rows, size_bytes, sha256, edition, at, self._base_url)


def latest_name(name: str) -> str:
    """Return the name under which the newest edition of a file is always served: ``companies-latest.jsonl.gz``."""
    return _EDITION.sub("-latest.", name, count=1)


@contextmanager
def _reading(path: Path) -> Iterator[tuple[sqlite3.Connection, int, str]]:
    connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True, isolation_level=None, timeout=20)
    try:
        connection.execute("BEGIN")
        edition, epoch = connection.execute("SELECT edition, epoch FROM published_meta").fetchone()
        yield connection, edition, epoch
    finally:
        connection.close()


def _positions(connection: sqlite3.Connection, kind: str) -> "array[int]":
    rows = connection.execute(
        "SELECT position FROM published_document WHERE kind = ? ORDER BY position & ?", (kind, _PUBLICATION_NUMBER)
    )
    return array("q", (row[0] for row in rows))


def _json_lines(connection: sqlite3.Connection, kind: str, base_url: str) -> Iterator[bytes]:
    for position in _positions(connection, kind):
        (body,) = connection.execute(
            "SELECT body FROM published_document WHERE kind = ? AND position = ?", (kind, position)
        ).fetchone()
        shown = with_picture_addresses(body, base_url)
        data = bytes(msgspec.json.decode(shown, type=dict[str, msgspec.Raw])["data"])
        yield b'{"framework":%s}\n' % data if kind == "framework" else data + b"\n"


def _csv_lines(connection: sqlite3.Connection, kind: str, columns: tuple[str, ...], base_url: str) -> Iterator[bytes]:
    yield _csv_line(columns)
    for position in _positions(connection, kind):
        (item,) = connection.execute(
            f"SELECT item FROM published_item_{kind} WHERE position = ?", (position,)
        ).fetchone()
        members = msgspec.json.decode(with_picture_addresses(item, base_url), type=JSONObject)
        yield _csv_line([_cell(_value(members, column)) for column in columns])


def _value(members: JSONObject, column: str) -> Any:
    """Return the member that *column* names; a dot leads to a member of a member."""
    name, _, inner = column.partition(".")
    value = members.get(name)
    return (value or {}).get(inner) if inner else value


def _csv_line(cells: "tuple[str, ...] | list[str]") -> bytes:
    line = io.StringIO()
    csv.writer(line).writerow(cells)
    return line.getvalue().encode()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        value = "; ".join(map(str, value))
    text = str(value)
    # Spreadsheets would run such a cell as a formula.
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text
