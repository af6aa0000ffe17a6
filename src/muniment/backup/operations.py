"""Back up and restore an instance."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from muniment.backup import container, rows
from muniment.backup.contents import Part
from muniment.backup.loading import Loaded, Tell, load, require_empty
from muniment.backup.proof import VerifiedBackup, verify
from muniment.backup.snapshot import RunningInstance, no_instance
from muniment.config import Config
from muniment.documents.records import storage
from muniment.registry.people import suppression
from muniment.store.sqlite import lost


def back_up(config: Config, path: Path, *, tell: Tell = lambda _: None) -> VerifiedBackup:
    """
    Write the instance into one file while it stays in use.

    The file contains everything except the settings, including the secret key and the digests of passwords and tokens.
    The suppression list of erased people is also written beside it, now and after each later erasure.

    Raises:
        Conflict: *path* exists, or there is no instance.
        Damaged: the written file cannot be read back; it is removed.
        OSError: no space, no such folder. Nothing is left behind.
    """
    if not config.on_postgresql and not config.database_file.exists():
        raise no_instance()
    found: list[VerifiedBackup] = []

    def verify_draft(draft: Path) -> None:
        tell("proving")
        found.append(verify(draft))

    if rows.applied("default"):
        suppression.write_beside(path.parent)
        suppression.remember_folder(config.data, path.parent)
    with closing(RunningInstance(config, "default", storage()).parts()) as parts:
        container.write(path, _reporting(parts, tell), verify=verify_draft)
    return found[0]


def _reporting(parts: Iterator[Part], tell: Tell) -> Iterator[Part]:
    for each in parts:
        tell(each.name)
        yield each


def restore(config: Config, path: Path, *, tell: Tell = lambda _: None) -> Loaded:
    """
    Restore the backup at *path* into an empty instance, or write nothing; see :func:`load` for errors.

    People on the suppression list beside the backup or in the data folder are erased again.
    """
    if config.on_postgresql:
        require_empty()
        return _restore(config, path, tell)
    with lost.restoring(config.database_file):
        if config.database_file.exists():  # connecting would create the file
            require_empty()
        return _restore(config, path, tell)


def _restore(config: Config, path: Path, tell: Tell) -> Loaded:
    tell("proving")
    verify(path)
    config.data.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(container.read(path)) as parts:
        return load(parts, config, storage(), suppressed=(path.parent, config.data), tell=tell)
