"""What is wrong with an assessment specification is told by the path of each fault."""

import copy
from typing import Any

import pytest

from muniment.registry.frameworks.specification import faults_of

WHOLE: dict[str, Any] = {
    "schema": "assessment-spec/1",
    "version": 3,
    "scale": {"min": 0, "max": 4},
    "overall": {"method": "weighted_mean", "bands": [{"min": 80, "label": "A"}, {"min": 0, "label": "B"}]},
    "sections": [
        {
            "id": "governance",
            "title": "Governance",
            "weight": 30,
            "criteria": [
                {
                    "id": "governance.board",
                    "title": "An accountable board",
                    "weight": 10,
                    "requirement": "The organization names a board.",
                    "guidance": "private",
                    "levels": [{"level": 0, "descriptor": "none"}, {"level": 4, "descriptor": "all"}],
                    "appliesIf": {"path": "company.type", "op": "in", "value": ["DAO"]},
                    "gate": {"minLevel": 2, "capsOverall": 50},
                    "evidence": {"sources": ["profile", "documents"], "minCitations": 1},
                    "checks": [
                        {"path": "company.teamSize", "op": ">=", "value": 3, "level": 2},
                        {"op": "anyPhrase", "terms": ["charter"], "in": "documents", "level": 4},
                    ],
                    "evaluator": "auto",
                    "remediation": "Publish the rules.",
                }
            ],
        }
    ],
}
_ABSENT = object()


def _with(path: str, value: object) -> dict[str, Any]:
    document: Any = copy.deepcopy(WHOLE)
    inner = document
    *steps, last = path.replace("]", "").replace("[", ".").split(".")
    for step in steps:
        inner = inner[int(step)] if step.isdigit() else inner[step]
    key: Any = int(last) if last.isdigit() else last
    if value is _ABSENT:
        del inner[key]
    else:
        inner[key] = value
    return document


def test_a_whole_specification_has_no_fault():
    assert faults_of(WHOLE) == []


@pytest.mark.parametrize("document", [None, [], "text", 5])
def test_a_value_that_is_not_an_object_has_one_fault(document):
    assert faults_of(document) == [("$", "is not an object")]


C = "sections[0].criteria[0]"


