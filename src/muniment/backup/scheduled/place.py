"""
The place of scheduled backups: a folder or an S3 store.

``muniment-TIME.backup`` is a backup without the files of documents, and ``muniment-TIME.json`` its record, which is
written last: without a record, no backup counts. ``files/`` holds the files of documents, each once for all backups,
``index.json`` what is known about them, and ``suppressions.jsonl`` the list of erased people.
"""

import fcntl
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec

from muniment.documents.storage import Storage
from muniment.durable_files import sync
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, Unavailable
from muniment.registry.people import suppression

FILES: Final = "files/"
ARCHIVE, RECORD, INDEX = ".backup", ".json", "index.json"
_FORM: Final = "muniment-%Y%m%dT%H%M%SZ"
_LEFT_AFTER: Final = timedelta(hours=24)
"""Minimum age of an abandoned archive: an S3 store has no locks, so a newer one may still be in progress."""


class BackupRecord(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    The facts known about a backup without reading it.

    Args:
        lost: documents whose file was missing or damaged in the instance.
        tables: the digest of each table, to find out whether anything has changed.
    """

    name: str
    made_at: datetime
    version: str
    database: str
    edition: int
    rows: int
    size_bytes: int
    sha256: str
    files: int
    file_bytes: int
    lost: list[str]
    tables: dict[str, str]


class StoredFile(msgspec.Struct, kw_only=True, rename="camel"):
    """A file of a document: its content, the newest backup that needs it, and when it was last read back."""

    size_bytes: int
    sha256: str
    last: str
    checked_at: str


class Index(msgspec.Struct, kw_only=True, rename="camel"):
    """
    The facts known about the place beyond the records. If this index is lost, it is made again.

    Args:
        covered_at: nothing had changed between the newest backup and this time.
        checked: when each backup was last read back.
        damaged: backups that have been found damaged, and why.
    """

    covered_at: datetime | None = None
    files: dict[str, StoredFile] = {}
    checked: dict[str, str] = {}
    damaged: dict[str, str] = {}


class Place:
    """
    A folder or an S3 store with backups.

    Args:
        address: the path of a folder, or ``s3://…``.
        scratch: a folder for copies of what is read from an S3 store.
    """

    def __init__(self, address: str, scratch: Path) -> None:
        self.folder = None if address.startswith("s3:") else Path(address)
        self._address = address
        self.store = Storage(self.folder or scratch / "backups", address if self.folder is None else "")

    @property
    def shown(self) -> str:
        """Return the address without credentials."""
        if self.folder is not None:
            return str(self.folder)
        parts = urlsplit(self._address)
        return f"s3://{parts.hostname}{parts.path}"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Keep other processes from writing to a folder; raise Conflict if one does. A store is written by one job."""
        if self.folder is None:
            yield
            return
        descriptor = os.open(self.folder / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield
        except BlockingIOError:
            raise Conflict(
                Phrase("Another backup to {place} is running.", place=self.shown), "Wait until it ends."
            ) from None
        finally:
            os.close(descriptor)

    def records(self) -> list[BackupRecord]:
        """Return the records of all complete backups, the oldest first."""
        there = {blob.key: blob.size_bytes for blob in self.store.top()}
        names = sorted(key.removesuffix(RECORD) for key in there if moment_of(key, RECORD))
        complete = []
        for name in names:
            try:
                record = msgspec.json.decode(b"".join(self.store.stream(f"{name}{RECORD}")), type=BackupRecord)
            except msgspec.DecodeError:
                continue  # damaged; the archive may still be read by `muniment restore FILE`
            if there.get(f"{name}{ARCHIVE}") == record.size_bytes:
                complete.append(record)
        return complete

    def index(self) -> Index:
        try:
            return msgspec.json.decode(b"".join(self.store.stream(INDEX)), type=Index)
        except (FileNotFoundError, msgspec.DecodeError):
            return Index()

    def put(self, key: str, content: bytes | Iterable[bytes]) -> None:
        """Store a file that only this user can read."""
        self.store.write(key, content)
        if self.folder is not None:
            (self.folder / key).chmod(0o600)

    def put_index(self, index: Index) -> None:
        self.put(INDEX, msgspec.json.encode(index))

    def put_record(self, record: BackupRecord) -> None:
        self.put(f"{record.name}{RECORD}", msgspec.json.encode(record))

    def remove(self, name: str) -> None:
        """Remove a backup: its record first, so that no half of it looks like a backup."""
        for key in (f"{name}{RECORD}", f"{name}{ARCHIVE}"):
            self.store.delete(key)
            if self.folder is not None:
                sync(self.folder)

    def sweep(self) -> None:
        """Remove what interrupted runs left: drafts, and archives without a record."""
        if self.folder is not None:
            for draft in self.folder.glob(f".muniment-*{ARCHIVE}.partial"):
                draft.unlink(missing_ok=True)
            for key in set(self.store.unfinished()):
                self.store.remove_unfinished(key)
        there = {blob.key: blob for blob in self.store.top()}
        for key, blob in there.items():
            if moment_of(key, ARCHIVE) is None or key.removesuffix(ARCHIVE) + RECORD in there:
                continue
            if self.folder is not None or blob.stored_at < now() - _LEFT_AFTER:
                self.store.delete(key)

    def require_room(self, size_bytes: int) -> None:
        """Raise Unavailable if a folder lacks room for *size_bytes* and a reserve, which others on the disk need."""
        if self.folder is None:
            return
        disk = os.statvfs(self.folder)
        free = disk.f_bavail * disk.f_frsize
        reserve = min(1 << 30, disk.f_blocks * disk.f_frsize // 20)
        if free < size_bytes + reserve:
            raise Unavailable(
                Phrase(
                    "The disk of {place} has {free:,} MB free; the backup needs {needed:,} MB, and "
                    "{reserve:,} MB stay free.",
                    place=self.shown,
                    free=free >> 20,
                    needed=size_bytes >> 20,
                    reserve=reserve >> 20,
                ),
                "Free space, keep fewer backups (/operate/backups), or use another place (MUNIMENT_BACKUPS).",
            )


def open_place(address: str, scratch: Path) -> Place:
    """Open a place to write; create the last folder of its path."""
    if not address.startswith("s3:"):
        Path(address).mkdir(mode=0o700, exist_ok=True)
    return Place(address, scratch)


def name_of(at: datetime) -> str:
    return at.astimezone(UTC).strftime(_FORM)


def moment_of(key: str, suffix: str) -> datetime | None:
    """Return the time in the name of a backup's file; None if it has another name."""
    if not key.endswith(suffix):
        return None
    try:
        return datetime.strptime(key.removesuffix(suffix), _FORM).replace(tzinfo=UTC)
    except ValueError:
        return None


def read_suppressions(place: Place, file: Path) -> None:
    """Copy the list of erased people beside the backups of an S3 store into *file*, if there is one."""
    try:
        file.write_bytes(b"".join(place.store.stream(suppression.FILE_NAME)))
    except FileNotFoundError:
        return
