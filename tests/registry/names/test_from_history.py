"""The names that companies had are found in the history."""

from datetime import date

import pytest

from make.registry import owner, published, reviewer
from muniment.registry.company import listings
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company, HistoryEntry
from muniment.registry.names import former
from muniment.registry.names.from_history import Recorded, fill, names_of
from muniment.registry.names.operations import hide_former_name, remove_former_name


def step(day, before=None, after=None, *, was=None, state=None):
    return Recorded(date(2026, 1, day), before, after, was, state)


@pytest.mark.parametrize(
    ("steps", "name", "found"),
    [
        ([], "A", []),
        ([step(1, "A", "B")], "B", [("A", "01")]),
        ([step(1, "A", "B"), step(2, "B", "C")], "C", [("B", "02"), ("A", "01")]),
        ([step(1, "A", "B"), step(2, "B", "A")], "A", [("B", "02")]),
        ([step(1, "Ä-b", "äB")], "äB", []),
        # A draft, until it is approved.
        ([step(1, None, "A"), step(2, "A", "B"), step(3, was="submitted", state="published")], "B", []),
        (
            [step(1, was="submitted", state="published"), step(2, "A", "B"), step(3, "B", "C")],
            "C",
            [("B", "03"), ("A", "02")],
        ),
        # Renamed while it was unlisted: only what was public.
        (
            [
                step(1, was="published", state="unlisted"),
                step(2, "A", "B"),
                step(3, "B", "C"),
                step(4, was="unlisted", state="published"),
            ],
            "C",
            [("A", "02")],
        ),
        # A name between the two was removed.
        ([step(1, "A", None), step(2, None, "C")], "C", [("A", "01")]),
    ],
)
def test_only_names_of_a_public_company_are_former_ones(steps, name, found):
    names = names_of(steps, name, "published") or ()
    assert [(each["name"], each["until"][-2:]) for each in names] == found


@pytest.mark.django_db
def test_an_instance_with_a_history_gets_its_former_names():
    first, second, third, other = (published(owner(), name=name).slug for name in ("Ash", "Birch", "Cedar", "Dill"))
    for slug in (first, second, third):
        for name in (f"{slug} two", f"{slug} three"):
            listings.update_company(reviewer(), slug, CompanyChange(name=name))
    expected = dict(Company.objects.values_list("slug", "former_names"))
    assert [each["name"] for each in expected[first]] == ["ash two", "Ash"]
    assert expected[other] is None
    Company.objects.update(former_names=None)
    HistoryEntry.objects.filter(company__slug=second).update(changed=None)  # as an earlier version wrote it
    assert fill() == 3
    assert dict(Company.objects.values_list("slug", "former_names")) == expected
    assert fill() == 0


@pytest.mark.django_db
def test_what_was_hidden_or_removed_stays_so_when_the_history_is_read_again():
    slug = published(owner(), name="Ash").slug
    for name in ("Birch", "Cedar"):
        listings.update_company(reviewer(), slug, CompanyChange(name=name))
    hide_former_name(reviewer(), slug, "Ash")
    remove_former_name(reviewer(), slug, "Birch")
    before = Company.objects.get(slug=slug).former_names
    assert fill(former.is_removed) == 0
    assert Company.objects.get(slug=slug).former_names == before
    assert [each["name"] for each in before] == ["Ash"]
