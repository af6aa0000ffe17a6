"""
The backup file: a tar archive compressed with Zstandard, followed by its digest.

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
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

import msgspec
import zstandard

from muniment.backup.contents import FORMAT, Part, hashed
from muniment.durable_files import sync
from muniment.kernel.problems import BadRequest, Conflict

PIECE_BYTES: Final = 1 << 20
_LABEL: Final = f"{FORMAT} sha256 ".encode()
_FRAME: Final = struct.pack("<II", 0x184D2A50, len(_LABEL) + 32) + _LABEL
TRAILER_BYTES: Final = len(_FRAME) + 32
_ENTRIES: Final = "entries.jsonl"


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
        with zstandard.ZstdCompressor(level=3, write_checksum=True).stream_writer(digested, closefd=False) as packed:
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


def _archive(packed: IO[bytes], parts: Iterable[Part], folder: Path) -> None:
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
            path.open("rb") as file,  # whose first Zstandard frame is the archive; the reader stops at its end
            zstandard.ZstdDecompressor().stream_reader(file, read_size=PIECE_BYTES) as unpacked,
            tarfile.open(fileobj=unpacked, mode="r|", bufsize=PIECE_BYTES) as archive,
        ):
            yield from _members(archive, path)
    except (tarfile.TarError, zstandard.ZstdError, EOFError) as error:
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
