"""Scores: means by weight, gates and bands, worked out by hand."""

import json

import pytest

from muniment.assessments.evaluation import aggregation
from muniment.assessments.evaluation.aggregation import aggregate, gains

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


def settled(status, level, confidence=1.0):
    return {"status": status, "level": level, "confidence": confidence}


def test_the_scores_are_those_worked_out_by_hand():
    found = {
        "a": settled("met", 4),
        "b": settled("insufficient", 0, 0.0),
        "n": settled("not_applicable", None, 0.0),
        "c": settled("partial", 2, 0.5),
        "m": settled("not_applicable", None, 0.0),
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
    found = {each: settled("met", 4) for each in "anm"} | {"b": settled("not_met", 0), "c": settled("partial", 2)}
    report = aggregate(gated, found)
    assert (report["overall"]["score"], report["overall"]["band"]) == (50, "C")
    assert report["sections"][2]["score"] == 100


def test_where_nothing_applies_there_is_no_score():
    report = aggregate(SPECIFICATION, {each: settled("not_applicable", None, 0.0) for each in "abncm"})
    assert report["overall"] == {"score": None, "band": None, "coverage": 0, "confidence": 0}


@pytest.mark.parametrize(
    ("value", "digits", "shown"), [(66.65, 1, 66.7), (0.25, 1, 0.3), (62.5, 0, 63), (0.125, 2, 0.13), (50.0, 1, 50)]
)
def test_a_score_is_rounded_half_up(value, digits, shown):
    assert aggregation._rounded(value, digits) == shown


def test_what_each_criterion_would_add_is_what_the_score_rises_by_when_it_is_met():
    """By hand: see the first test; b lacks 30*5/15/40, c half of 10/40."""
    found = {
        "a": {"id": "a", **settled("met", 4)},
        "b": {"id": "b", **settled("insufficient", 0, 0.0)},
        "n": {"id": "n", **settled("not_applicable", None, 0.0)},
        "c": {"id": "c", **settled("partial", 2, 0.5)},
        "m": {"id": "m", **settled("not_applicable", None, 0.0)},
    }
    report = aggregate(SPECIFICATION, found)
    assert gains(SPECIFICATION, report) == pytest.approx({"a": 0, "b": 25, "c": 12.5})
    for name, rise in (("b", 25), ("c", 12.5)):
        better = aggregate(SPECIFICATION, {**found, name: {"id": name, **settled("met", 4)}})
        assert better["overall"]["score"] - report["overall"]["score"] == pytest.approx(rise)
    gated = json.loads(json.dumps(SPECIFICATION))
    gated["sections"][1]["criteria"][0]["gate"] = {"minLevel": 3, "capsOverall": 10}
    rises = gains(gated, aggregate(gated, found))
    assert rises["c"] == pytest.approx(12.5 + 52.5), "with what its gate takes away"
    nothing = {name: {"id": name, **settled("not_applicable", None, 0.0)} for name in found}
    assert gains(SPECIFICATION, aggregate(SPECIFICATION, nothing)) == {}
