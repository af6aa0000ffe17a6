"""
The suppression list: digests of erased people and removed former names, which imports, restores and new slugs respect.

Digests are keyed by a secret derived from the secret key, so the list alone does not tell who is on it. A line of the
file form is a JSON object with the members of a row; the file is written beside the backups, which may still contain
the people.
"""

import hashlib
import os
import unicodedata
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Final

import msgspec

from muniment.accounts.keys import kept
from muniment.durable_files import replacing
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.registry.models import Suppression

FILE_NAME: Final = "suppressions.jsonl"
SECRET: Final = "suppression"  # noqa: S105 - a name
"""The kept secret that keys the digests: it stays when the secret key is rotated."""
_FOLDERS: Final = "suppressions.folders"
"""Names the folders of backups, in the data folder."""


class Line(msgspec.Struct, frozen=True, kw_only=True):
    """A line of the file."""

    digest: str
    key: str
    at: datetime


class SuppressionKey:
    """A key of digests. ``check`` tells keys apart without revealing them."""

    def __init__(self, secret: bytes) -> None:
        self._key = secret
        self.check = self._digest("key")[:16]

    def _digest(self, *texts: str) -> str:
        return hashlib.blake2b("\0".join(texts).encode(), digest_size=32, key=self._key).hexdigest()

    def slug(self, slug: str) -> str:
        return self._digest("slug", slug)

    def document(self, document_id: str) -> str:
        return self._digest("document", document_id)

    def place(self, company: str, name: str) -> str:
        """Return the digest of a name in the positions of one company; other people may have the name elsewhere."""
        return self._digest("place", company, folded(name))

    def former_name(self, company: str, name: str) -> str:
        """Return the digest of a name that one company had."""
        return self._digest("former name", company, folded(name))


def keys_in_use(secret_keys: Iterable[str] = ()) -> list[SuppressionKey]:
    """Return the key of new digests, then others whose digests count; *secret_keys* replace those of this process."""
    return [SuppressionKey(secret) for secret in kept.secrets_for(SECRET, secret_keys)]


class Suppressions:
    """The list, loaded once for many comparisons."""

    def __init__(self, keys: list[SuppressionKey] | None = None) -> None:
        known = set(Suppression.objects.values_list("key_check", flat=True).distinct())
        self._keys = [key for key in keys or keys_in_use() if key.check in known]
        checks = [key.check for key in self._keys]
        self._digests = set(Suppression.objects.filter(key_check__in=checks).values_list("digest", flat=True))

    def __bool__(self) -> bool:
        return bool(self._digests)

    def has_slug(self, slug: str) -> bool:
        return any(key.slug(slug) in self._digests for key in self._keys)

    def has_person(self, slug: str, document_id: str = "") -> bool:
        if self.has_slug(slug):
            return True
        if not document_id:
            return False
        return any(key.document(document_id) in self._digests for key in self._keys)

    def has_place(self, company: str, slug: str, name: str) -> bool:
        """Return whether a position names an erased person, by slug or by the name that they had at that company."""
        if slug:
            return self.has_slug(slug)
        return any(key.place(company, name) in self._digests for key in self._keys)

    def has_former_name(self, company: str, name: str) -> bool:
        return any(key.former_name(company, name) in self._digests for key in self._keys)


def folded(name: str) -> str:
    """Return a name as it is compared: without differences of case, width and white space."""
    return " ".join(unicodedata.normalize("NFKC", name).casefold().split())


def is_suppressed(slug: str) -> bool:
    return Suppression.objects.filter(digest__in=[key.slug(slug) for key in keys_in_use()]).exists()


def has_former_name(company: str, name: str) -> bool:
    """Return whether a former name of the company was removed."""
    digests = [key.former_name(company, name) for key in keys_in_use()]
    return Suppression.objects.filter(digest__in=digests).exists()


def suppress_former_name(company: str, name: str) -> None:
    """Put a name that a company had on the list."""
    key = keys_in_use()[0]
    _add([Line(digest=key.former_name(company, name), key=key.check, at=now())])


def suppress(key: SuppressionKey, slugs: Iterable[str], document_id: str, name: str, companies: Iterable[str]) -> None:
    """Put a person on the list, with the present and former slugs and the companies whose positions named them."""
    digests = [key.slug(slug) for slug in slugs]
    digests.append(key.document(document_id))
    digests += [key.place(company, name) for company in companies]
    _add(Line(digest=digest, key=key.check, at=now()) for digest in digests)


def _add(lines: Iterable[Line]) -> None:
    rows = [Suppression(digest=line.digest, key_check=line.key, at=line.at) for line in lines]
    Suppression.objects.bulk_create(rows, ignore_conflicts=True)


def warnings(keys: list[SuppressionKey] | None = None) -> list[str]:
    """Return what the operator must know: digests made with another secret key suppress nothing."""
    known = [key.check for key in keys or keys_in_use()]
    others = Suppression.objects.exclude(key_check__in=known).count()
    if not others:
        return []
    message = Phrase(
        "{others:,} suppressions of erased people were made with another secret key and have no effect", others=others
    )
    return [Phrase("{message}; set that key again, or erase the people again", message=message)]


def add_from(*folders: Path) -> None:
    """Add the lists in the files of *folders*, in the caller's transaction; a folder without one adds nothing."""
    for folder in folders:
        _add(_read(folder / FILE_NAME))


def write_beside(folder: Path) -> None:
    """
    Add the list to the file in *folder*, atomically, and remember the folder for later erasures.

    Raises:
        OSError: the folder cannot be written.
    """
    lines = {line.digest: line for line in _read(folder / FILE_NAME)}
    for digest, key, at in Suppression.objects.order_by("pk").values_list("digest", "key_check", "at"):
        lines.setdefault(digest, Line(digest=digest, key=key, at=at))
    if lines:
        with replacing(folder / FILE_NAME) as out:
            out.writelines(msgspec.json.encode(line) + b"\n" for line in lines.values())


def remember_folder(data: Path, folder: Path) -> None:
    """Remember in the data folder that *folder* has backups, so that later erasures are written there too."""
    known = folders_of(data)
    if folder.resolve() not in known:
        data.mkdir(mode=0o700, parents=True, exist_ok=True)  # with PostgreSQL a node may have had no need of it yet
        with replacing(data / _FOLDERS) as out:
            out.writelines(os.fsencode(each) + b"\n" for each in [*known, folder.resolve()])


def folders_of(data: Path) -> list[Path]:
    """Return the folders that have had backups."""
    file = data / _FOLDERS
    if not file.exists():
        return []
    return [Path(os.fsdecode(line)) for line in file.read_bytes().splitlines()]


def _read(file: Path) -> list[Line]:
    if not file.exists():
        return []
    lines = []
    for line in file.read_bytes().splitlines():
        if line.strip():
            lines.append(msgspec.json.decode(line, type=Line))
    return lines
