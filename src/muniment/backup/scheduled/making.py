"""Make one scheduled backup: written, read back, recorded; then remove what the retention rule does not keep."""

import shutil
import tempfile
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from muniment.backup import container, rows
from muniment.backup.contents import digest_of
from muniment.backup.proof import VerifiedBackup, verify
from muniment.backup.scheduled import retention
from muniment.backup.scheduled.checking import check_some
from muniment.backup.scheduled.files import Beside
from muniment.backup.scheduled.pace import Pace
from muniment.backup.scheduled.place import ARCHIVE, BackupRecord, Place, name_of, open_place
from muniment.backup.scheduled.schedule import schedule
from muniment.backup.snapshot import RunningInstance, no_instance, pieces_of
from muniment.config import Config
from muniment.documents.records import storage
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Unavailable
from muniment.registry.people import suppression

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
        for left in _scratch(config, place).glob(f"{SCRATCH}*"):  # by a killed run
            shutil.rmtree(left, ignore_errors=True)
        return _with_scratch(config, place, pace)


def _with_scratch(config: Config, place: Place, pace: Pace | None) -> Outcome:
    with tempfile.TemporaryDirectory(dir=_scratch(config, place), prefix=SCRATCH) as scratch:
        return _Run(config, place, Path(scratch), pace or Pace(1)).make()


def _scratch(config: Config, place: Place) -> Path:
    """Return the folder of drafts for an S3 store; a folder's draft is written into it."""
    return place.folder or config.data


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
        good = [each for each in records if each.name not in index.damaged]
        newest = good[-1] if good else None
        name = self._free_name({each.name for each in records})
        place.require_room(2 * newest.size_bytes if newest else 0)
        self._write_suppressions()
        beside = Beside(place, index, storage(), name, self._pace)
        living = RunningInstance(self._config, "default", storage(), beside=beside.keep)
        found: list[VerifiedBackup] = []

        def check(draft: Path) -> None:
            found.append(verify(draft))
            if newest is not None and _tables(found[0]) == newest.tables:
                raise _Unchanged

        folder = place.folder or self._scratch
        archive = folder / f"{name}{ARCHIVE}"
        try:
            with closing(living.parts()) as parts:
                container.write(archive, self._pace.through(parts), verify=check)
        except _Unchanged:
            index.covered_at = datetime.fromisoformat(found[0].header.made_at)
            place.put_index(index)
            return Outcome(place.shown, index.covered_at, damaged=damaged, kept=len(records))
        record = _record(name, archive, found[0])
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
        while (name := name_of(at)) in taken:
            at += timedelta(seconds=1)
        return name

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
        stay = retention.kept((each.made_at for each in good), schedule().keep)
        names = {each.name for each in good if each.made_at in stay} | {good[-1].name}
        oldest = min(names)
        gone = [each.name for each in good if each.name not in names]
        for name in (*gone, *(each for each in self._index.damaged if each < oldest)):
            self._place.remove(name)
            self._index.checked.pop(name, None)
            self._index.damaged.pop(name, None)
        beside.collect(oldest)
        self._place.put_index(self._index)
        return len(gone)


def _tables(found: VerifiedBackup) -> dict[str, str]:
    return {name: count.digest for name, count in found.manifest.tables.items() if name not in VOLATILE}


def _record(name: str, archive: Path, found: VerifiedBackup) -> BackupRecord:
    header, manifest = found.header, found.manifest
    return BackupRecord(
        name=name,
        made_at=datetime.fromisoformat(header.made_at),
        version=header.version,
        database=header.database,
        edition=header.edition,
        rows=found.rows,
        size_bytes=found.size_bytes,
        sha256=container.digest_at_end(archive),
        files=manifest.blobs.n,
        file_bytes=manifest.blob_bytes,
        lost=[*manifest.lost, *manifest.damaged],
        tables=_tables(found),
    )


def read_suppressions(place: Place, file: Path) -> None:
    """Copy the list of erased people beside the backups of an S3 store into *file*, if there is one."""
    try:
        file.write_bytes(b"".join(place.store.stream(suppression.FILE_NAME)))
    except FileNotFoundError:
        return
