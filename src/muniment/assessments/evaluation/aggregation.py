"""Aggregate criteria into section scores and the overall score. Source: assessment-spec/1, report."""

from collections.abc import Mapping
from typing import Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import number

_DIGITS: Final = 2


def aggregate(specification: JSONMapping, settled: Mapping[str, JSONMapping]) -> JSONObject:
    """
    Return ``overall`` and ``sections`` of a report.

    The score of a criterion is (level - min) / (max - min); insufficient counts as min, and criteria that do not apply
    are left out. A section's score is the weighted mean of its criteria, the overall score that of the sections.
    A criterion below the level of its gate caps the overall score.

    Args:
        settled: the result of `judgement.settle` for each criterion id.
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


def _public(settled: JSONMapping) -> JSONObject:
    return {key: value for key, value in settled.items() if key not in {"confidence", "note"}}


def _rounded(value: float, digits: int) -> int | float:
    return number(round(value + 1e-9, digits))


def _band(specification: JSONMapping, score: float | None) -> str | None:
    bands = (specification.get("overall") or {}).get("bands") or ()
    reached = [band for band in bands if score is not None and score >= band["min"]]
    return max(reached, key=lambda band: band["min"])["label"] if reached else None
