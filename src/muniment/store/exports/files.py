"""The names of export files, and the list of them."""

import re
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

MANIFEST: Final = "manifest.json"
"""The list of the files, with their digests."""
NAMES: Final = {"company": "companies", "person": "people", "framework": "frameworks"}
TABLES: Final = "tables"
"""The name of the file with all public tables; each table that is not of a kind has a CSV of its name beside it."""
NAME: Final = re.compile(r"[a-z][a-z0-9_]*-(\d{1,19})(?:-[0-9a-f]{8})?\.(?:jsonl|csv|sqlite)\.gz")
LATEST: Final = re.compile(r"[a-z][a-z0-9_]*-latest\.(?:jsonl|csv|sqlite)\.gz")
_VERSION: Final = re.compile(r"-\d+(?:-[0-9a-f]{8})?\.")


class ExportFile(msgspec.Struct, frozen=True):
    """
    A finished export file.

    Args:
        base_url: the public URL of the instance, which the addresses of pictures begin with.
        epoch: the feed that the edition belongs to.
        chain: the chain of the feed at that edition: after a failover, the same number can mean another history.
        is_former: another edition has replaced it; clients may still be downloading it.
    """

    name: str
    rows: int
    size_bytes: int
    sha256: str
    edition: int
    at: str
    base_url: str = ""
    epoch: str = ""
    is_former: bool = False
    chain: str = ""

    def is_of(self, edition: int, epoch: str, base_url: str) -> bool:
        return (self.edition, self.epoch, self.base_url) == (edition, epoch, base_url)


class FoundFile(NamedTuple):
    """A file to serve; *is_latest* if the client asked for it by the name that stays."""

    path: Path
    file: ExportFile
    is_latest: bool


def file_name(name: str, form: str, edition: int, sha256: str) -> str:
    """Return a name that belongs to one content: editions are counted again after a restore."""
    return f"{name}-{edition}-{sha256[:8]}.{form}.gz"


def latest_name(name: str) -> str:
    """Return the name under which the newest edition of a file is always served: ``companies-latest.jsonl.gz``."""
    return _VERSION.sub("-latest.", name, count=1)
