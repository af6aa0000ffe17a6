"""Import of frameworks with their specifications."""

from typing import Any

import pytest

from make.registry import SPECIFICATION, bring, document, item, keys, lines
from muniment.registry.models import FrameworkSpecification

pytestmark = pytest.mark.django_db


def company(slug: str = "acme", /, **members: Any) -> dict[str, Any]:
    return {"id": slug, "name": slug.title(), **members}


@pytest.mark.requirement("import.frameworks", "framework.is-open", "order.frameworks", "framework.company")
def test_frameworks_are_open_with_a_specification_alone(tmp_path):
    run_by = {"company": {"id": "acme", "name": "ignored", "symbol": None, "icon": ""}}
    lines(tmp_path / "companies.jsonl", {"company": company(description="Boats.")})
    lines(
        tmp_path / "frameworks.jsonl",
        {"framework": {"frameworkId": "a", "frameworkName": "A", "kind": "score", "isOpen": True, "company": None}},
        {
            "framework": {"frameworkId": "b", "frameworkName": "B", "kind": "program", **run_by},
            "specification": SPECIFICATION,
        },
        {
            "framework": {"frameworkId": "c", "frameworkName": "C", "kind": "score", "isOpen": False},
            "specification": SPECIFICATION,
        },
        {"framework": {"frameworkId": "d", "frameworkName": "D", "kind": "program", "company": None}},
        {"framework": {"frameworkId": "e", "frameworkName": "E", "kind": "program", "company": {"id": "missing"}}},
        {
            "framework": {"frameworkId": "f", "frameworkName": "F", "kind": "score"},
            "specification": {**SPECIFICATION, "version": 0},
        },
    )
    summary, bad, warnings = bring(tmp_path)
    assert keys("framework") == ["a", "b", "c"]
    assert {key: item("framework", key)["isOpen"] for key in "abc"} == {"a": False, "b": True, "c": False}
    assert item("framework", "b")["company"] == {"id": "acme", "name": "Acme", "slug": "acme"}
    assert item("framework", "a")["company"] is None
    assert document("framework", "b")["companyDescription"] == "Boats."
    assert document("framework", "a")["companyDescription"] == ""
    assert [(each.line, each.field) for each in warnings] == [(1, "framework.isOpen")]
    assert sorted((each.line, each.field) for each in bad) == [
        (4, "framework.company"),
        (5, "framework.company.id"),
        (6, "specification.version"),
    ]
    assert summary.bad == 3


def test_a_changed_specification_becomes_the_next_version(tmp_path):
    row = {
        "framework": {"frameworkId": "a", "frameworkName": "A", "kind": "score", "isOpen": True},
        "specification": SPECIFICATION,
    }
    file = lines(tmp_path / "frameworks.jsonl", row)
    bring(file)
    bring(file)
    changed = {**SPECIFICATION, "scale": {"min": 0, "max": 5}}
    bring(lines(file, {**row, "specification": changed}))
    versions = FrameworkSpecification.objects.order_by("version")
    assert [(each.version, each.document["version"], each.document["scale"]["max"]) for each in versions] == [
        (1, 1, 4),
        (2, 2, 5),
    ]
