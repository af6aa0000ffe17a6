"""The evidence that a specification asks for and a listing lacks."""

import pytest

from muniment.assessments.evaluation.preview import missing_evidence

HAS_TOKEN = {"path": "company.symbol", "op": "exists"}
SAYS_SO = {"in": "documents", "terms": ["token"], "op": "anyPhrase"}


def specification(**more):
    criterion = {"id": "holders", "title": "Holders", "evidence": {"sources": ["capTable"]}, **more}
    votes = {"id": "votes", "title": "Votes", "evidence": {"sources": ["proposals"]}}
    return {"sections": [{"criteria": [criterion, votes]}]}


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


def test_a_criterion_without_support_is_missing_evidence_although_its_sources_are_there():
    wanted = {"checks": [{**SAYS_SO, "level": 4}], "evidence": None}
    facts = {"proposals": [{"title": "A"}]}
    assert missing_evidence(specification(**wanted), facts, ["d1"]) == []
    (found,) = missing_evidence(specification(**wanted), facts, ["d1"], {"holders"})
    assert (found["source"], found["criteria"]) == ("documents", 1)
    assert "hold no evidence" in found["hint"]


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("company.teamSize", "profile"),
        ("positions.title", "positions"),
        ("positions", "positions"),
        ("positions.person.name", "positions"),
    ],
)
def test_the_source_of_a_check_is_that_of_its_path(path, source):
    wanted = {"checks": [{"path": path, "op": "exists", "level": 4}], "evidence": None}
    found = missing_evidence(specification(**wanted), {"positions": [1], "proposals": [1]}, [], {"holders"})
    assert [each["source"] for each in found] == [source]


@pytest.mark.parametrize(("reports", "titles"), [(None, None), ("scores", None), ("titles", ["Holders"])])
def test_titles_are_named_where_reports_show_them(reports, titles):
    chosen = {**specification(), **({"reports": reports} if reports else {})}
    found = {each["source"]: each for each in missing_evidence(chosen, {"company": {}}, [])}
    assert found["capTable"].get("titles") == titles
