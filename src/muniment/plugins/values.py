"""Values that hooks take and return. Fields are only added, always with a default; plugins name those that they set."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, Protocol

API: Final = 1
"""The version of this interface. A plugin that needs a later one says so with ``MUNIMENT_API``."""

Kind = Literal["company", "person"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """
    A change of a company or a person, before it is stored.

    Args:
        kind: company or person.
        id: the slug.
        before: the stored members, by their names in the API; empty for a new record.
        after: the members as they would be stored. Of the lists beside a company's members (positions, proposals,
            capTable, fundingRounds), both have those that change.
        fields: the names of what changes; empty for a step of a listing, such as its submission for review.
        is_public: whether the record is public, or asks for it: a draft is not.
        via: where the change comes from: web, token or app (an agent), command, or system.
        is_import: whether it is a row of an import.
    """

    kind: Kind
    id: str
    before: Mapping[str, Any]
    after: Mapping[str, Any]
    fields: frozenset[str]
    is_public: bool
    via: str
    is_import: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """
    Why a change is refused.

    Args:
        field: the name of the member, such as lei; forms show the message there.
        message: continues the name, as in "lei must be set for foundations": no capital letter, no full stop.
    """

    field: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Publication:
    """
    A change of a published document, after its commit.

    Args:
        kind: company, person or framework.
        id: the slug.
        change: published, updated or unlisted.
        edition: its number in the change feed. A hook may be called twice with the same edition, never with a
            different change of it.
    """

    kind: Literal["company", "person", "framework"]
    id: str
    change: Literal["published", "updated", "unlisted"]
    edition: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionFact:
    """A label and a value, both plain text. *address* makes the value a link: http, https or a path of this site."""

    label: str
    value: str
    address: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Section:
    """
    A section of a page: a title, facts, and a text in Markdown, which is cleaned like the texts of owners.

    Args:
        key: the anchor of the section, in lower case letters, digits and hyphens; the page shows each key once.
    """

    key: str
    title: str
    facts: Sequence[SectionFact] = ()
    text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A piece of evidence: a fact of the listing or a passage of a document. Quotes name it by its *number*."""

    number: int
    source: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    """Words of a passage, exactly as it has them: those that are not found there count as no evidence."""

    passage: int
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """
    An evaluator's judgement of one criterion.

    Args:
        level: a level of the framework's scale.
        quotes: the evidence; without any, the criterion counts as not met for lack of evidence.
        rationale: for the reader of the report, in plain text.
        confidence: from 0 to 1.
        applies: False leaves the criterion out of the score.
    """

    level: float = 0.0
    quotes: Sequence[Quote] = ()
    rationale: str = ""
    confidence: float = 1.0
    applies: bool = True


class Evaluator(Protocol):
    """Judges the criteria of a framework. ``MUNIMENT_EVALUATOR`` chooses one by its *name*, which reports show."""

    name: str

    def judge(
        self, *, criterion: Mapping[str, Any], scale: tuple[float, float], passages: Sequence[Passage]
    ) -> Verdict:
        """Judge one criterion. An exception ends the attempt; the run is tried again, and costs nothing if it fails."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredBlob:
    """A stored file."""

    key: str
    size_bytes: int
    stored_at: datetime


class BlobStore(Protocol):
    """
    Stores files under keys such as ``documents/0199a2…``. All threads of a process share it.

    A file appears under its key when it is complete, or not at all. Faults are OSError.
    """

    def put(self, key: str, chunks: Iterable[bytes]) -> None:
        """Store *chunks*, and return when they survive a power cut. If the iterator raises, store nothing."""

    def get(self, key: str) -> Iterator[bytes]:
        """Return the bytes in pieces; raise FileNotFoundError if there is no such file, at once or with the first."""

    def size_bytes(self, key: str) -> int:
        """Return the size of a file; raise FileNotFoundError if there is none."""

    def delete(self, key: str) -> None:
        """Remove a file; raise FileNotFoundError or nothing if there is none."""

    def list(self, prefix: str) -> Iterator[StoredBlob]:
        """Return the files whose keys begin with the folders of *prefix*; with an empty prefix, all."""
