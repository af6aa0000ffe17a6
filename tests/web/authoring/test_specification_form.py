"""A specification as a form and back: nothing is lost, and only what was edited changes."""

import json
from copy import deepcopy
from pathlib import Path

import pytest

import muniment.demo
from muniment.registry.frameworks.specification import faults_of
from muniment.web.authoring.specification_form import (
    EMPTY,
    CriterionFields,
    SectionFields,
    document_of,
    fields_of,
    with_general,
)

FULL = {
    "schema": "assessment-spec/1",
    "version": 3,
    "note": "kept",
    "scale": {"min": 0, "max": 4, "unit": "kept"},
    "overall": {
        "method": "weighted_mean",
        "bands": [{"min": 80.0, "label": "A", "colour": "kept"}, {"min": 0, "label": "B"}],
    },
    "sections": [
        {
            "id": "governance",
            "title": "Governance",
            "weight": 30.0,
            "owner": "kept",
            "criteria": [
                {
                    "id": "governance.board",
                    "title": "An accountable board ",
                    "weight": 0.1,
                    "requirement": "The organization\r\nnames a board.",
                    "guidance": "  private\n",
                    "levels": [
                        {"level": 4, "descriptor": "elected"},
                        {"level": 0, "descriptor": "none\n\nat all", "kept": True},
                        {"level": 2.5, "descriptor": "named"},
                    ],
                    "appliesIf": {"path": "company.type", "op": "in", "value": ["DAO"]},
                    "gate": {"minLevel": 2, "capsOverall": 50, "kept": 1},
                    "evidence": {"sources": ["documents", "profile"], "minCitations": 1, "kept": None},
                    "checks": [{"path": "company.teamSize", "op": ">=", "value": 3, "level": 2}],
                    "evaluator": "auto",
                    "remediation": "Publish the rules.",
                    "kept": [1, 2],
                },
                {"id": "plain", "title": "Plain", "weight": 1, "requirement": "Is plain.", "guidance": ""},
            ],
        },
        {
            "id": "money",
            "title": "Money",
            "weight": 70,
            "criteria": [{"id": "audit", "title": "An audit", "weight": 1, "requirement": "Is audited."}],
        },
    ],
}


def demo():
    lines = (Path(muniment.demo.__path__[0]) / "frameworks.jsonl").read_text().splitlines()
    return [found for line in lines if (found := json.loads(line).get("specification"))]


@pytest.mark.parametrize("document", [FULL, *demo()])
def test_an_unedited_form_gives_the_same_document(document):
    assert faults_of(document) == []
    before = json.dumps(document)
    assert json.dumps(document_of(fields_of(document), document)) == before
    assert json.dumps(document) == before


def edited(change):
    fields = fields_of(FULL)
    change(fields)
    return document_of(fields, FULL)


def expected(change):
    document = deepcopy(FULL)
    change(document)
    return document


def test_each_edit_changes_its_value_alone():
    def edit(fields):
        first = fields.sections[0].criteria[0]
        fields.sections[0].weight, first.texts["title"], first.weight = "31", "A board", "2"
        first.texts["remediation"], first.evaluator = "", "rules"
        first.levels["2.5"], first.levels["3"] = "named twice", "nearly"
        first.gate_cap, first.citations, first.sources = "60", "", ["documents"]
        fields.bands[1] = ("1", "10", "B")
        fields.scale_max = "5"

    def change(document):
        section = document["sections"][0]
        first = section["criteria"][0]
        section["weight"], first["title"], first["weight"], first["evaluator"] = 31, "A board", 2, "rules"
        del first["remediation"]
        first["levels"] = [
            {"level": 0, "descriptor": "none\n\nat all", "kept": True},
            {"level": 2.5, "descriptor": "named twice"},
            {"level": 3, "descriptor": "nearly"},
            {"level": 4, "descriptor": "elected"},
        ]
        first["gate"]["capsOverall"] = 60
        first["evidence"] = {"sources": ["documents"], "kept": None}
        document["overall"]["bands"][1]["min"] = 10
        document["scale"]["max"] = 5

    found = edited(edit)
    assert (
        sorted(found["sections"][0]["criteria"][0]["levels"], key=lambda each: each["level"])
        == (expected(change)["sections"][0]["criteria"][0]["levels"])
    )
    found["sections"][0]["criteria"][0]["levels"] = expected(change)["sections"][0]["criteria"][0]["levels"]
    assert found == expected(change)
    assert faults_of(found) == []


