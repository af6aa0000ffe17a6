"""
The backup file: what it contains, and how it is written, read and verified. No Django: a file needs no instance.

It is a tar archive compressed with Zstandard, followed by its digest. The archive has ``header.json``, then
``keys/…``, ``rows/TABLE/NNNNNN.jsonl``, ``blobs/KEY``, ``manifest.json`` and finally ``entries.jsonl``, the list of all
others. A row is one line, a JSON array of its column values in the portable form of :mod:`muniment.backup.rows`; the
header names the columns.

The digest is in a skippable frame, which every Zstandard reader ignores, so ``tar --zstd -xf`` opens a backup without
this software. It covers every byte before it and is compared byte for byte: any flipped bit or missing end is found.

Source: RFC 8878, section 3.1.2, skippable frames.
"""

import fcntl
import functools
import hashlib
import io
import os
import struct
import tarfile
import tempfile
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final, NamedTuple

import msgspec

from muniment.durable_files import sync
from muniment.kernel.problems import BadRequest, Conflict
from muniment.kernel.zstandard import zstd
from muniment.store.database.form import UNRELEASED, WAY_OUT, is_unreleased

FORMAT: Final = "muniment.backup/1"
HEADER, MANIFEST = "header.json", "manifest.json"
KEYS, ROWS, BLOBS = "keys/", "rows/", "blobs/"
BESIDE: Final = "beside"
DOCUMENTS: Final = "documents_document"
"""The table of the documents, whose files are the blobs."""


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


PIECE_BYTES: Final = 1 << 20
_LABEL: Final = f"{FORMAT} sha256 ".encode()
_FRAME: Final = struct.pack("<II", 0x184D2A50, len(_LABEL) + 32) + _LABEL
TRAILER_BYTES: Final = len(_FRAME) + 32
_ENTRIES: Final = "entries.jsonl"
_COMPRESSION: Final[Mapping[int, int]] = {
    zstd.CompressionParameter.compression_level: 3,
    zstd.CompressionParameter.checksum_flag: 1,
}


class Damaged(BadRequest):
    """The file is damaged, or is not a backup."""

    def __init__(self, message: str) -> None:
        super().__init__(message, "Use another backup.")


class _Digested:
    """Writes to a file and digests what is written."""

    def __init__(self, out: IO[bytes]) -> None:
        self._out = out
        self.sha256 = hashlib.sha256()

    def write(self, piece: bytes) -> int:
        self.sha256.update(piece)
        return self._out.write(piece)


def write(path: Path, parts: Iterable[Part], *, verify: Callable[[Path], object]) -> None:
    """
    Write *parts* to *path*, verified, or nothing at all. Readable by this user only.

    Args:
        verify: checks the finished file before it gets its name; raises if something is wrong.

    Raises:
        Conflict: *path* exists, or another backup is being written there.
        OSError: no space, no such folder, no permission. Nothing is left behind.
    """
    if path.exists():
        raise Conflict(f"{path} already exists.", "Choose another file name, or move the existing file.")
    with _draft(path) as (draft, out):
        digested: Any = _Digested(out)
        with zstd.ZstdFile(digested, "w", options=_COMPRESSION) as packed:
            _archive(packed, parts, path.parent)
        out.write(_FRAME + digested.sha256.digest())
        out.flush()
        os.fsync(out.fileno())
        verify(draft)
        draft.rename(path)
        sync(path.parent)


