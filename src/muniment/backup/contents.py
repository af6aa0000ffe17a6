"""
What a backup holds, in the order in which it holds it. No Django: a file is proved without an instance.

``header.json``, then ``keys/…``, ``rows/TABLE/NNNNNN.jsonl``, ``blobs/KEY`` and at last ``manifest.json``.
A row is one line, a JSON array of its columns' values in the portable form of
:mod:`muniment.backup.rows`; the header names the columns.
"""

import hashlib
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

FORMAT: Final = "muniment.backup/1"
HEADER, MANIFEST = "header.json", "manifest.json"
KEYS, ROWS, BLOBS = "keys/", "rows/", "blobs/"


class Header(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    What must be known before the rows.

    Args:
        version: of the software that made it.
        migrations: what the database's form consists of, as (app, name).
        tables: the columns of each table, in the order of the values.
        next_ids: the highest number that each table has ever given, whether the row still stands or not.
        edition: where the published documents stood.
        edition_at: when they last changed, as the wire shows it.
        key_check: tells whether two instances sign with one key, without telling the key.
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


class Count(msgspec.Struct, frozen=True):
    """How many there are, and their digest, which no order changes."""

    n: int
    digest: str


class Manifest(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    What must be found in the end.

    Args:
        tables: the rows of each table.
        published: the public answers: kind, key and ETag of each.
        blobs: key, size and SHA-256 of each.
        lost: documents whose blob was not there when the backup was made.
        damaged: documents whose blob had other bytes than were once received; kept as they were found.
    """

    tables: dict[str, Count]
    published: Count
    blobs: Count
    blob_bytes: int
    lost: list[str]
    damaged: list[str]


class Part(NamedTuple):
    """One part of the stream; *pieces* are read once, before the next part is asked for."""

    name: str
    size_bytes: int
    pieces: Iterable[bytes]

    def read(self) -> bytes:
        """Give the content of a part that is known to be small."""
        return b"".join(self.pieces)


def part(name: str, content: bytes) -> Part:
    """Make a part of *content*."""
    return Part(name, len(content), (content,))


class Tally:
    """Counts and digests things in any order: the sum of their SHA-256, modulo 2**256."""

    def __init__(self) -> None:
        self._n = 0
        self._sum = 0

    def add(self, *things: bytes) -> None:
        """Count things."""
        for thing in things:
            self._sum += int.from_bytes(hashlib.sha256(thing).digest())
        self._n += len(things)

    def count(self) -> Count:
        """Give what was counted."""
        return Count(self._n, f"{self._sum % (1 << 256):064x}")


def blob_line(key: str, size_bytes: int, sha256: str) -> bytes:
    """Give what is counted of a blob."""
    return f"{key}\0{size_bytes}\0{sha256}".encode()


def table_of(name: str) -> str:
    """Give the table that a part of rows belongs to."""
    return name.removeprefix(ROWS).partition("/")[0]


def hashed(pieces: Iterable[bytes], into: "hashlib._Hash") -> Iterator[bytes]:
    """Pass *pieces* on and digest them."""
    for piece in pieces:
        into.update(piece)
        yield piece


def key_check(secret_key: str) -> str:
    """Give a value by which two instances know that they sign with one key."""
    return hashlib.pbkdf2_hmac("sha256", secret_key.encode(), b"muniment.backup", 100_000).hex() if secret_key else ""
