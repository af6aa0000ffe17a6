"""
An example of a Muniment plugin. It uses every hook; yours needs only those that it wants.

Settings of the plugin are variables of its own:

- ``STEWARD_NEEDS_LEI``: the type of company that must have a Legal Entity Identifier once it is public.
- ``STEWARD_LOG``: a file to which each publication is appended as a line of JSON.
- ``STEWARD_URL``: an address to which each publication is posted as JSON.
"""

import json
import os
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import click

from muniment.plugins import (
    BlobStore,
    Change,
    Passage,
    Publication,
    Quote,
    Refusal,
    Section,
    SectionFact,
    StoredBlob,
    Verdict,
    hook,
)

MUNIMENT_API = 1


def is_lei(text: str) -> bool:
    """Return whether *text* is a Legal Entity Identifier: 20 characters whose check digits are right (ISO 17442)."""
    if len(text) != 20 or not text.isascii() or not text.isalnum() or text != text.upper():
        return False
    return int("".join(str(int(each, 36)) for each in text)) % 97 == 1


@hook
def validate_change(change: Change) -> Iterator[Refusal]:
    if change.kind != "company":
        return
    lei = change.after.get("lei")
    if "lei" in change.fields and lei and not is_lei(str(lei)):
        yield Refusal(field="lei", message="has wrong check digits")
    needy = os.environ.get("STEWARD_NEEDS_LEI", "")
    if needy and change.is_public and not lei and change.after.get("type") == needy:
        yield Refusal(field="lei", message=f"must be set for companies of the type {needy}")
    website = str(change.after.get("website") or "")
    if "website" in change.fields and website.startswith("http://"):
        yield Refusal(field="website", message="must begin with https://")


@hook
def published(publication: Publication) -> None:
    event = {
        "kind": publication.kind,
        "id": publication.id,
        "change": publication.change,
        "edition": publication.edition,
    }
    if file := os.environ.get("STEWARD_LOG"):
        with Path(file).open("a", encoding="utf-8") as log:
            log.write(json.dumps(event) + "\n")
    if url := os.environ.get("STEWARD_URL"):
        body = json.dumps(event).encode()
        request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - the operator's
        with urllib.request.urlopen(request, timeout=10) as answer:  # noqa: S310 - the operator's
            answer.read()


@hook
def page_section(kind: str, document: Mapping[str, Any]) -> Section | None:
    lei = document["company"].get("lei") if kind == "company" else None
    if not lei:
        return None
    record = f"https://search.gleif.org/#/record/{lei}"
    return Section(key="identifiers", title="Identifiers", facts=[SectionFact(label="LEI", value=lei, address=record)])


@hook
def commands() -> list[click.Command]:
    return [missing_lei]


@click.command("missing-lei")
def missing_lei() -> None:
    """List the published companies without a Legal Entity Identifier."""
    from muniment.cli import published_documents

    for document in published_documents("company"):
        company = document["company"]
        if not company.get("lei"):
            click.echo(f"{company['id']}: {company['name']}")


class Thorough:
    """Judges a criterion as met where a passage has every word of its title."""

    name = "thorough"

    def judge(
        self,
        *,
        criterion: Mapping[str, Any],
        scale: tuple[float, float],
        passages: Sequence[Passage],
    ) -> Verdict:
        words = criterion["title"].lower().split()
        for passage in passages:
            if all(word in passage.text.lower() for word in words):
                quote = Quote(passage=passage.number, text=passage.text[:300])
                return Verdict(level=scale[1], quotes=[quote], rationale="A passage has every word of the title.")
        return Verdict(rationale="No passage has every word of the title.")


@hook
def evaluators() -> list[Thorough]:
    return [Thorough()]


class Folder:
    """Stores files in a folder, such as a network drive: ``MUNIMENT_STORAGE_URL=folder:///mnt/documents``."""

    def __init__(self, path: str) -> None:
        self._path = Path(path)

    def put(self, key: str, chunks: Iterable[bytes]) -> None:
        file = self._path / key
        file.parent.mkdir(parents=True, exist_ok=True)
        part = file.with_name(f"{file.name}.part")
        with part.open("wb") as out:
            for chunk in chunks:
                out.write(chunk)
            out.flush()
            os.fsync(out.fileno())
        part.replace(file)

    def get(self, key: str) -> Iterator[bytes]:
        with (self._path / key).open("rb") as file:
            while piece := file.read(1 << 20):
                yield piece

    def size_bytes(self, key: str) -> int:
        return (self._path / key).stat().st_size

    def delete(self, key: str) -> None:
        (self._path / key).unlink()

    def list(self, prefix: str) -> Iterator[StoredBlob]:
        for file in sorted((self._path / prefix).rglob("*")):
            if file.is_file() and file.suffix != ".part":
                found = file.stat()
                stored_at = datetime.fromtimestamp(found.st_mtime, UTC)
                key = str(file.relative_to(self._path))
                yield StoredBlob(key=key, size_bytes=found.st_size, stored_at=stored_at)


@hook
def blob_store(scheme: str, url: str) -> BlobStore | None:
    if scheme != "folder":
        return None
    path = urlsplit(url).path
    if not os.access(path, os.W_OK):
        message = f"{path} is not there, or cannot be written"
        raise OSError(message)
    return Folder(path)