@pytest.mark.whole(keeps="all")
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("schema", "assessment-spec/2"),
        ("version", 0),
        ("version", True),
        ("version", "1"),
        ("version", 1.0),
        ("version", 2**31),
        ("scale", _ABSENT),
        ("scale.min", "0"),
        ("scale.max", -1),
        ("scale.max", 0),
        ("scale.max", True),
        ("scale.min", _ABSENT),
        ("overall", []),
        ("overall.method", "median"),
        ("overall.bands", []),
        ("overall.bands[0]", 5),
        ("overall.bands[0].min", 101),
        ("overall.bands[0].min", -1),
        ("overall.bands[0].min", "80"),
        ("overall.bands[1].min", 80),
        ("overall.bands[0].label", ""),
        ("sections", []),
        ("sections", _ABSENT),
        ("sections", {}),
        ("sections[0]", "x"),
        ("sections[0].id", ""),
        ("sections[0].title", _ABSENT),
        ("sections[0].weight", 0),
        ("sections[0].weight", "5"),
        ("sections[0].weight", True),
        ("sections[0].weight", 10**400),
        ("sections[0].criteria", []),
        (C, None),
        (f"{C}.id", "governance"),
        (f"{C}.title", 5),
        (f"{C}.requirement", " "),
        (f"{C}.weight", -1),
        (f"{C}.guidance", 5),
        (f"{C}.remediation", []),
        (f"{C}.evaluator", "oracle"),
        (f"{C}.levels", {}),
        (f"{C}.levels[0]", 5),
        (f"{C}.levels[0].level", 5),
        (f"{C}.levels[0].level", -1),
        (f"{C}.levels[0].level", "0"),
        (f"{C}.levels[0].level", True),
        (f"{C}.levels[0].descriptor", " "),
        (f"{C}.levels[1].level", 0),
        (f"{C}.levels[0].descriptor", None),
        (f"{C}.gate", 5),
        (f"{C}.gate.minLevel", 9),
        (f"{C}.gate.capsOverall", 101),
        (f"{C}.gate.capsOverall", -1),
        (f"{C}.gate.capsOverall", "50"),
        (f"{C}.gate.minLevel", _ABSENT),
        (f"{C}.evidence", 5),
        (f"{C}.evidence.sources", ["rumours"]),
        (f"{C}.evidence.sources", "profile"),
        (f"{C}.evidence.minCitations", -1),
        (f"{C}.evidence.minCitations", True),
        (f"{C}.evidence.minCitations", 1.5),
        (f"{C}.appliesIf", 5),
        (f"{C}.appliesIf.op", "like"),
        (f"{C}.appliesIf.path", ""),
        (f"{C}.appliesIf.value", "DAO"),
        (f"{C}.checks", {}),
        (f"{C}.checks[0]", 5),
        (f"{C}.checks[0].value", "3"),
        (f"{C}.checks[0].value", _ABSENT),
        (f"{C}.checks[0].level", 5),
        (f"{C}.checks[0].level", _ABSENT),
        (f"{C}.checks[1].level", 5),
        (f"{C}.checks[1].terms", []),
        (f"{C}.checks[1].terms", "charter"),
        (f"{C}.checks[1].terms", ["charter", " "]),
        (f"{C}.checks[1].in", "rumours"),
    ],
)
def test_a_fault_is_reported_with_its_path(path, value):
    assert [found for found, _ in faults_of(_with(path, value))] == [path]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("version", 1),
        ("version", 2**31 - 1),
        ("overall", None),
        ("overall.method", _ABSENT),
        ("overall.bands", None),
        ("overall.bands[0].min", 100),
        ("sections[0].weight", 0.001),
        (f"{C}.guidance", None),
        (f"{C}.remediation", ""),
        (f"{C}.evaluator", _ABSENT),
        (f"{C}.levels", None),
        (f"{C}.levels", []),
        (f"{C}.gate", None),
        (f"{C}.gate.capsOverall", 0),
        (f"{C}.gate.capsOverall", 100),
        (f"{C}.gate.minLevel", 0),
        (f"{C}.evidence", None),
        (f"{C}.evidence.sources", None),
        (f"{C}.evidence.minCitations", 0),
        (f"{C}.appliesIf", None),
        (f"{C}.appliesIf", {"path": "company.name", "op": "exists"}),
        (f"{C}.appliesIf", {"path": "company.type", "op": "=", "value": None}),
        (f"{C}.checks", None),
        (f"{C}.checks[1].in", _ABSENT),
        ("more", {"of": "anything"}),
    ],
)
def test_limits_are_included_and_options_may_be_left_out(path, value):
    assert faults_of(_with(path, value)) == []


def test_an_id_is_used_once_in_the_whole_specification():
    document = _with("sections", [WHOLE["sections"][0], {**WHOLE["sections"][0], "id": "other"}])
    assert faults_of(document) == [
        ("sections[1].criteria[0].id", "is also the id of sections[0].criteria[0]"),
    ]


def test_each_of_several_faults_is_reported():
    document = _with("scale", {})
    document["sections"][0]["title"] = 5
    assert [path for path, _ in faults_of(document)] == ["scale.min", "scale.max", "sections[0].title"]


@pytest.mark.parametrize("text", ["a\0b", "\ud800"])
def test_text_that_no_database_holds_is_a_fault(text):
    assert [path for path, _ in faults_of(_with(f"{C}.guidance", text))] == [f"{C}.guidance"]


def test_nesting_has_a_limit():
    deep: Any = []
    for _ in range(60):
        deep = [deep]
    assert [path for path, _ in faults_of({**WHOLE, "more": deep})] == ["$"]
    assert faults_of({**WHOLE, "more": [[[[]]]]}) == []
