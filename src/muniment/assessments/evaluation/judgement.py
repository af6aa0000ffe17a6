"""From judgements to scores: the judgement of a criterion, its result once the quotes are verified, and the scores."""

from collections.abc import Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

from muniment.assessments.evaluation.inputs import Chunk, Inputs
from muniment.assessments.evaluation.words import fold
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import marked
from muniment.kernel.wire import number

Status = Literal["met", "partial", "not_met", "insufficient", "not_applicable"]
MAX_CITATIONS: Final = 5
_DIGITS: Final = 2
_UNCAPPED: Final = 100.0


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
    if not judgement.applies:
        return _result(criterion, "not_applicable", None, high, judgement.rationale)
    verified = _verified(judgement.supports, inputs)
    quotes = _distinct_quotes(verified, inputs)
    level = low
    for support in verified:
        level = max(level, min(support.level, high))
    status: Status = "insufficient"
    if verified:
        status = _status(criterion, scale, level, len(quotes))
    if status == "insufficient":
        level = low
    result = _result(criterion, status, level, high, _rationale(judgement, verified, status))
    result["citations"] = _citations(quotes, inputs)
    if status != "met":
        result["remediation"] = criterion.get("remediation") or None
    if status != "insufficient":
        result["confidence"] = judgement.confidence
    return result


def _verified(supports: Iterable[Support], inputs: Inputs) -> list[Support]:
    verified = []
    for support in supports:
        if support.cited and all(is_quoted(cited, inputs.chunks) for cited in support.cited):
            verified.append(support)
    return verified


def _distinct_quotes(supports: Iterable[Support], inputs: Inputs) -> list[Cited]:
    """Return the quotes without those that repeat the words of another from the same document or part."""
    quotes: dict[tuple[str, str | None, str], Cited] = {}
    # The highest first, so that the quotes shown are those that support the level.
    for support in sorted(supports, key=lambda support: -support.level):
        for cited in support.cited:
            chunk = inputs.chunks[cited.chunk]
            quotes.setdefault((chunk.source, chunk.document_id, fold(cited.quote)), cited)
    return list(quotes.values())


def _status(criterion: JSONMapping, scale: tuple[float, float], level: float, quotes: int) -> Status:
    """Return the status of a criterion that applies and whose level so many distinct quotes support."""
    low, high = scale
    min_citations = (criterion.get("evidence") or {}).get("minCitations")
    needed = 1 if min_citations is None else min_citations
    if level > low and quotes < needed:
        return "insufficient"
    if level >= high:
        return "met"
    return "partial" if level > low else "not_met"


def _rationale(judgement: Judgement, verified: Sequence[Support], status: Status) -> str:
    if not verified:
        if judgement.supports:
            return marked("The cited quotes were not found in the evidence.")
        return judgement.rationale
    if status == "insufficient":
        return marked("Not enough evidence was found.")
    if len(verified) < len(judgement.supports):
        # The evaluator's rationale relies in part on quotes that do not exist.
        return marked("Some cited quotes were not found in the evidence; the others support this level.")
    return judgement.rationale


def _result(criterion: JSONMapping, status: Status, level: float | None, high: float, rationale: str) -> JSONObject:
    shown_level = None if level is None else number(level)
    return {
        "id": criterion["id"],
        "title": criterion["title"],
        "status": status,
        "level": shown_level,
        "maxLevel": number(high),
        "rationale": rationale,
        "citations": [],
        "remediation": None,
        "confidence": 0.0,
    }


def _citations(quotes: Sequence[Cited], inputs: Inputs) -> list[JSONObject]:
    citations = []
    for cited in quotes[:MAX_CITATIONS]:
        chunk = inputs.chunks[cited.chunk]
        citations.append(
            {"source": chunk.source, "documentId": chunk.document_id, "page": chunk.page, "quote": cited.quote}
        )
    return citations


@dataclass(slots=True)
class _Sums:
    """The weights of the criteria that apply, and what they sum up to."""

    weight: float = 0.0
    reached: float = 0.0
    judged: float = 0.0
    confidence: float = 0.0

    def add(self, weight: float, share: float, result: JSONMapping) -> None:
        self.weight += weight
        self.reached += share
        if result["status"] != "insufficient":
            self.judged += weight
            self.confidence += weight * result["confidence"]

    def add_section(self, weight: float, section: "_Sums") -> None:
        """Add the mean of a section; one of which no criterion applies does not count."""
        if section.weight:
            self.weight += weight
            self.reached += weight * section.reached / section.weight
            self.judged += weight * section.judged / section.weight
            self.confidence += weight * section.confidence / section.weight