@contextmanager
def _draft(path: Path) -> Iterator[tuple[Path, IO[bytes]]]:
    draft = path.with_name(f".{path.name}.partial")
    with os.fdopen(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b") as out:
        try:
            fcntl.flock(out, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            hint = "Wait until it finishes, or choose another file name."
            raise Conflict(f"Another backup is being written to {path}.", hint) from None
        try:
            os.fchmod(out.fileno(), 0o600)
            out.truncate(0)  # left by a killed process
            yield draft, out
        finally:
            draft.unlink(missing_ok=True)


def _archive(packed: zstd.ZstdFile, parts: Iterable[Part], folder: Path) -> None:
    with (
        tempfile.TemporaryFile(dir=folder) as entries,
        tarfile.open(fileobj=packed, mode="w|", bufsize=PIECE_BYTES) as archive,
    ):
        for each in parts:
            entries.write(_line(each.name, each.size_bytes, _put(archive, each)))
        size_bytes = entries.tell()
        entries.seek(0)
        _put(archive, Part(_ENTRIES, size_bytes, iter(lambda: entries.read(PIECE_BYTES), b"")))


def _put(archive: tarfile.TarFile, each: Part) -> str:
    member = tarfile.TarInfo(each.name)
    member.size, member.mode = each.size_bytes, 0o600
    digest = hashlib.sha256()
    archive.addfile(member, io.BufferedReader(_Pieces(hashed(each.pieces, digest)), PIECE_BYTES))
    return digest.hexdigest()


class _Pieces(io.RawIOBase):
    """An iterable of pieces as a file."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer)
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = piece
        taken = min(len(view), len(self._rest))
        view[:taken] = self._rest[:taken]
        self._rest = self._rest[taken:]
        return taken


def _line(name: str, size_bytes: int, sha256: str) -> bytes:
    return msgspec.json.encode({"name": name, "sizeBytes": size_bytes, "sha256": sha256}) + b"\n"


def check_bytes(path: Path) -> None:
    """Verify every byte of the file against the digest at its end, or raise Damaged."""
    with path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size - TRAILER_BYTES
        digest = hashlib.sha256()
        while left > 0:
            piece = file.read(min(PIECE_BYTES, left))
            if not piece:
                break
            digest.update(piece)
            left -= len(piece)
        trailer = file.read() if left == 0 else b""
    if trailer[: len(_FRAME)] != _FRAME:
        raise Damaged(f"{path} is not a Muniment backup, or its end is missing.")
    if trailer[len(_FRAME) :] != digest.digest():
        raise Damaged(f"{path} is damaged: its checksum does not match.")


def digest_at_end(path: Path) -> str:
    """Return the SHA-256 that the end of a verified file names."""
    with path.open("rb") as file:
        file.seek(-32, os.SEEK_END)
        return file.read().hex()


def read(path: Path) -> Generator[Part]:
    """Yield the parts of a file, each to be read before the next; raise Damaged if one differs from the list."""
    try:
        with (
            path.open("rb") as file,
            zstd.ZstdFile(file) as unpacked,  # refuses a window over 128 MB; the skippable frame of the digest is empty
            tarfile.open(fileobj=unpacked, mode="r|", bufsize=PIECE_BYTES) as archive,
        ):
            yield from _members(archive, path)
    except (tarfile.TarError, zstd.ZstdError, EOFError) as error:
        raise Damaged(f"{path} cannot be unpacked: {error}.") from error


def _members(archive: tarfile.TarFile, path: Path) -> Iterator[Part]:
    seen, listed = hashlib.sha256(), b""
    for member in archive:
        content = archive.extractfile(member)
        if content is None:
            raise Damaged(f"{path} contains {member.name}, which is not a file.")
        digest = hashlib.sha256()
        pieces = hashed(iter(functools.partial(content.read, PIECE_BYTES), b""), digest)
        if member.name != _ENTRIES:
            yield Part(member.name, member.size, pieces)
        for _ in pieces:
            pass
        if member.name == _ENTRIES:
            listed = digest.digest()
        else:
            seen.update(_line(member.name, member.size, digest.hexdigest()))
    if listed != seen.digest():
        raise Damaged(f"The entries of {path} do not match its list.")


@dataclass(frozen=True, slots=True)
class VerifiedBackup:
    """The contents of a valid backup."""

    header: Header
    manifest: Manifest
    keys: int
    size_bytes: int

    @property
    def rows(self) -> int:
        return sum(count.n for count in self.manifest.tables.values())


def header_of(part: Part | None) -> Header:
    """Read the first part; raise Damaged if it is not a header of a known format, BadRequest if it predates 0.1.0."""
    try:
        if part is None or part.name != HEADER:
            raise Damaged("The backup does not start with its header.")
        found = msgspec.json.decode(part.read(), type=Header)
    except msgspec.DecodeError as error:
        raise Damaged(f"The header of the backup cannot be read: {error}.") from error
    if found.format != FORMAT:
        raise Damaged(f"The backup has the format {found.format}; this version reads {FORMAT}.")
    if is_unreleased(found.migrations):
        raise BadRequest(f"The backup {UNRELEASED}.", WAY_OUT)
    return found


def manifest_of(part: Part) -> Manifest:
    try:
        return msgspec.json.decode(part.read(), type=Manifest)
    except msgspec.DecodeError as error:
        raise Damaged(f"The manifest of the backup cannot be read: {error}.") from error


def verify(path: Path) -> VerifiedBackup:
    """Verify the backup at *path* within a few megabytes of memory, or raise Damaged with what is wrong."""
    check_bytes(path)
    return verify_parts(read(path), path)


def verify_parts(parts: Iterator[Part], path: Path) -> VerifiedBackup:
    """Verify the parts that were read from *path*, or raise Damaged with what is wrong."""
    reading = _Reading(header_of(next(parts, None)))
    for each in parts:
        reading.take(each)
    return VerifiedBackup(reading.header, reading.finish(path), reading.keys, path.stat().st_size)


class _Reading:
    """The tallies made while reading."""

    def __init__(self, header: Header) -> None:
        self.header = header
        self.keys = 0
        self._tables = {name: Tally() for name in header.tables}
        self._blobs, self._wanted = Tally(), Tally()
        self._blob_bytes = 0
        self._manifest: Manifest | None = None

    def take(self, part: Part) -> None:
        if part.name == MANIFEST:
            self._manifest = manifest_of(part)
        elif part.name.startswith(ROWS):
            self._rows(part)
        elif part.name.startswith(BLOBS):
            key, sha256 = part.name.removeprefix(BLOBS), digest_of(part.pieces)
            self._blob_bytes += part.size_bytes
            self._blobs.add(blob_line(key, part.size_bytes, sha256))
        elif part.name.startswith(KEYS):
            self.keys += 1
        else:
            raise Damaged(f"The backup contains an unexpected part, {part.name}.")

    def _rows(self, part: Part) -> None:
        table = table_of(part.name)
        if table not in self._tables:
            raise Damaged(f"The backup contains rows of {table}, which its header does not list.")
        lines = part.read().splitlines()
        self._tables[table].add(*lines)
        columns = self.header.tables[table]
        for line in lines:
            row = msgspec.json.decode(line)
            if len(row) != len(columns):
                raise Damaged(f"A row of {table} has {len(row)} values instead of {len(columns)}.")
            if table == DOCUMENTS:
                document = dict(zip(columns, row, strict=True))
                if document["blob_key"]:
                    self._wanted.add(blob_line(document["blob_key"], document["size_bytes"], document["sha256"]))

    def finish(self, path: Path) -> Manifest:
        manifest = self._manifest
        if manifest is None:
            raise Damaged(f"{path} has no manifest.")
        for table, tally in self._tables.items():
            if manifest.tables.get(table) != tally.count():
                raise Damaged(f"{path}: the rows of {table} do not match its manifest.")
        blobs = self._blobs.count(), self._blob_bytes
        if self.header.files != BESIDE and (manifest.blobs, manifest.blob_bytes) != blobs:
            raise Damaged(f"{path}: the document files do not match its manifest.")
        # A backup lacks the file of a document that is lost, and has other content than the row says if it is damaged.
        is_whole = not (manifest.lost or manifest.damaged)
        if is_whole and self._wanted.count() != manifest.blobs:
            raise Damaged(f"{path}: documents and files do not match.")
        return manifest
