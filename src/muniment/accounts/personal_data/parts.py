"""
Everything that the registry stores about an account: one archive of it, and its deletion.

Each feature contributes its part when it is loaded, so that nothing of a new feature is forgotten in one of the two.
"""

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import IO, Any, Final, NamedTuple

import msgspec

from muniment.accounts.models import Account
from muniment.kernel.ids import now
from muniment.kernel.wire import timestamp

FORMAT: Final = "muniment.account/1"


class ArchiveEntry(NamedTuple):
    """A file of the archive: a value, written as JSON, or the pieces of a file."""

    path: str
    content: Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """
    What one feature stores about accounts.

    Args:
        name: of the feature.
        export: yields the files of its part of the archive.
        delete: deletes what is the account's own, in the transaction of the deletion; what belongs to others stays.
    """

    name: str
    export: Callable[[Account], Iterator[ArchiveEntry]]
    delete: Callable[[Account], None]


class PersonalData:
    """The parts of all features, in the order of their layers."""

    def __init__(self) -> None:
        self._parts: dict[str, Part] = {}

    @property
    def names(self) -> list[str]:
        return list(self._parts)

    def register(self, part: Part) -> None:
        self._parts[part.name] = part

    def write_archive(self, account: Account, file: IO[bytes]) -> None:
        """Write everything about *account* into *file*, a ZIP archive with a JSON file for each kind of thing."""
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            made = {"format": FORMAT, "madeAt": timestamp(now()), "account": account.email, "parts": self.names}
            _write(archive, ArchiveEntry("archive.json", made))
            for part in self._parts.values():
                for entry in part.export(account):
                    _write(archive, entry)

    def delete(self, account: Account) -> None:
        """Delete what is the account's own, upper layers first, in the caller's transaction."""
        for part in reversed(self._parts.values()):
            part.delete(account)


def _write(archive: zipfile.ZipFile, entry: ArchiveEntry) -> None:
    with archive.open(entry.path, "w", force_zip64=True) as out:
        if isinstance(entry.content, Iterator):
            for piece in entry.content:
                out.write(piece)
        else:
            out.write(msgspec.json.format(msgspec.json.encode(entry.content), indent=2))


personal_data: Final = PersonalData()
