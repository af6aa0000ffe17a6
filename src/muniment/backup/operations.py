"""What an operator does: back up, restore."""

from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

from muniment.backup import container
from muniment.backup.contents import Part
from muniment.backup.loading import Loaded, load, refuse_unless_empty
from muniment.backup.proof import Proved, prove
from muniment.backup.snapshot import Living, no_instance
from muniment.config import Config
from muniment.documents.records import storage

Tell = Callable[[str], object]


def back_up(config: Config, path: Path, *, tell: Tell = lambda _: None) -> Proved:
    """
    Write the instance, as it stands at this moment, into one file, while it is served and written.

    Everything but the settings is in it: also the key that signs, and digests of passwords and tokens.

    Raises:
        Conflict: *path* is taken, or there is no instance.
        Damaged: what was written cannot be read back; nothing is left.
        OSError: no room, no such folder. Nothing is left.
    """
    if not config.on_postgresql and not config.database_file.exists():
        raise no_instance()
    found: list[Proved] = []

    def proved(draft: Path) -> None:
        tell("proving")
        found.append(prove(draft))

    with closing(Living(config, "default", storage()).parts()) as parts:
        container.write(path, _told(parts, tell), proved=proved)
    return found[0]


def _told(parts: Iterator[Part], tell: Tell) -> Iterator[Part]:
    for each in parts:
        tell(each.name)
        yield each


def restore(config: Config, path: Path, *, tell: Tell = lambda _: None) -> Loaded:
    """
    Make an empty instance what the one was that *path* was made of.

    Raises:
        Conflict, Damaged, Differs: as :func:`muniment.backup.loading.load`. Nothing is written.
        OSError: the file cannot be read, or the disk is full. Nothing is written.
    """
    if config.on_postgresql or config.database_file.exists():  # to ask would make SQLite's file
        refuse_unless_empty()
    tell("proving")
    prove(path)
    with closing(container.read(path)) as parts:
        return load(parts, config, storage(), tell=tell)
