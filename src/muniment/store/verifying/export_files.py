"""Compare the export files with the digests in their list."""

import hashlib
from pathlib import Path

import msgspec

from muniment.store.exports.files import MANIFEST, ExportFile


def listed(folder: Path) -> list[ExportFile]:
    """
    Return the files that are offered for download; none if nothing was exported yet.

    Raises:
        msgspec.DecodeError: the list is damaged.
    """
    try:
        return msgspec.json.decode((folder / MANIFEST).read_bytes(), type=list[ExportFile])
    except FileNotFoundError:
        return []


def is_whole(folder: Path, file: ExportFile) -> bool:
    """Return whether a file has the size and the digest of its entry."""
    try:
        with (folder / file.name).open("rb") as content:
            return hashlib.file_digest(content, "sha256").hexdigest() == file.sha256
    except FileNotFoundError:
        return False


def discard(folder: Path, name: str) -> None:
    """Remove a damaged file and the list, so that nothing damaged is offered and the server makes it again."""
    (folder / name).unlink(missing_ok=True)
    (folder / MANIFEST).unlink(missing_ok=True)
