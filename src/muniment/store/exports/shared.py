"""Export files in a store that all nodes share."""

import hashlib
import threading
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Final, NamedTuple, Protocol

import msgspec

from muniment.durable_files import replacing
from muniment.kernel.fairness import Limiter
from muniment.kernel.wire import parse_timestamp
from muniment.store.exports.files import ExportFile

SETS: Final = "exports/sets/"
FILES: Final = "exports/files/"
KEPT_FOR: Final = timedelta(minutes=10)
"""The time that the files of a replaced edition stay: another node may still list them."""
OTHERS_KEPT_FOR: Final = timedelta(days=1)
"""The time that sets of another public URL stay; a node that still has this URL puts its set back."""
LOOKS_A_MINUTE: Final = 60
LOOKS_AT_ONCE: Final = 10
"""Look-ups of the lists for names that no known set has, which anybody can ask for."""
READ_BYTES: Final = 1 << 20


class Store(Protocol):
    """The blob store of the instance. Every method raises OSError if the store does not answer."""

    def write(self, key: str, chunks: Iterable[bytes]) -> None: ...
    def read(self, key: str) -> Iterator[bytes]: ...
    def keys(self, prefix: str) -> list[str]: ...
    def delete(self, key: str) -> None: ...


class NotKnownYet(Exception):  # noqa: N818 - an answer, not an error
    """Too many unknown names were requested, so the lists are not read again for this one."""


class FileSet(NamedTuple):
    """The files of one edition in the store, under *key*."""

    key: str
    files: list[ExportFile]

    @property
    def edition(self) -> int:
        return self.files[0].edition


class SharedExports:
    """
    The sets of export files in *store*.

    A set is a list of files, written after them and never changed, so that whatever is listed can be read. Two nodes
    that export the same edition write the same bytes under the same names.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str, FileSet] = {}
        self._looks = Limiter(LOOKS_A_MINUTE, LOOKS_AT_ONCE)
        self._lock = threading.Lock()

    def sets(self, epoch: str, base_url: str) -> list[FileSet]:
        """
        Return the sets of *epoch*, the one made last first: after a failover its edition can be lower.

        Files contain addresses of pictures, so nodes with another public URL have sets of their own.
        """
        return [each for each in self._all() if (each.files[0].epoch, each.files[0].base_url) == (epoch, base_url)]

    def _all(self) -> list[FileSet]:
        keys = self._store.keys(SETS)
        known = {key: self._known.get(key) or FileSet(key, self._read_list(key)) for key in keys}
        self._known = {key: each for key, each in known.items() if each.files}
        return sorted(self._known.values(), key=lambda each: (each.files[0].at, each.edition), reverse=True)

    def _read_list(self, key: str) -> list[ExportFile]:
        try:
            return msgspec.json.decode(b"".join(self._store.read(key)), type=list[ExportFile])
        except FileNotFoundError:  # removed since
            return []

    def put(self, files: list[ExportFile], folder: Path) -> None:
        """Store a set, and remove what it replaces."""
        for file in files:
            self._store.write(FILES + file.name, _pieces(folder / file.name))
        first = files[0]
        key = _key_of(files)
        self._store.write(key, [msgspec.json.encode(files)])
        others = [each for each in self._all() if each.key != key]
        self._remove(_replaced(others, first))

    def forget_before(self, edition: int) -> None:
        """Remove all sets of editions before *edition*."""
        self._remove(each for each in self._all() if each.edition < edition)

    def _remove(self, sets: Iterable[FileSet]) -> None:
        gone = list(sets)
        for each in gone:
            self._store.delete(each.key)
            self._known.pop(each.key, None)
        kept = {file.name for each in self._known.values() for file in each.files}
        for name in {file.name for each in gone for file in each.files} - kept:
            self._store.delete(FILES + name)

    def find(self, name: str, epoch: str) -> ExportFile | None:
        """
        Return the file *name* of any set.

        Raises:
            NotKnownYet: no known set has it, and the lists were read too often in the last seconds.
        """
        with self._lock:
            known = self._named(name, epoch)
            if known is None:
                if not self._looks.take("").allowed:
                    raise NotKnownYet
                self._all()
                known = self._named(name, epoch)
        return known

    def _named(self, name: str, epoch: str) -> ExportFile | None:
        listed = (file for each in list(self._known.values()) for file in each.files)
        return next((file for file in listed if file.name == name and file.epoch == epoch), None)

    def download(self, file: ExportFile, folder: Path) -> None:
        """Copy *file* into *folder*; raise OSError if the store has other bytes."""
        found = hashlib.sha256()
        with self._lock, replacing(folder / file.name) as copy:
            for piece in self._store.read(FILES + file.name):
                found.update(piece)
                copy.write(piece)
            if found.hexdigest() != file.sha256:
                raise OSError(f"the document store has a damaged export: {file.name}")


def _key_of(files: Sequence[ExportFile]) -> str:
    """Return the key of a set, by which it is found in the order of editions."""
    first = files[0]
    words = [first.epoch, first.base_url, first.at]
    words += [file.name for file in files]
    names = hashlib.sha256(" ".join(words).encode()).hexdigest()
    return f"{SETS}{first.edition:019d}-{names[:12]}.json"


def _replaced(sets: Iterable[FileSet], newest: ExportFile) -> list[FileSet]:
    """
    Return those of *sets* that no node lists any more once there is the set of *newest*.

    Args:
        sets: all other sets, the one made last first.
    """
    replaced = []
    has_former = False
    for each in sets:
        first = each.files[0]
        age = parse_timestamp(newest.at) - parse_timestamp(first.at)
        if first.epoch != newest.epoch:
            is_kept = False  # of a database that was restored or rebuilt since
        elif first.base_url != newest.base_url:
            is_kept = age <= OTHERS_KEPT_FOR
        else:
            # The last one stays however old it is: clients may be downloading it.
            is_kept = not has_former or age <= KEPT_FOR
            has_former = True
        if not is_kept:
            replaced.append(each)
    return replaced


def _pieces(path: Path) -> Iterator[bytes]:
    with path.open("rb") as file:
        while piece := file.read(READ_BYTES):
            yield piece