def test_what_moves_keeps_what_the_form_does_not_show():
    def edit(fields):
        criteria = fields.sections[0].criteria
        fields.sections[1].criteria.append(criteria.pop(0))
        fields.sections.reverse()

    def change(document):
        criteria = document["sections"][0]["criteria"]
        document["sections"][1]["criteria"].append(criteria.pop(0))
        document["sections"].reverse()

    assert edited(edit) == expected(change)


def test_emptied_members_are_left_out_and_removed_bands_too():
    def edit(fields):
        first = fields.sections[0].criteria[0]
        first.gate_level = first.gate_cap = first.citations = ""
        first.sources, first.levels = [], dict.fromkeys(first.levels, "")
        fields.bands.clear()

    found = edited(edit)
    first = found["sections"][0]["criteria"][0]
    assert (first["gate"], first["evidence"], found["overall"]) == (
        {"kept": 1},
        {"kept": None},
        {"method": "weighted_mean"},
    )
    assert "levels" not in first
    plain = document_of(fields_of(found), found)
    assert plain == found


def test_new_parts_get_ids_from_their_titles_once_each():
    fields = fields_of(EMPTY)
    for _ in range(2):
        new = CriterionFields(texts={"title": "A board", "requirement": "Has one.", "guidance": "", "remediation": ""})
        new.levels = {"0": "none", "4": "elected"}
        fields.sections.append(SectionFields(title="Good Governance", criteria=[new, deepcopy(new)]))
    found = document_of(fields, EMPTY)
    assert faults_of(found) == []
    assert [(each["id"], [one["id"] for one in each["criteria"]]) for each in found["sections"]] == [
        ("good-governance", ["good-governance.a-board", "good-governance.a-board-2"]),
        ("good-governance-2", ["good-governance-2.a-board", "good-governance-2.a-board-2"]),
    ]
    assert EMPTY["sections"] == []


@pytest.mark.parametrize("text", ["", "heavy", "nan", "inf", "1e400", "²", "9" * 21])
def test_what_is_no_number_is_told_by_the_validation(text):
    def edit(fields):
        fields.sections[0].weight = text

    assert ("sections[0].weight", "is not a number greater than 0") in faults_of(edited(edit))


@pytest.mark.parametrize("origin", ["", "x", "7", "0.9", "-1", "0.x", "²", "9" * 30])
def test_a_place_that_is_not_there_counts_as_new(origin):
    def edit(fields):
        fields.sections[1].criteria[0].origin = origin

    assert edited(edit)["sections"][1]["criteria"] == FULL["sections"][1]["criteria"]


@pytest.mark.parametrize(
    ("stored", "typed", "made"),
    [
        ({}, "scores", {}),
        ({}, "titles", {"reports": "titles"}),
        ({"reports": "remediation"}, "scores", {"reports": "scores"}),
        ({"reports": "remediation"}, "", {"reports": "remediation"}),
    ],
)
def test_what_reports_show_is_chosen_in_the_form(stored, typed, made):
    document = {**FULL, **stored}
    fields = fields_of(document)
    assert fields.reports == stored.get("reports", "scores")
    fields.reports = typed
    for found in (document_of(fields, document), with_general(document, fields)):
        assert {name: each for name, each in found.items() if name == "reports"} == made
        assert faults_of(found) == []
    fields.reports = "everything"
    assert [path for path, _ in faults_of(document_of(fields, document))] == ["reports"]
