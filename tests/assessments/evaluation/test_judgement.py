"""Whether a report's quotes are true, and scores: means by weight, gates and bands, worked out by hand."""

import json

import pytest

from muniment.assessments.evaluation.inputs import DocumentText, read_inputs
from muniment.assessments.evaluation.judgement import (
    Cited,
    Judgement,
    Support,
    _rounded,
    aggregate,
    gains,
    is_quoted,
    settle,
)

CHUNKS = read_inputs({"company": {}}, [DocumentText("doc1", "a.txt", "ab" * 32, [(1, "Nets are  DRIED.")])]).chunks


@pytest.mark.parametrize(
    ("chunk", "quote", "quoted"),
    [
        (0, "nets are dried", True),
        (0, "nets are sold", False),
        (0, " ", False),
        (len(CHUNKS), "nets are dried", False),
        (-1, "nets are dried", False),
    ],
)
def test_a_quote_is_in_the_chunk_that_it_names_whatever_its_spaces_and_case(chunk, quote, quoted):
    assert is_quoted(Cited(chunk, quote), CHUNKS) is quoted


def settled(*supports, **more):
    inputs = read_inputs({"company": {}}, [DocumentText("doc1", "a.txt", "ab" * 32, [(1, "Nets are dried.")])])
    wanted = {"evidence": {"minCitations": more.pop("wanted")}} if "wanted" in more else {}
    criterion = {"id": "nets", "title": "Nets", "remediation": "Dry them.", **wanted}
    judgement = Judgement(supports=supports, confidence=0.8, rationale="As read.", **more)
    return settle(criterion, (0, 4), judgement, inputs)


def support(level, *quotes):
    return Support(level, tuple(Cited(0, quote) for quote in quotes))


@pytest.mark.parametrize(
    ("level", "status", "remediation"),
    [
        (0, "not_met", "Dry them."),
        (1, "partial", "Dry them."),
        (4, "met", None),
        (9, "met", None),
        (-1, "not_met", "Dry them."),
    ],
)
def test_the_level_of_a_true_quote_decides_the_status_within_the_scale(level, status, remediation):
    shown = settled(support(level, "nets are dried"))
    assert (shown["status"], shown["level"]) == (status, min(max(level, 0), 4))
    assert (shown["remediation"], shown["confidence"], shown["rationale"]) == (remediation, 0.8, "As read.")
    assert [each["quote"] for each in shown["citations"]] == ["nets are dried"]


def test_what_does_not_apply_has_no_level_and_no_confidence():
    shown = settled(applies=False)
    assert (shown["status"], shown["level"], shown["confidence"], shown["citations"]) == (
        "not_applicable",
        None,
        0.0,
        [],
    )


def test_without_a_true_quote_there_is_not_enough_evidence_and_no_confidence():
    shown = settled(support(4, "nets are sold"))
    assert (shown["status"], shown["level"], shown["confidence"]) == ("insufficient", 0, 0.0)
    assert settled()["rationale"] == "As read."
    assert shown["rationale"] != "As read."


def test_the_highest_supported_level_counts_and_its_quotes_come_first():
    shown = settled(support(2, "nets are"), support(3, "are dried"), support(4, "nets are sold"))
    assert (shown["status"], shown["level"]) == ("partial", 3)
    assert [each["quote"] for each in shown["citations"]] == ["are dried", "nets are"]
    assert shown["rationale"] != "As read.", "one quote was not true"


@pytest.mark.parametrize(("wanted", "level", "status"), [(2, 3, "partial"), (3, 3, "insufficient"), (3, 0, "not_met")])
def test_a_level_above_the_lowest_takes_as_many_quotes_as_the_criterion_wants(wanted, level, status):
    shown = settled(support(level, "nets are", "are dried"), wanted=wanted)
    assert shown["status"] == status
    assert len(shown["citations"]) == 2


