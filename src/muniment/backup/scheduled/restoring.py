"""Restore the newest good backup that is not after a time."""

import tempfile
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from muniment.backup import container
from muniment.backup.container import Damaged
from muniment.backup.loading import Loaded, Tell, load, require_empty
from muniment.backup.proof import verify
from muniment.backup.scheduled.files import Joined, local_archive
from muniment.backup.scheduled.making import read_suppressions
from muniment.backup.scheduled.place import ARCHIVE, BackupRecord, Place
from muniment.config import Config
from muniment.documents.records import storage
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, NotFound
from muniment.registry.people import suppression
from muniment.store.sqlite import lost

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
        found = datetime.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        hint = f"Write it as 2026-11-22T14:00Z or 2026-11-22T15:00+01:00, or {LATEST}."
        raise BadRequest(Phrase("{text} is not a time with its offset from UTC.", text=text), hint)
    return found


def choose(place: Place, at: datetime | None, *, damaged: dict[str, str] | None = None) -> Choice:
    """
    Return the newest good backup that is not after *at*.

    Args:
        damaged: backups that have turned out to be damaged, besides those that the place knows of.

    Raises:
        NotFound: there is none.
    """
    index = place.index()
    ill = {**index.damaged, **(damaged or {})}
    records = place.records()
    good = [each for each in records if each.name not in ill]
    before = [each for each in good if at is None or each.made_at <= at]
    if not before:
        there = f"The oldest good one is of {shown(good[0].made_at)}." if good else "There is no good one at all."
        when = f" not after {shown(at)}" if at is not None else ""
        raise NotFound(
            Phrase("{shown} has no good backup{when}.", shown=place.shown, when=when),
            Phrase("{there} List them with muniment backups.", there=there),
        )
    record = before[-1]
    after = good[good.index(record) + 1 :]
    covered = max(index.covered_at or record.made_at, record.made_at)
    newer = [each for each in records if each.name in ill and each.made_at > record.made_at]
    skipped = [f"{each.name} ({ill[each.name]})" for each in newer if at is None or each.made_at <= at]
    return Choice(record, after[0] if after else None, record.made_at if newer else covered, skipped)


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
    if config.on_postgresql:
        require_empty()
        return _restore(config, place, at, tell, chosen)
    with lost.restoring(config.database_file):
        if config.database_file.exists():  # connecting would create the file
            require_empty()
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
