"""Read backups back: some with every run, so that all are read from time to time, or all of them."""

import hashlib
import tempfile
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import obstore

from muniment.backup import container
from muniment.backup.container import Damaged
from muniment.backup.contents import digest_of
from muniment.backup.proof import verify_parts
from muniment.backup.scheduled.files import Joined, local_archive
from muniment.backup.scheduled.place import ARCHIVE, FILES, BackupRecord, Index, Place
from muniment.kernel.phrases.phrase import Phrase, marked

CHECK_BYTES: Final = 64 << 20
"""Maximum bytes that a run reads back beyond its own backup."""
_AGAIN_AFTER: Final = timedelta(hours=24)


class Checked(NamedTuple):
    """A backup that was read back; *fault* says what is wrong, and is empty if nothing is."""

    record: BackupRecord
    fault: str


def check_some(
    place: Place, index: Index, records: Sequence[BackupRecord], moment: datetime, budget: int = CHECK_BYTES
) -> list[str]:
    """
    Read back the backup and the files that were read longest ago, and a day at least. Return what is damaged, in words.

    A damaged backup is noted in *index*. A damaged file is removed, so that this run copies it again.
    """
    found: list[str] = []
    at, due = moment.isoformat(), (moment - _AGAIN_AFTER).isoformat()
    known = {each.name for each in records}
    for notes in (index.checked, index.damaged):
        for name in [name for name in notes if name not in known]:
            del notes[name]
    old = [each for each in records if index.checked.get(each.name, "") < due]
    for record in sorted(old, key=lambda each: index.checked.get(each.name, ""))[:1]:
        index.checked[record.name] = at
        budget -= record.size_bytes
        if digest_at_end_of(place, record) != record.sha256:
            index.damaged[record.name] = marked("its content has changed")
            found.append(str(Phrase("{name} is damaged: its content has changed", name=record.name)))
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
        else:
            place.store.delete(f"{FILES}{key}")
            del index.files[key]
            found.append(
                str(
                    Phrase(
                        "the file {key} beside the backups was damaged or missing, and is copied again if it exists",
                        key=key,
                    )
                )
            )
    return found


def digest_at_end_of(place: Place, record: BackupRecord) -> str:
    """Return the SHA-256 of an archive before its trailer; of an archive without one, of another text."""
    digest, held = hashlib.sha256(), b""
    for piece in place.store.stream(f"{record.name}{ARCHIVE}"):
        held += piece
        digest.update(held[: -container.TRAILER_BYTES])
        held = held[-container.TRAILER_BYTES :]
    return digest.hexdigest() if held[-32:] == digest.digest() else ""


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
