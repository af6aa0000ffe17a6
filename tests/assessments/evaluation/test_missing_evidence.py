"""The evidence that a specification asks for and a listing lacks."""

import pytest

from muniment.assessments.evaluation.missing_evidence import missing_evidence

HAS_TOKEN = {"path": "company.symbol", "op": "exists"}
SAYS_SO = {"in": "documents", "terms": ["token"], "op": "anyPhrase"}


def specification(**more):
    criterion = {"id": "holders", "evidence": {"sources": ["capTable"]}, **more}
    return {"sections": [{"criteria": [criterion, {"id": "votes", "evidence": {"sources": ["proposals"]}}]}]}


@pytest.mark.parametrize(
    ("condition", "symbol", "lacking"),
    [
        ({}, None, {"proposals", "capTable"}),
        ({"appliesIf": HAS_TOKEN}, None, {"proposals"}),
        ({"appliesIf": HAS_TOKEN}, "TIDE", {"proposals", "capTable"}),
        ({"appliesIf": SAYS_SO}, None, {"proposals", "capTable"}),
    ],
)
def test_a_criterion_that_does_not_apply_asks_for_nothing(condition, symbol, lacking):
    found = missing_evidence(specification(**condition), {"company": {"symbol": symbol}}, [])
    assert {each["source"] for each in found} == lacking
    assert all(each["criteria"] == 1 for each in found)
