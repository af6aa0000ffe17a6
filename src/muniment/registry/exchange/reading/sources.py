"""The files of an import, and which kind of rows each has."""

from pathlib import Path
from typing import Final, NamedTuple

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.registry.exchange.reading.jsonl import read_lines

KINDS: Final = ("people", "companies", "frameworks")
"""In order of dependency."""


class Source(NamedTuple):
    """A file to import, and the kind of its lines."""

    kind: str
    path: Path


def sources_of(path: Path) -> list[Source]:
    """
    Return the files to import at *path*.

    Raises:
        BadRequest: there is nothing to import.
    """
    if path.is_dir():
        files = [(kind, path / f"{kind}.jsonl{suffix}") for kind in KINDS for suffix in ("", ".gz")]
        found = [Source(kind, file) for kind, file in files if file.is_file()]
        if not found:
            raise BadRequest(
                Phrase("{path} contains none of companies.jsonl, people.jsonl and frameworks.jsonl.", path=path),
                "Give a folder with at least one of them (or .jsonl.gz), or one such file.",
            )
        return found
    if not path.is_file():
        message = Phrase("{path} is neither a folder nor a file.", path=path)
        raise BadRequest(message, "Give a folder created by muniment export, or a file.")
    return [Source(_kind_of(path), path)]


def _kind_of(path: Path) -> str:
    for kind in KINDS:
        if path.name.startswith(kind):
            return kind
    first = next((line.value for line in read_lines(path) if line.value is not None), {})
    for kind, member in (("companies", "company"), ("frameworks", "framework"), ("people", "slug")):
        if member in first:
            return kind
    raise BadRequest(
        Phrase("{path} has no line that is a company, a person or a framework.", path=path),
        "Rename the file to companies.jsonl, people.jsonl or frameworks.jsonl.",
    )