def aggregate(specification: JSONMapping, settled: Mapping[str, JSONMapping]) -> JSONObject:
    """
    Return ``overall`` and ``sections`` of a report.

    The score of a criterion is (level - min) / (max - min); insufficient counts as min, and criteria that do not apply
    are left out. A section's score is the weighted mean of its criteria, the overall score that of the sections.
    A criterion below the level of its gate caps the overall score.

    Args:
        settled: the result of `settle` for each criterion id.

    Source: assessment-spec/1, report.
    """
    low, high = specification["scale"]["min"], specification["scale"]["max"]
    sections = []
    overall = _Sums()
    cap = _UNCAPPED
    for section in specification["sections"]:
        sums = _Sums()
        for criterion in section["criteria"]:
            result = settled[criterion["id"]]
            if result["status"] == "not_applicable":
                continue
            level = _level(result, low)
            sums.add(criterion["weight"], criterion["weight"] * (level - low) / (high - low), result)
            cap = min(cap, _cap(criterion, level))
        overall.add_section(section["weight"], sums)
        score_of_section = None
        if sums.weight:
            score_of_section = _rounded(100 * sums.reached / sums.weight, 1)
        criteria = [_public(settled[criterion["id"]]) for criterion in section["criteria"]]
        sections.append(
            {"id": section["id"], "title": section["title"], "score": score_of_section, "criteria": criteria}
        )
    return {"overall": _overall(specification, overall, cap), "sections": sections}


def _overall(specification: JSONMapping, overall: _Sums, cap: float) -> JSONObject:
    score: float | None = None
    coverage: float = 0
    confidence: float = 0
    if overall.weight:
        score = _rounded(min(100 * overall.reached / overall.weight, cap), 1)
        coverage = _rounded(overall.judged / overall.weight, _DIGITS)
    # The mean of what was judged: a criterion without evidence does not make the others less certain.
    if overall.judged:
        confidence = _rounded(overall.confidence / overall.judged, _DIGITS)
    return {"score": score, "band": _band(specification, score), "coverage": coverage, "confidence": confidence}


def gains(specification: JSONMapping, report: JSONMapping) -> dict[str, float]:
    """
    Return by how many points the overall score of a report would rise if a criterion were met, by id.

    A criterion whose gate caps the score counts what the cap takes away, too.
    """
    low, high = specification["scale"]["min"], specification["scale"]["max"]
    results = {}
    for section in report["sections"]:
        for result in section["criteria"]:
            results[result["id"]] = result
    missing: dict[str, float] = {}
    caps: dict[str, float] = {}
    total = reached = 0.0
    for section in specification["sections"]:
        judged = []
        for criterion in section["criteria"]:
            result = results.get(criterion["id"])
            if result is not None and result["status"] != "not_applicable":
                judged.append((criterion, _level(result, low)))
        weight = sum(criterion["weight"] for criterion, _ in judged)
        if judged:
            total += section["weight"]
        for criterion, level in judged:
            share = (level - low) / (high - low)
            part = section["weight"] * criterion["weight"] / weight
            reached += part * share
            missing[criterion["id"]] = part * (1 - share)
            caps[criterion["id"]] = _cap(criterion, level)
    if not missing:
        return {}
    score = 100 * reached / total
    points: dict[str, float] = {}
    for criterion_id, part in missing.items():
        taken_by_cap = max(0.0, score - caps[criterion_id])
        points[criterion_id] = 100 * part / total + taken_by_cap
    return points


def _level(result: JSONMapping, low: float) -> float:
    level: float | None = result["level"]
    return low if level is None else level


def _cap(criterion: JSONMapping, level: float) -> float:
    """Return the highest overall score that a criterion at *level* allows."""
    gate = criterion.get("gate")
    if not gate or level >= gate["minLevel"]:
        return _UNCAPPED
    cap: float = gate["capsOverall"]
    return cap


def _public(result: JSONMapping) -> JSONObject:
    return {name: value for name, value in result.items() if name not in {"confidence", "note"}}


def _rounded(value: float, digits: int) -> int | float:
    return number(round(value + 1e-9, digits))


def _band(specification: JSONMapping, score: float | None) -> str | None:
    if score is None:
        return None
    bands = (specification.get("overall") or {}).get("bands") or ()
    reached = [band for band in bands if score >= band["min"]]
    return max(reached, key=lambda band: band["min"])["label"] if reached else None