SPECIFICATION = {
    "schema": "assessment-spec/1",
    "version": 3,
    "scale": {"min": 0, "max": 4},
    "overall": {"bands": [{"min": 0, "label": "C"}, {"min": 60, "label": "B"}, {"min": 80, "label": "A"}]},
    "sections": [
        {
            "id": "s1",
            "title": "One",
            "weight": 30,
            "criteria": [{"id": "a", "weight": 10}, {"id": "b", "weight": 5}, {"id": "n", "weight": 100}],
        },
        {"id": "s2", "title": "Two", "weight": 10, "criteria": [{"id": "c", "weight": 2}]},
        {"id": "s3", "title": "Three", "weight": 60, "criteria": [{"id": "m", "weight": 1}]},
    ],
}


def result(status, level, confidence=1.0):
    return {"status": status, "level": level, "confidence": confidence}


def test_the_scores_are_those_worked_out_by_hand():
    found = {
        "a": result("met", 4),
        "b": result("insufficient", 0, 0.0),
        "n": result("not_applicable", None, 0.0),
        "c": result("partial", 2, 0.5),
        "m": result("not_applicable", None, 0.0),
    }
    report = aggregate(SPECIFICATION, found)
    # One: (10*1 + 5*0)/15 = 2/3; Two: 1/2; Three leaves. Overall: 100*(30*2/3 + 10*1/2)/40 = 62.5.
    assert [section["score"] for section in report["sections"]] == [66.7, 50, None]
    # Coverage: (30*10/15 + 10*1)/40 = 0.75; confidence over what was judged: (20*1 + 10*0.5)/30 = 0.83.
    assert report["overall"] == {"score": 62.5, "band": "B", "coverage": 0.75, "confidence": 0.83}
    assert "confidence" not in report["sections"][0]["criteria"][0]


def test_a_gate_caps_the_overall_and_nothing_else():
    gated = json.loads(json.dumps(SPECIFICATION))
    gated["sections"][0]["criteria"][1]["gate"] = {"minLevel": 1, "capsOverall": 50}
    gated["sections"][1]["criteria"][0]["gate"] = {"minLevel": 2, "capsOverall": 10}
    found = {each: result("met", 4) for each in "anm"} | {"b": result("not_met", 0), "c": result("partial", 2)}
    report = aggregate(gated, found)
    assert (report["overall"]["score"], report["overall"]["band"]) == (50, "C")
    assert report["sections"][2]["score"] == 100


def test_where_nothing_applies_there_is_no_score():
    report = aggregate(SPECIFICATION, {each: result("not_applicable", None, 0.0) for each in "abncm"})
    assert report["overall"] == {"score": None, "band": None, "coverage": 0, "confidence": 0}


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(66.65, 1, 66.7), (0.25, 1, 0.3), (62.5, 0, 63), (0.125, 2, 0.13), (50.0, 1, 50)]
)
def test_a_score_is_rounded_half_up(value, digits, shown):
    assert _rounded(value, digits) == shown


def test_what_each_criterion_would_add_is_what_the_score_rises_by_when_it_is_met():
    """By hand: see the first test; b lacks 30*5/15/40, c half of 10/40."""
    found = {
        "a": {"id": "a", **result("met", 4)},
        "b": {"id": "b", **result("insufficient", 0, 0.0)},
        "n": {"id": "n", **result("not_applicable", None, 0.0)},
        "c": {"id": "c", **result("partial", 2, 0.5)},
        "m": {"id": "m", **result("not_applicable", None, 0.0)},
    }
    report = aggregate(SPECIFICATION, found)
    assert gains(SPECIFICATION, report) == pytest.approx({"a": 0, "b": 25, "c": 12.5})
    for name, rise in (("b", 25), ("c", 12.5)):
        better = aggregate(SPECIFICATION, {**found, name: {"id": name, **result("met", 4)}})
        assert better["overall"]["score"] - report["overall"]["score"] == pytest.approx(rise)
    gated = json.loads(json.dumps(SPECIFICATION))
    gated["sections"][1]["criteria"][0]["gate"] = {"minLevel": 3, "capsOverall": 10}
    rises = gains(gated, aggregate(gated, found))
    assert rises["c"] == pytest.approx(12.5 + 52.5), "with what its gate takes away"
    nothing = {name: {"id": name, **result("not_applicable", None, 0.0)} for name in found}
    assert gains(SPECIFICATION, aggregate(SPECIFICATION, nothing)) == {}
