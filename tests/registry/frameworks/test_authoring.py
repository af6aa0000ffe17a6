"""Frameworks: created, changed, specified and closed by reviewers."""

import pytest

from make.registry import (
    SPECIFICATION,
    document,
    item,
)
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import NotFound
from muniment.registry.company.changes import BadFields
from muniment.registry.frameworks import authoring as frameworks
from muniment.registry.models import Framework

pytestmark = pytest.mark.django_db


@pytest.mark.requirement("framework.is-open", "framework.specification-private")
def test_a_framework_is_open_once_authored_until_its_reviewer_closes_it():
    made = frameworks.create_framework(COMMAND, name="Open Score", kind="score", description="What it weighs.")
    assert item("framework", "open-score")["isOpen"] is False
    first = frameworks.author_framework(COMMAND, made.slug, SPECIFICATION)
    assert frameworks.author_framework(COMMAND, made.slug, SPECIFICATION) == first
    assert item("framework", "open-score")["isOpen"] is True
    assert "requirement" not in str(document("framework", "open-score"))
    frameworks.update_framework(COMMAND, made.slug, closed=True)
    assert item("framework", "open-score")["isOpen"] is False
    frameworks.update_framework(COMMAND, made.slug, closed=False, run_cost=25)
    second = frameworks.author_framework(COMMAND, made.slug, {**SPECIFICATION, "scale": {"min": 0, "max": 9}})
    assert (first.version, second.version, second.document["version"]) == (1, 2, 2)
    assert frameworks.current_specification(made.slug) == second
    assert "runCost" not in document("framework", "open-score")


def test_a_malformed_framework_is_refused_by_its_fields():
    with pytest.raises(BadFields) as problem:
        frameworks.create_framework(COMMAND, name="", kind="program", framework_id="a b")
    assert sorted(fault.field for fault in problem.value.faults) == ["company", "frameworkId", "name"]
    frameworks.create_framework(COMMAND, name="A", kind="score")
    with pytest.raises(BadFields, match="is taken"):
        frameworks.create_framework(COMMAND, name="A", kind="score")
    with pytest.raises(BadFields, match="no company has the slug"):
        frameworks.create_framework(COMMAND, name="B", kind="program", company="missing")
    with pytest.raises(BadFields, match=r"sections\[0\].criteria\[0\].weight is not a number greater than 0"):
        frameworks.author_framework(COMMAND, "a", _with_weight(0))
    with pytest.raises(NotFound):
        frameworks.author_framework(COMMAND, "missing", SPECIFICATION)


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"name": " "}, "name"),
        ({"name": "a\0b"}, "name"),
        ({"description": "\ud800"}, "description"),
        ({"run_cost": -1}, "runCost"),
        ({"run_cost": 2**31}, "runCost"),
    ],
)
def test_a_framework_refuses_a_value_that_its_field_does_not_take(change, field):
    frameworks.create_framework(COMMAND, name="A", kind="score")
    before = Framework.objects.values().get()
    with pytest.raises(BadFields) as problem:
        frameworks.update_framework(COMMAND, "a", **change)
    assert [fault.field for fault in problem.value.faults] == [field]
    assert Framework.objects.values().get() == before
    frameworks.update_framework(COMMAND, "a", run_cost=2**31 - 1)
    with pytest.raises(NotFound):
        frameworks.update_framework(COMMAND, "missing", name="B")


def _with_weight(weight):
    section = SPECIFICATION["sections"][0]
    criteria = [{**section["criteria"][0], "weight": weight}]
    return {**SPECIFICATION, "sections": [{**section, "criteria": criteria}]}
