"""The input of a run: the company's facts and the chosen documents, in chunks that can be cited."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from muniment.assessments.evaluation.words import collapse, fold, passages, quote
from muniment.kernel.json import JSONMapping

PARTS: Final = ("positions", "proposals", "capTable", "distribution")
_NOT_EVIDENCE: Final = frozenset({"id", "slug", "updatedAt", "icon", "logo"})
"""Facts that are not evidence; a check may still use them."""
_LONG: Final = 200


@dataclass(frozen=True, slots=True)
class DocumentText:
    """The text of a chosen document, by page."""

    document_id: str
    filename: str
    sha256: str
    pages: Sequence[tuple[int, str]]


@dataclass(frozen=True, slots=True)
class Chunk:
    """A piece of evidence that can be cited."""

    source: str
    text: str
    folded: str
    document_id: str | None = None
    page: int | None = None


@dataclass(frozen=True, slots=True)
class Leaf:
    """A single value of a fact, and the quote that shows it."""

    path: str
    value: Any
    chunk: int
    quote: str


@dataclass(slots=True)
class Inputs:
    """The input of one run: citable chunks, single values of facts, and the currency of amounts such as ``$1.2M``."""

    currency: str = "USD"
    chunks: list[Chunk] = field(default_factory=list)
    leaves: list[Leaf] = field(default_factory=list)
    has_documents: bool = False

    def values(self, path: str) -> list[Leaf]:
        """Return the values at *path*; lists on the way fan out. Empty texts and nulls count as absent."""
        return [leaf for leaf in self.leaves if leaf.path == path]

    def below(self, path: str) -> list[Leaf]:
        """Return the values at *path*, and those of the members of an object there."""
        return [leaf for leaf in self.leaves if f"{leaf.path}.".startswith(f"{path}.")]

    def of(self, sources: Sequence[str]) -> list[int]:
        return [number for number, chunk in enumerate(self.chunks) if chunk.source in sources]

    def has(self, source: str) -> bool:
        return any(chunk.source == source for chunk in self.chunks)

    def _add(self, source: str, text: str, document_id: str | None = None, page: int | None = None) -> int:
        self.chunks.append(Chunk(source, text, fold(text), document_id, page))
        return len(self.chunks) - 1


def read_inputs(facts: JSONMapping, documents: Sequence[DocumentText], *, currency: str = "USD") -> Inputs:
    """
    Split a run's input into chunks.

    *facts* are ``{company, positions, proposals, capTable, distribution, fundingRounds}`` in wire form.
    """
    inputs = Inputs(currency)
    for path, value in _leaves(facts.get("company") or {}, "company"):
        _add_fact(inputs, path, value)
    _add_records(inputs, "profile", "fundingRounds", facts.get("fundingRounds"))
    for part in PARTS:
        _add_records(inputs, part, part, facts.get(part))
    for document in documents:
        for page, text in document.pages:
            for passage in passages(text):
                inputs._add("documents", passage, document.document_id, page)  # noqa: SLF001 - built here
                inputs.has_documents = True
    return inputs


def input_hash(facts: JSONMapping, documents: Sequence[DocumentText], specification: JSONMapping) -> str:
    """Return the SHA-256 of everything that a report depends on, independent of the order of keys."""
    texts = [[document.document_id, document.sha256, document.pages] for document in documents]
    everything = {"facts": facts, "documents": texts, "specification": specification}
    return hashlib.sha256(msgspec.json.encode(everything, order="deterministic")).hexdigest()


def _leaves(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping):
        for key, member in value.items():
            yield from _leaves(member, f"{path}.{key}")
    elif isinstance(value, list | tuple):
        for member in value:
            yield from _leaves(member, path)
    elif value is not None and (not isinstance(value, str) or value.strip()):
        yield path, value


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return collapse(f"{value}")


def _add_fact(inputs: Inputs, path: str, value: Any) -> None:
    name = path.partition(".")[2]
    text = _as_text(value)
    if isinstance(value, str) and (len(text) > _LONG or name in {"description", "body"}):
        first = len(inputs.chunks)
        for passage in passages(value):
            inputs._add("profile", passage)  # noqa: SLF001 - built here
        inputs.leaves.append(Leaf(path, value, first, quote(inputs.chunks[first].text)))
        return
    line = f"{name}: {text}"
    source = "profile" if name.partition(".")[0] not in _NOT_EVIDENCE else "reference"
    inputs.leaves.append(Leaf(path, value, inputs._add(source, line), line))  # noqa: SLF001 - built here


def _add_records(inputs: Inputs, source: str, root: str, value: Any) -> None:
    """Add each record of a list as one chunk of ``name: value`` lines; its quotes are those lines."""
    records = value if isinstance(value, list | tuple) else [value]
    for record in records:
        values = list(_leaves(record, root))
        if not values:
            continue
        lines = [f"{path.partition('.')[2] or root}: {_as_text(value)}" for path, value in values]
        number = inputs._add(source, "; ".join(lines))  # noqa: SLF001 - built here
        for (path, leaf_value), line in zip(values, lines, strict=True):
            inputs.leaves.append(Leaf(path, leaf_value, number, quote(line)))
