"""
The contents of a backup, in order. No Django: a file can be verified without an instance.

``header.json``, then ``keys/…``, ``rows/TABLE/NNNNNN.jsonl``, ``blobs/KEY`` and finally ``manifest.json``. A row is one
line, a JSON array of its column values in the portable form of :mod:`muniment.backup.rows`; the header names the
columns.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

FORMAT: Final = "muniment.backup/1"
HEADER, MANIFEST = "header.json", "manifest.json"
KEYS, ROWS, BLOBS = "keys/", "rows/", "blobs/"
BESIDE: Final = "beside"


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Information needed before the rows.

    Args:
        migrations: the applied migrations, as (app, name).
        tables: the columns of each table, in the order of the values.
        next_ids: the highest id that each table has ever assigned, even if the row was deleted.
        edition: the edition of the published documents.
        edition_at: when they last changed, in wire format.
        key_check: shows whether two instances share a secret key, without revealing it.
        files: ``beside`` if the blobs are stored next to the file, shared with other backups; else they are in it.
    """

    format: str
    made_at: str
    version: str
    database: str
    currency: str
    migrations: list[tuple[str, str]]
    tables: dict[str, list[str]]
    next_ids: dict[str, int]
    edition: int
    edition_at: str
    key_check: str
    files: str = ""


class Count(msgspec.Struct, frozen=True):
    """A number of items and their digest, which does not depend on their order."""

    n: int
    digest: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    The required content of the backup.

    Args:
        published: the published documents: kind, key and ETag of each.
        blobs: key, size and SHA-256 of each.
        lost: documents whose blob was missing at the time of the backup.
        damaged: documents whose blob had changed since its upload; backed up as found.
    """

    tables: dict[str, Count]
    published: Count
    blobs: Count
    blob_bytes: int
    lost: list[str]
    damaged: list[str]


class Part(NamedTuple):
    """One part of the stream; read *pieces* once, before requesting the next part."""

    name: str
    size_bytes: int
    pieces: Iterable[bytes]

    def read(self) -> bytes:
        return b"".join(self.pieces)


def part(name: str, content: bytes) -> Part:
    return Part(name, len(content), (content,))


class Tally:
    """Counts and digests items in any order: the sum of their SHA-256, modulo 2**256."""

    def __init__(self) -> None:
        self._n = 0
        self._sum = 0

    def add(self, *things: bytes) -> None:
        for thing in things:
            self._sum += int.from_bytes(hashlib.sha256(thing).digest())
        self._n += len(things)

    def count(self) -> Count:
        return Count(self._n, f"{self._sum % (1 << 256):064x}")


def blob_line(key: str, size_bytes: int, sha256: str) -> bytes:
    return f"{key}\0{size_bytes}\0{sha256}".encode()


def table_of(name: str) -> str:
    return name.removeprefix(ROWS).partition("/")[0]


def hashed(pieces: Iterable[bytes], into: "hashlib._Hash") -> Iterator[bytes]:
    for piece in pieces:
        into.update(piece)
        yield piece


def digest_of(pieces: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def key_check(secret_key: str) -> str:
    """Return a value that is equal for two instances with the same text of secret keys."""
    return hashlib.pbkdf2_hmac("sha256", secret_key.encode(), b"muniment.backup", 100_000).hex() if secret_key else ""
