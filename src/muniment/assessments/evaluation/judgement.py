"""What an evaluator says of one criterion, and what of it stands once its quotes have been looked up."""

from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, Protocol

from muniment.assessments.evaluation.inputs import Chunk, Inputs
from muniment.assessments.evaluation.words import fold
from muniment.kernel.wire import number

Status = Literal["met", "partial", "not_met", "insufficient", "not_applicable"]
MAX_CITATIONS: Final = 5


@dataclass(frozen=True, slots=True)
class Cited:
    """A quote, and the chunk in which it is said to stand."""

    chunk: int
    quote: str


@dataclass(frozen=True, slots=True)
class Support:
    """A level, and the quotes that carry it all together."""

    level: float
    cited: tuple[Cited, ...]


@dataclass(frozen=True, slots=True)
class Judgement:
    """
    What an evaluator says of a criterion.

    Args:
        applies: False takes the criterion out of the mean.
        supports: what carries which level; the highest that stands is the criterion's.
        confidence: from 0 to 1.
        rationale: for the reader; names nothing private.
    """

    applies: bool = True
    supports: tuple[Support, ...] = ()
    confidence: float = 0.0
    rationale: str = ""


@dataclass(frozen=True, slots=True)
class Judged:
    """
    A judgement, and whose it is.

    Args:
        number: of the criterion, among those that were given.
        by: which kind of evaluator.
        note: why that one, for the reader, where another was asked for.
    """

    number: int
    judgement: Judgement
    by: Literal["rules", "model"]
    note: str = ""


Judging = Generator[Judged | None, None, None]
"""Judgements as they come; None says that none came for a while."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What a run has used of what it may use."""

    tokens: int = 0
    seconds: float = 0.0


class Evaluator(Protocol):
    """
    Judges criteria. What it cites is looked up by :func:`settle`, whoever it is.

    ``batch`` is how many judgements are kept at once: one where each costs money.
    """

    kind: str
    batch: int
    model: str | None
    prompt_hash: str | None

    @property
    def spent(self) -> Spent:
        """Give what the run has used so far."""

    def judge(self, criteria: Sequence[Mapping[str, Any]], scale: tuple[float, float], inputs: Inputs) -> Judging:
        """
        Judge criteria of a specification by what *inputs* hold, in any order.

        Gives None now and then while it waits, so that whoever asked can look whether to go on; closing the
        iterator stops what is under way.
        """


def stands(cited: Cited, chunks: Sequence[Chunk]) -> bool:
    """Tell whether a quote is found in the chunk that it cites, white space and case folded."""
    quoted = fold(cited.quote)
    return bool(quoted) and 0 <= cited.chunk < len(chunks) and quoted in chunks[cited.chunk].folded


def settle(
    criterion: Mapping[str, Any], scale: tuple[float, float], judgement: Judgement, inputs: Inputs
) -> dict[str, Any]:
    """
    Look up every quote, and give the criterion as the report shows it, with its confidence.

    A support with a quote that is not found is dropped, and the level falls to what the others carry.

    Source: assessment-spec/1, flow.
    """
    low, high = scale
    shown = {"id": criterion["id"], "title": criterion["title"]}
    if not judgement.applies:
        return {**shown, **_outcome("not_applicable", None, high, judgement.rationale), "confidence": 0.0}
    standing = [
        support
        for support in judgement.supports
        if support.cited and all(stands(cited, inputs.chunks) for cited in support.cited)
    ]
    # The highest first, so that what is shown is what carries the level.
    quotes = list(
        dict.fromkeys(cited for support in sorted(standing, key=lambda each: -each.level) for cited in support.cited)
    )
    level = max((min(max(support.level, low), high) for support in standing), default=low)
    wanted = (criterion.get("evidence") or {}).get("minCitations")
    remediation = criterion.get("remediation") or None
    if not standing or (level > low and len(quotes) < (1 if wanted is None else wanted)):
        rationale = "Too little evidence was found." if standing else judgement.rationale
        if not standing and judgement.supports:
            rationale = "What was cited is not found where it should stand."
        outcome = _outcome("insufficient", low, high, rationale, remediation)
        return {**shown, **outcome, "citations": _shown(quotes, inputs), "confidence": 0.0}
    status: Status = "met" if level >= high else "not_met" if level <= low else "partial"
    rationale = judgement.rationale
    if len(standing) < len(judgement.supports):
        # What was said of it rests in part on what is not there.
        rationale = "Some of what was cited is not found where it should stand; the rest carries this level."
    outcome = _outcome(status, level, high, rationale, None if status == "met" else remediation)
    return {**shown, **outcome, "citations": _shown(quotes, inputs), "confidence": judgement.confidence}


def _outcome(
    status: Status, level: float | None, high: float, rationale: str, remediation: str | None = None
) -> dict[str, Any]:
    return {
        "status": status,
        "level": None if level is None else number(level),
        "maxLevel": number(high),
        "rationale": rationale,
        "citations": [],
        "remediation": remediation,
    }


def _shown(quotes: Sequence[Cited], inputs: Inputs) -> list[dict[str, Any]]:
    found = []
    for cited in quotes[:MAX_CITATIONS]:
        chunk = inputs.chunks[cited.chunk]
        found.append(
            {"source": chunk.source, "documentId": chunk.document_id, "page": chunk.page, "quote": cited.quote}
        )
    return found
