"""Make one scheduled backup: written, read back, recorded; then remove what the retention rule does not keep."""

import hashlib
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, TypeVar

from muniment.backup import container, rows
from muniment.backup.container import VerifiedBackup, digest_of, hashed, verify
from muniment.backup.scheduled.place import (
    ARCHIVE,
    FILES,
    BackupRecord,
    Index,
    Place,
    StoredFile,
    name_of,
    open_place,
    read_suppressions,
)
from muniment.backup.scheduled.schedule import kept, schedule
from muniment.backup.snapshot import RunningInstance, no_instance, pieces_of
from muniment.config import Config
from muniment.documents.records import storage
from muniment.documents.storage import Storage
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.registry.people import suppression

Piece = TypeVar("Piece")
_LONGEST_REST_S: Final = 1.0


class Pace:
    """
    Rests between pieces of work.

    Args:
        share: the share of the time to work; 1 never rests.
        clock: seconds that always grow.
    """

    def __init__(
        self,
        share: float,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._rest = 1 / share - 1
        self._clock = clock
        self._sleep = sleep
        self._began = clock()

    def rest(self) -> None:
        """Rest in proportion to the work since the last rest."""
        worked = self._clock() - self._began
        if self._rest and worked > 0:
            self._sleep(min(worked * self._rest, _LONGEST_REST_S))
        self._began = self._clock()

    def through(self, pieces: Iterator[Piece]) -> Iterator[Piece]:
        for piece in pieces:
            yield piece
            self.rest()


VOLATILE: Final = rows.CACHES | {"jobs_job", "jobs_step", "django_session", "usersessions_usersession"}
"""Tables that change without a change of the registry or an account."""

SCRATCH: Final = ".backup-draft-"


@dataclass(slots=True)
class Outcome:
    """
    The result of a run.

    Args:
        name: the new backup; None if nothing has changed since the newest one.
        covered_at: the newest backup has everything up to this time.
        damaged: backups and files that were found damaged; files are copied again.
    """

    place: str
    covered_at: datetime
    name: str | None = None
    size_bytes: int = 0
    rows: int = 0
    files_copied: int = 0
    removed: int = 0
    kept: int = 0
    lost: list[str] = field(default_factory=list)
    damaged: list[str] = field(default_factory=list)


class _Unchanged(Exception):  # noqa: N818 - ends the writing of a file
    """The draft contains what the newest backup contains."""


def make_backup(config: Config, *, pace: Pace | None = None) -> Outcome:
    """
    Make a backup in the place of the settings, unless nothing has changed since the newest one.

    Raises:
        BadRequest: the settings name no place.
        Conflict: there is no instance, or another process makes a backup there.
        Damaged: the written backup cannot be read back; it is removed.
        Unavailable: there is no room, or the place returned other content than was written.
        OSError: the place cannot be written. Older backups stay as they were.
    """
    if not config.backup_place:
        raise BadRequest("No place for backups is set.", "Set MUNIMENT_BACKUPS, or name a file: muniment backup FILE.")
    if not config.on_postgresql and not config.database_file.exists():
        raise no_instance()
    place = open_place(config.backup_place, config.data)
    with place.locked():
        for abandoned in _scratch(config, place).glob(f"{SCRATCH}*"):  # by a killed run
            shutil.rmtree(abandoned, ignore_errors=True)
        return _with_scratch(config, place, pace)


def _with_scratch(config: Config, place: Place, pace: Pace | None) -> Outcome:
    with tempfile.TemporaryDirectory(dir=_scratch(config, place), prefix=SCRATCH) as scratch:
        return _Run(config, place, Path(scratch), pace or Pace(1)).make()


def _scratch(config: Config, place: Place) -> Path:
    """Return the folder of drafts for an S3 store; a folder's draft is written into it."""
    return place.folder or config.data


class Beside:
    """
    Stores the files of documents beside a backup.

    Args:
        name: the backup that is being made.
    """

    def __init__(self, place: Place, index: Index, source: Storage, name: str, pace: Pace) -> None:
        self._place, self._index, self._source, self._name, self._pace = place, index, source, name, pace
        self._there = {blob.key.removeprefix(FILES): blob.size_bytes for blob in place.store.blobs(FILES.rstrip("/"))}
        self.copied = 0

    def keep(self, key: str, size_bytes: int, sha256: str) -> tuple[int, str]:
        """
        Copy a file unless it is there. Return the size and SHA-256 of its content.

        Raises:
            FileNotFoundError: the instance does not have the file, and neither has the place.
            Unavailable: the place lacks room, or returned other content than was written.
        """
        known = self._index.files.get(key)
        if known is not None and self._there.get(key) == known.size_bytes and known.sha256 == sha256:
            known.last = max(known.last, self._name)
            return known.size_bytes, known.sha256
        self._place.require_room(size_bytes)
        digest = hashlib.sha256()
        with self._source.local(key) as file:
            self._place.put(f"{FILES}{key}", self._pace.through(hashed(pieces_of(file), digest)))
            copied_bytes, copied_sha256 = file.stat().st_size, digest.hexdigest()
        if digest_of(self._place.store.stream(f"{FILES}{key}")) != copied_sha256:
            message = f"{self._place.shown} returned other content than was written."
            raise Unavailable(message, "Check its disk or store, or use another place (MUNIMENT_BACKUPS).")
        self._index.files[key] = StoredFile(
            size_bytes=copied_bytes, sha256=copied_sha256, last=self._name, checked_at=now().isoformat()
        )
        self._there[key] = copied_bytes
        self.copied += 1
        return copied_bytes, copied_sha256

    def collect(self, oldest: str) -> int:
        """Remove the files that no backup since *oldest* needs, and return their number."""
        removed = 0
        for key in self._there.keys() - self._index.files.keys():  # the index was lost
            entry = StoredFile(size_bytes=self._there[key], sha256="", last=self._name, checked_at="")
            self._index.files[key] = entry
        for key, entry in list(self._index.files.items()):
            if entry.last < oldest:
                self._place.store.delete(f"{FILES}{key}")
                del self._index.files[key]
                removed += 1
        return removed


class _Run:
    """One run of :func:`make_backup`."""

    def __init__(self, config: Config, place: Place, scratch: Path, pace: Pace) -> None:
        self._config, self._place, self._scratch, self._pace = config, place, scratch, pace
        self._index = place.index()

    def make(self) -> Outcome:
        place, index = self._place, self._index
        place.sweep()
        records = place.records()
        damaged = check_some(place, index, records, now())
        good = [record for record in records if record.name not in index.damaged]
        newest = good[-1] if good else None
        name = self._free_name({record.name for record in records})
        if newest is None:
            place.require_room(0)
        else:
            place.require_room(2 * newest.size_bytes)
        self._write_suppressions()
        beside = Beside(place, index, storage(), name, self._pace)
        living = RunningInstance(self._config, "default", storage(), beside=beside.keep)
        verified: list[VerifiedBackup] = []

        def check(draft: Path) -> None:
            verified.append(verify(draft))
            if newest is not None and _tables(verified[0]) == newest.tables:
                raise _Unchanged

        folder = place.folder or self._scratch
        archive = folder / f"{name}{ARCHIVE}"
        try:
            with closing(living.parts()) as parts:
                container.write(archive, self._pace.through(parts), verify=check)
        except _Unchanged:
            index.covered_at = datetime.fromisoformat(verified[0].header.made_at)
            place.put_index(index)
            return Outcome(place.shown, index.covered_at, damaged=damaged, kept=len(records))
        record = _record(name, archive, verified[0])
        if place.folder is None:
            self._send(archive)
        place.put_record(record)
        index.covered_at, index.checked[name] = record.made_at, now().isoformat()
        place.put_index(index)
        removed = self._prune([*good, record], beside)
        return Outcome(
            place.shown,
            record.made_at,
            name=name,
            size_bytes=record.size_bytes,
            rows=record.rows,
            files_copied=beside.copied,
            removed=removed,
            kept=len(good) + 1 - removed,
            lost=record.lost,
            damaged=damaged,
        )

    def _free_name(self, taken: set[str]) -> str:
        """Return a name that no backup has: one second later if need be."""
        at = now()
        while name_of(at) in taken:
            at += timedelta(seconds=1)
        return name_of(at)

    def _write_suppressions(self) -> None:
        """Write the list of erased people beside the backups; into a folder again after each later erasure."""
        if self._place.folder is not None:
            suppression.write_beside(self._place.folder)
            suppression.remember_folder(self._config.data, self._place.folder)
            return
        file = self._scratch / suppression.FILE_NAME
        read_suppressions(self._place, file)
        suppression.write_beside(self._scratch)
        if file.exists():
            self._place.put(suppression.FILE_NAME, file.read_bytes())

    def _send(self, archive: Path) -> None:
        """Copy the verified archive into an S3 store, and compare what the store returns."""
        key = archive.name
        self._place.put(key, self._pace.through(pieces_of(archive)))
        if digest_of(self._place.store.stream(key)) != digest_of(pieces_of(archive)):
            self._place.store.delete(key)
            message = f"{self._place.shown} returned other content than was written."
            raise Unavailable(message, "Check the store, or use another place (MUNIMENT_BACKUPS).")

    def _prune(self, good: list[BackupRecord], beside: Beside) -> int:
        """Remove what is not kept. Damaged backups stay until they are older than every good one."""
        stay = kept([record.made_at for record in good], schedule().keep)
        names = {record.name for record in good if record.made_at in stay} | {good[-1].name}
        oldest = min(names)
        gone = [record.name for record in good if record.name not in names]
        damaged = [name for name in self._index.damaged if name < oldest]
        for name in gone + damaged:
            self._place.remove(name)
            self._index.checked.pop(name, None)
            self._index.damaged.pop(name, None)
        beside.collect(oldest)
        self._place.put_index(self._index)
        return len(gone)


def _tables(backup: VerifiedBackup) -> dict[str, str]:
    return {name: count.digest for name, count in backup.manifest.tables.items() if name not in VOLATILE}


def _record(name: str, archive: Path, backup: VerifiedBackup) -> BackupRecord:
    header, manifest = backup.header, backup.manifest
    return BackupRecord(
        name=name,
        made_at=datetime.fromisoformat(header.made_at),
        version=header.version,
        database=header.database,
        edition=header.edition,
        rows=backup.rows,
        size_bytes=backup.size_bytes,
        sha256=container.digest_at_end(archive),
        files=manifest.blobs.n,
        file_bytes=manifest.blob_bytes,
        lost=[*manifest.lost, *manifest.damaged],
        tables=_tables(backup),
    )


CHECK_BYTES: Final = 64 << 20
"""Maximum bytes that a run reads back beyond its own backup."""


_AGAIN_AFTER: Final = timedelta(hours=24)


def check_some(
    place: Place, index: Index, records: Sequence[BackupRecord], moment: datetime, budget: int = CHECK_BYTES
) -> list[str]:
    """
    Read back the backup and the files that were read longest ago, and a day at least. Return what is damaged, in words.

    A damaged backup is noted in *index*. A damaged file is removed, so that this run copies it again.
    """
    at, due = moment.isoformat(), (moment - _AGAIN_AFTER).isoformat()
    names = {record.name for record in records}
    for notes in (index.checked, index.damaged):
        for name in notes.keys() - names:
            del notes[name]
    damages = []

    def last_check(record: BackupRecord) -> str:
        return index.checked.get(record.name, "")

    longest_ago = min(records, key=last_check, default=None)
    if longest_ago is not None and last_check(longest_ago) < due:
        index.checked[longest_ago.name] = at
        budget -= longest_ago.size_bytes
        if digest_at_end_of(place, longest_ago) != longest_ago.sha256:
            index.damaged[longest_ago.name] = marked("its content has changed")
            damages.append(str(Phrase("{name} is damaged: its content has changed", name=longest_ago.name)))
    return damages + _check_files(place, index, at, due, budget)


def _check_files(place: Place, index: Index, at: str, due: str, budget: int) -> list[str]:
    """Read back the files that were read before *due*, until *budget* bytes are read; return what is damaged."""
    damages = []
    for key, entry in sorted(index.files.items(), key=lambda item: item[1].checked_at):
        if budget <= 0 or entry.checked_at >= due:
            break
        budget -= entry.size_bytes
        try:
            is_good = digest_of(place.store.stream(f"{FILES}{key}")) == entry.sha256
        except FileNotFoundError:
            is_good = False
        if is_good:
            entry.checked_at = at
            continue
        place.store.delete(f"{FILES}{key}")
        del index.files[key]
        damage = Phrase(
            "the file {key} beside the backups was damaged or missing, and is copied again if it exists", key=key
        )
        damages.append(str(damage))
    return damages


def digest_at_end_of(place: Place, record: BackupRecord) -> str:
    """Return the SHA-256 of an archive without its trailer; an archive that has none never matches."""
    digest, held = hashlib.sha256(), b""
    for piece in place.store.stream(f"{record.name}{ARCHIVE}"):
        held += piece
        digest.update(held[: -container.TRAILER_BYTES])
        held = held[-container.TRAILER_BYTES :]
    return digest.hexdigest() if held[-32:] == digest.digest() else ""
