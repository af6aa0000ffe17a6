"""
Criteria become sections, sections the report.

Source: assessment-spec/1, report.
"""

from collections.abc import Mapping
from typing import Any, Final

from muniment.assessments.evaluation.judgement import Evaluator
from muniment.kernel.wire import number

_DIGITS: Final = 2


def aggregate(specification: Mapping[str, Any], settled: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """
    Give ``overall`` and ``sections`` of a report.

    Score of a criterion = (level - min) / (max - min), insufficient counts as min, what does not apply
    leaves the mean; a section's is the weighted mean of its criteria, the overall that of the sections.
    A criterion below the level of its gate caps the overall.

    Args:
        settled: by the criterion's id, what `judgement.settle` gave.
    """
    low, high = specification["scale"]["min"], specification["scale"]["max"]
    sections, score, coverage, confidence, known, total = [], 0.0, 0.0, 0.0, 0.0, 0.0
    cap = 100.0
    for section in specification["sections"]:
        weight, reached, judged, sure = 0.0, 0.0, 0.0, 0.0
        for criterion in section["criteria"]:
            found = settled[criterion["id"]]
            if found["status"] == "not_applicable":
                continue
            level = low if found["level"] is None else found["level"]
            weight += criterion["weight"]
            reached += criterion["weight"] * (level - low) / (high - low)
            if found["status"] != "insufficient":
                judged += criterion["weight"]
                sure += criterion["weight"] * found["confidence"]
            gate = criterion.get("gate")
            if gate and level < gate["minLevel"]:
                cap = min(cap, gate["capsOverall"])
        if weight:
            total += section["weight"]
            score += section["weight"] * reached / weight
            coverage += section["weight"] * judged / weight
            confidence += section["weight"] * sure / weight
            known += section["weight"] * judged / weight
        sections.append(
            {
                "id": section["id"],
                "title": section["title"],
                "score": _rounded(100 * reached / weight, 1) if weight else None,
                "criteria": [_public(settled[criterion["id"]]) for criterion in section["criteria"]],
            }
        )
    reached_overall = _rounded(min(100 * score / total, cap), 1) if total else None
    return {
        "overall": {
            "score": reached_overall,
            "band": _band(specification, reached_overall),
            "coverage": _rounded(coverage / total, _DIGITS) if total else 0,
            "confidence": _rounded(confidence / known, _DIGITS) if known else 0,
        },
        "sections": sections,
    }


def _public(settled: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in settled.items() if key not in {"confidence", "note"}}


def _rounded(value: float, digits: int) -> int | float:
    return number(round(value + 1e-9, digits))


def _band(specification: Mapping[str, Any], score: float | None) -> str | None:
    """Give the label of the highest band that *score* reaches."""
    bands = (specification.get("overall") or {}).get("bands") or ()
    reached = [band for band in bands if score is not None and score >= band["min"]]
    return max(reached, key=lambda band: band["min"])["label"] if reached else None


def evaluator_of(evaluator: Evaluator) -> dict[str, Any]:
    """Give who judged, as the report names it."""
    return {"kind": evaluator.kind, "model": evaluator.model, "promptHash": evaluator.prompt_hash}
