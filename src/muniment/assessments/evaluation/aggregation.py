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


def gains(specification: JSONMapping, report: JSONMapping) -> dict[str, float]:
    """
    Return by how many points the overall score of a report would rise if a criterion were met, by id.

    A criterion whose gate caps the score counts what the cap takes away, too.
    """
    low, high = specification["scale"]["min"], specification["scale"]["max"]
    settled = {each["id"]: each for section in report["sections"] for each in section["criteria"]}
    missing: dict[str, float] = {}
    gates: dict[str, float] = {}
    total = reached = 0.0
    for section in specification["sections"]:
        known = [each for each in section["criteria"] if each["id"] in settled]
        judged = [each for each in known if settled[each["id"]]["status"] != "not_applicable"]
        weight = sum(each["weight"] for each in judged)
        total += section["weight"] if judged else 0
        for each in judged:
            level = settled[each["id"]]["level"]
            share = ((low if level is None else level) - low) / (high - low)
            part = section["weight"] * each["weight"] / weight
            reached += part * share
            missing[each["id"]] = part * (1 - share)
            if (gate := each.get("gate")) and (low if level is None else level) < gate["minLevel"]:
                gates[each["id"]] = gate["capsOverall"]
    score = 100 * reached / total if total else 0
    return {name: 100 * part / total + max(0.0, score - gates.get(name, 100)) for name, part in missing.items()}


def _public(settled: JSONMapping) -> JSONObject:
    return {key: value for key, value in settled.items() if key not in {"confidence", "note"}}


def _rounded(value: float, digits: int) -> int | float:
    return number(round(value + 1e-9, digits))


def _band(specification: JSONMapping, score: float | None) -> str | None:
    bands = (specification.get("overall") or {}).get("bands") or ()
    reached = [band for band in bands if score is not None and score >= band["min"]]
    return max(reached, key=lambda band: band["min"])["label"] if reached else None
