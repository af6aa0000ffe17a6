"""Read scheduled backups with the files beside them: to check that they are good, or to restore one."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final, NamedTuple

import msgspec
import obstore

from muniment.backup import container
from muniment.backup.container import (
    Damaged,
    Header,
    Part,
    Tally,
    digest_of,
    header_of,
    manifest_of,
    part,
    verify,
    verify_parts,
)
from muniment.backup.restoring import Loaded, empty_instance, load
from muniment.backup.scheduled.place import ARCHIVE, FILES, BackupRecord, Place, read_suppressions
from muniment.backup.snapshot import Tell, pieces_of
from muniment.config import Config
from muniment.documents.records import storage
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry.people import suppression


@dataclass(slots=True)
class Joined:
    """
    A backup and the files beside it, as one stream.

    Args:
        missing: filled while reading: documents whose file the place lacks, or has with other content.
    """

    place: Place
    missing: list[str] = field(default_factory=list)
    _tally: Tally = field(default_factory=Tally)
    _bytes: int = 0

    def parts(self, parts: Iterator[Part]) -> Iterator[Part]:
        first = next(parts, None)
        header = header_of(first)
        yield part(container.HEADER, msgspec.json.encode(msgspec.structs.replace(header, files="")))
        if header.files != container.BESIDE:
            yield from parts
            return
        documents: list[tuple[str, str, str]] = []
        for each in parts:
            if each.name == container.MANIFEST:
                manifest = manifest_of(each)
                known = {*manifest.lost, *manifest.damaged}
                lost = set(manifest.lost)
                with_file = [document for document in documents if document[0] not in lost]
                yield from self._files(with_file, known)
                complete = msgspec.structs.replace(
                    manifest,
                    blobs=self._tally.count(),
                    blob_bytes=self._bytes,
                    lost=[*manifest.lost, *self.missing],
                )
                yield part(container.MANIFEST, msgspec.json.encode(complete))
            elif each.name.startswith(container.ROWS) and container.table_of(each.name) == container.DOCUMENTS:
                content = each.read()
                documents += _documents(header, content)
                yield part(each.name, content)
            else:
                yield each

    def _files(self, documents: list[tuple[str, str, str]], as_found: set[str]) -> Iterator[Part]:
        for number, key, sha256 in documents:
            try:
                with self.place.store.local(f"{FILES}{key}") as file:
                    found = digest_of(pieces_of(file))
                    if found != sha256 and number not in as_found:
                        self.missing.append(number)
                        continue
                    size_bytes = file.stat().st_size
                    yield Part(f"{container.BLOBS}{key}", size_bytes, pieces_of(file))
            except FileNotFoundError:
                self.missing.append(number)
                continue
            self._tally.add(container.blob_line(key, size_bytes, found))
            self._bytes += size_bytes


def _documents(header: Header, content: bytes) -> Iterator[tuple[str, str, str]]:
    """Yield the id of each document that has a file, with the key and SHA-256 of the file."""
    columns = header.tables[container.DOCUMENTS]
    places = [columns.index(name) for name in ("id", "blob_key", "sha256")]
    for line in content.splitlines():
        row = msgspec.json.decode(line)
        number, key, sha256 = (row[each] for each in places)
        if key:
            yield number, key, sha256


def local_archive(place: Place, name: str, scratch: Path) -> Path:
    """Return the archive of a backup as a local file: copied into *scratch* from an S3 store."""
    if place.folder is not None:
        return place.folder / name
    file = scratch / name
    with file.open("xb") as out:
        for piece in place.store.stream(name):
            out.write(piece)
    return file


class Checked(NamedTuple):
    """A backup that was read back; *fault* says what is wrong, and is empty if nothing is."""

    record: BackupRecord
    fault: str


def check_all(place: Place, scratch: Path) -> Iterator[Checked]:
    """Read back every backup with the files beside it, the newest first."""
    known = place.index()
    for record in reversed(place.records()):
        yield Checked(record, known.damaged.get(record.name, "") or _fault(place, record, scratch))


def _fault(place: Place, record: BackupRecord, scratch: Path) -> str:
    joined = Joined(place)
    with tempfile.TemporaryDirectory(dir=scratch) as folder:
        try:
            archive = local_archive(place, f"{record.name}{ARCHIVE}", Path(folder))
            container.check_bytes(archive)
            verify_parts(joined.parts(container.read(archive)), archive)
        except Damaged as error:
            return error.message
        except (OSError, obstore.exceptions.BaseError) as error:
            return Phrase("it cannot be read: {error}", error=str(error).partition("Debug source")[0].strip())
    if joined.missing:
        return Phrase(
            "the files of {count:,} documents are missing or damaged: {missing}",
            count=len(joined.missing),
            missing=", ".join(joined.missing[:5]),
        )
    return ""


LATEST: Final = "latest"


class Choice(msgspec.Struct, frozen=True):
    """
    The backup to restore.

    Args:
        next: the first good backup after it, if there is one.
        covered_at: nothing had changed between the newest backup and this time.
        skipped: newer ones that are damaged, in words.
    """

    record: BackupRecord
    next: BackupRecord | None
    covered_at: datetime
    skipped: list[str]

    @property
    def lost(self) -> str:
        """Return what is lost, in a sentence."""
        if self.next is None:
            return f"Every change after {shown(self.covered_at)} is lost."
        return (
            f"Every change after {shown(self.record.made_at)} is lost, although later backups exist: the next is of"
            f" {shown(self.next.made_at)}."
        )


def shown(at: datetime) -> str:
    return f"{at:%Y-%m-%d %H:%M:%S} UTC"


def parse_time(text: str) -> datetime | None:
    """
    Read a time such as 2026-11-22T14:00Z; None means the newest backup.

    Raises:
        BadRequest: the text is no time, or lacks its offset from UTC.
    """
    if text == LATEST:
        return None
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        hint = f"Write it as 2026-11-22T14:00Z or 2026-11-22T15:00+01:00, or {LATEST}."
        raise BadRequest(Phrase("{text} is not a time with its offset from UTC.", text=text), hint)
    return moment


def choose(place: Place, at: datetime | None, *, damaged: dict[str, str] | None = None) -> Choice:
    """
    Return the newest good backup that is not after *at*.

    Args:
        damaged: backups that have turned out to be damaged, besides those that the place knows of.

    Raises:
        NotFound: there is none.
    """
    index = place.index()
    faults = {**index.damaged, **(damaged or {})}
    records = place.records()
    good = [record for record in records if record.name not in faults]
    early_enough = [record for record in good if _is_not_after(record, at)]
    if not early_enough:
        raise _no_choice(place, good, at)
    newest = early_enough[-1]
    later_good = good[good.index(newest) + 1 :]
    later_damaged = _later_than(newest, [record for record in records if record.name in faults])
    covered_at = newest.made_at
    if index.covered_at is not None and not later_damaged:
        # The index speaks of the newest backup: if that is damaged, this one covers nothing beyond its own time.
        covered_at = max(index.covered_at, newest.made_at)
    skipped = [f"{record.name} ({faults[record.name]})" for record in later_damaged if _is_not_after(record, at)]
    next_good = later_good[0] if later_good else None
    return Choice(newest, next_good, covered_at, skipped)


def _later_than(backup: BackupRecord, records: list[BackupRecord]) -> list[BackupRecord]:
    return [record for record in records if record.made_at > backup.made_at]


def _is_not_after(record: BackupRecord, at: datetime | None) -> bool:
    return at is None or record.made_at <= at


def _no_choice(place: Place, good: list[BackupRecord], at: datetime | None) -> NotFound:
    there = f"The oldest good one is of {shown(good[0].made_at)}." if good else "There is no good one at all."
    when = f" not after {shown(at)}" if at is not None else ""
    return NotFound(
        Phrase("{shown} has no good backup{when}.", shown=place.shown, when=when),
        Phrase("{there} List them with muniment backups.", there=there),
    )


def restore_at(
    config: Config,
    place: Place,
    at: datetime | None,
    *,
    tell: Tell = lambda _: None,
    chosen: Callable[[Choice], object] = lambda _: None,
) -> tuple[Choice, Loaded]:
    """
    Restore the newest good backup that is not after *at* into an empty instance, or write nothing.

    A backup that turns out to be damaged is skipped. Files of documents that are missing or damaged beside the backups
    are reported in the notes, and everything else is restored.

    Args:
        chosen: called with the choice before anything is written.
    """
    with empty_instance(config):
        return _restore(config, place, at, tell, chosen)


def _restore(
    config: Config, place: Place, at: datetime | None, tell: Tell, chosen: Callable[[Choice], object]
) -> tuple[Choice, Loaded]:
    config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    damaged: dict[str, str] = {}
    while True:
        choice = choose(place, at, damaged=damaged)
        name = f"{choice.record.name}{ARCHIVE}"
        with tempfile.TemporaryDirectory(dir=config.data) as folder:
            tell("proving")
            archive = local_archive(place, name, Path(folder))
            try:
                verify(archive)
            except Damaged as error:
                damaged[choice.record.name] = error.message.rstrip(".")
                continue
            chosen(choice)
            lists = [config.data, place.folder or Path(folder)]
            if place.folder is None:
                read_suppressions(place, Path(folder) / suppression.FILE_NAME)
            joined = Joined(place)
            with closing(container.read(archive)) as parts:
                loaded = load(joined.parts(parts), config, storage(), suppressed=lists, tell=tell)
        return choice, loaded
