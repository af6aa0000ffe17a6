"""Pruning after an import: what the files no longer hold is unlisted, within a limit, and nothing else is."""

from typing import Any

import pytest
from django.core import mail

from make.registry import document, keys, lines, owner, published
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest, Forbidden
from muniment.registry.company.listings import add_owner
from muniment.registry.exchange.importer import ImportOptions, import_registry
from muniment.registry.models import Company, HistoryEntry, MergedPerson, Person
from muniment.registry.people.profiles import join_person
from muniment.registry.review.pruning import plan_pruning

pytestmark = pytest.mark.django_db


def companies(*numbers: int) -> list[dict[str, Any]]:
    return [{"company": {"id": f"c{n}", "name": f"Company {n}"}} for n in numbers]


@pytest.fixture
def folder(tmp_path):
    """Return a folder with twenty imported companies."""
    lines(tmp_path / "companies.jsonl", *companies(*range(20)))
    import_registry(tmp_path)
    return tmp_path


def found(folder, **options: Any) -> list[str]:
    return [str(row) for row in plan_pruning(folder, **options).rows]


def test_what_the_file_no_longer_holds_is_unlisted_and_its_owners_are_told(folder):
    add_owner(COMMAND, "c3", owner("keeper@example.org").account_id)
    mine = published(owner(), name="Of an owner")
    lines(folder / "companies.jsonl", *companies(*(n for n in range(20) if n != 3)))
    mail.outbox.clear()
    plan = plan_pruning(folder)
    assert [str(row) for row in plan.rows] == ["company c3 (has an owner)"]
    assert document("company", "c3") is not None
    assert plan.unlist(COMMAND) == 1
    assert document("company", "c3") is None
    assert document("company", mine.slug) is not None
    assert (Company.objects.get(slug="c3").unlisted_by, len(keys("company"))) == ("reviewer", 20)
    assert HistoryEntry.objects.latest("pk").note == "The imported files no longer hold it."
    assert found(folder) == []
    assert plan.unlist(COMMAND) == 0


def test_more_than_a_tenth_needs_a_limit(folder):
    lines(folder / "companies.jsonl", *companies(*range(18)))
    plan_pruning(folder).check()
    lines(folder / "companies.jsonl", *companies(*range(17)))
    with pytest.raises(BadRequest, match=r"would unlist 3 of 20 companies, more than a tenth"):
        plan_pruning(folder).check()
    with pytest.raises(BadRequest, match=r"would unlist 3 rows, more than the limit of 2"):
        plan_pruning(folder, limit=2).check()
    plan_pruning(folder, limit=3).check()
    assert len(keys("company")) == 20


@pytest.mark.parametrize("bad", [b"{\n", {"company": {"name": "No id"}}, {"company": 7}])
def test_a_row_that_names_nothing_stops_a_pruning(folder, bad):
    lines(folder / "companies.jsonl", *companies(*range(19)), bad)
    with pytest.raises(BadRequest, match=r"companies.jsonl:20 names no row"):
        plan_pruning(folder)


def test_a_row_with_another_fault_is_not_missing(folder):
    rows = companies(*range(20))
    rows[4]["company"]["status"] = "never"
    lines(folder / "companies.jsonl", *rows)
    assert found(folder) == []


def test_people_are_pruned_by_their_file_but_not_those_who_claimed_their_profile(tmp_path):
    people = [{"slug": f"p{n}", "name": f"Person {n}"} for n in range(5)]
    lines(tmp_path / "people.jsonl", *people)
    import_registry(tmp_path)
    join_person(COMMAND, "p1", owner().account_id)
    p2 = Person.objects.get(slug="p2")
    MergedPerson.objects.create(slug="former", person=p2)
    lines(tmp_path / "people.jsonl", people[0], {"slug": "former", "name": "Person 2"}, people[3])
    plan = plan_pruning(tmp_path, limit=1)
    assert [str(row) for row in plan.rows] == ["person p4"]
    plan.check()
    assert plan.unlist(COMMAND) == 1
    assert plan.unlist(COMMAND) == 0
    assert sorted(keys("person")) == ["p0", "p1", "p2", "p3"]
    import_registry(lines(tmp_path / "people.jsonl", *people))
    assert document("person", "p4") is None
    import_registry(tmp_path / "people.jsonl", ImportOptions(relist=True))
    assert document("person", "p4")["name"] == "Person 4"


def test_people_whom_only_positions_name_are_not_pruned(tmp_path):
    row = {"company": {"id": "acme", "name": "Acme"}, "positions": [{"person": {"name": "Ada Moss"}}]}
    lines(tmp_path / "companies.jsonl", row)
    lines(tmp_path / "people.jsonl", {"slug": "bo", "name": "Bo"})
    import_registry(tmp_path)
    assert found(tmp_path) == []


def test_frameworks_are_pruned_by_their_file(tmp_path):
    frameworks = [
        {"framework": {"frameworkId": name, "frameworkName": name.title(), "kind": "score"}} for name in ("one", "two")
    ]
    lines(tmp_path / "frameworks.jsonl", *frameworks)
    import_registry(tmp_path)
    lines(tmp_path / "frameworks.jsonl", frameworks[0])
    plan = plan_pruning(tmp_path, limit=5)
    assert plan.unlist(COMMAND) == 1
    assert keys("framework") == ["one"]


def test_only_reviewers_and_operators_prune(folder):
    lines(folder / "companies.jsonl", *companies(*range(19)))
    with pytest.raises(Forbidden):
        plan_pruning(folder).unlist(owner())
    assert len(keys("company")) == 20
