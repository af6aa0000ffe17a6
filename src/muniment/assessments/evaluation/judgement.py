"""An evaluator's judgement of one criterion, and its result once the quotes are verified."""

from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from muniment.assessments.evaluation.inputs import Chunk, Inputs
from muniment.assessments.evaluation.words import fold
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import marked
from muniment.kernel.wire import number

Status = Literal["met", "partial", "not_met", "insufficient", "not_applicable"]
MAX_CITATIONS: Final = 5


@dataclass(frozen=True, slots=True)
class Cited:
    """A quote, and the chunk that it is said to come from."""

    chunk: int
    quote: str


@dataclass(frozen=True, slots=True)
class Support:
    """A level, and the quotes that together support it."""

    level: float
    cited: tuple[Cited, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    An evaluator's judgement of a criterion.

    Args:
        applies: False excludes the criterion from the mean.
        supports: levels with their quotes; the highest with verified quotes is the criterion's level.
        rationale: for the reader; must not reveal private texts.
    """

    applies: bool = True
    supports: tuple[Support, ...] = ()
    confidence: float = 0.0
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """A judgement of the criterion *number* among those passed to the evaluator, and by which evaluator it is."""

    number: int
    judgement: Judgement
    by: Literal["rules", "model", "plugin"]
    note: str = ""
    """The reason, for the reader, why this evaluator replaced the requested one."""


Judging = Generator[Judged | None, None, None]
"""Judgements as they complete; None when none completed for a while."""


@dataclass(frozen=True, slots=True)
class Usage:
    """The tokens and seconds that a run has used."""

    tokens: int = 0
    seconds: float = 0.0


class Evaluator(Protocol):
    """Judges criteria; :func:`settle` verifies the citations of every evaluator."""

    kind: str
    batch: int
    """The number of judgements stored per checkpoint: one if each costs money."""
    model: str | None
    prompt_hash: str | None

    @property
    def spent(self) -> Usage:
        """Return the usage of the run so far."""

    def judge(self, criteria: Sequence[JSONMapping], scale: tuple[float, float], inputs: Inputs) -> Judging:
        """
        Judge criteria of a specification against *inputs*, in any order.

        Yields None while waiting, so that the caller can check for cancellation; closing the iterator stops the work.
        """


def is_quoted(cited: Cited, chunks: Sequence[Chunk]) -> bool:
    """Return whether the cited chunk contains the quote, ignoring white space and case."""
    quoted = fold(cited.quote)
    return bool(quoted) and 0 <= cited.chunk < len(chunks) and quoted in chunks[cited.chunk].folded


def settle(criterion: JSONMapping, scale: tuple[float, float], judgement: Judgement, inputs: Inputs) -> JSONObject:
    """
    Verify every quote, and return the criterion as the report shows it, with its confidence.

    A support with a quote that is not found is dropped, so the level falls to what the others support.

    Source: assessment-spec/1, flow.
    """
    low, high = scale
    shown = {"id": criterion["id"], "title": criterion["title"]}
    if not judgement.applies:
        return {**shown, **_outcome("not_applicable", None, high, judgement.rationale), "confidence": 0.0}
    verified = [
        support
        for support in judgement.supports
        if support.cited and all(is_quoted(cited, inputs.chunks) for cited in support.cited)
    ]
    # The highest first, so that the quotes shown are those that support the level.
    highest_first = sorted(verified, key=lambda each: -each.level)
    quotes = _distinct((cited for support in highest_first for cited in support.cited), inputs)
    level = max((min(max(support.level, low), high) for support in verified), default=low)
    wanted = (criterion.get("evidence") or {}).get("minCitations")
    remediation = criterion.get("remediation") or None
    if not verified or (level > low and len(quotes) < (1 if wanted is None else wanted)):
        rationale = marked("Not enough evidence was found.") if verified else judgement.rationale
        if not verified and judgement.supports:
            rationale = marked("The cited quotes were not found in the evidence.")
        outcome = _outcome("insufficient", low, high, rationale, remediation)
        return {**shown, **outcome, "citations": _citations(quotes, inputs), "confidence": 0.0}
    status: Status = "met" if level >= high else "not_met" if level <= low else "partial"
    rationale = judgement.rationale
    if len(verified) < len(judgement.supports):
        # The evaluator's rationale relies in part on quotes that do not exist.
        rationale = marked("Some cited quotes were not found in the evidence; the others support this level.")
    outcome = _outcome(status, level, high, rationale, None if status == "met" else remediation)
    return {**shown, **outcome, "citations": _citations(quotes, inputs), "confidence": judgement.confidence}


def _distinct(cited: Iterable[Cited], inputs: Inputs) -> list[Cited]:
    """Return the quotes without those that repeat the words of another from the same document or part."""
    found: dict[tuple[str, str | None, str], Cited] = {}
    for each in cited:
        chunk = inputs.chunks[each.chunk]
        found.setdefault((chunk.source, chunk.document_id, fold(each.quote)), each)
    return list(found.values())


def _outcome(
    status: Status, level: float | None, high: float, rationale: str, remediation: str | None = None
) -> JSONObject:
    return {
        "status": status,
        "level": None if level is None else number(level),
        "maxLevel": number(high),
        "rationale": rationale,
        "citations": [],
        "remediation": remediation,
    }


def _citations(quotes: Sequence[Cited], inputs: Inputs) -> list[JSONObject]:
    found = [(inputs.chunks[cited.chunk], cited.quote) for cited in quotes[:MAX_CITATIONS]]
    return [
        {"source": chunk.source, "documentId": chunk.document_id, "page": chunk.page, "quote": quote}
        for chunk, quote in found
    ]
