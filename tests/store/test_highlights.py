"""The highlights of a registry: what raises, what is voted on, what changed, and the largest treasuries."""

import json

import pytest

from make.published import company, framework, person
from muniment.store.lists.highlights import highlights

TODAY = "2026-11-23"


def ids(items):
    return [json.loads(each)["id"] for each in items]


def voting(number, *ends, status="active"):
    proposals = [{"id": str(n), "title": f"Vote {n}", "status": status, "endDate": day} for n, day in enumerate(ends)]
    return company(number, proposals=proposals)


def test_an_empty_registry_has_none(reader):
    assert highlights(reader, TODAY, 5) == ([], [], [], [], [], 0)


def test_raising_listings_come_newest_first_and_at_most_as_many_as_asked(publisher, reader):
    publisher.publish(*(company(n, day=n, raising=n % 2 == 0) for n in range(1, 10)))
    reader.refresh()
    assert ids(highlights(reader, TODAY, 3).raising) == ["company-8", "company-6", "company-4"]


def test_votes_come_by_their_end_without_those_that_are_over(publisher, reader):
    publisher.publish(
        voting(1, "2026-12-05", "2026-11-30"),
        voting(2, "2026-11-22"),
        voting(3, "2026-11-23"),
        voting(4, "2026-12-01", status="passed"),
    )
    reader.refresh()
    found = highlights(reader, TODAY, 9).voting
    assert [(each.ends, json.loads(each.item)["id"]) for each in found] == [
        ("2026-11-23", "company-3"),
        ("2026-11-30", "company-1"),
        ("2026-12-05", "company-1"),
    ]
    assert [each.ends for each in highlights(reader, "2026-12-01", 9).voting] == ["2026-12-05"]


def test_of_the_changes_each_company_has_its_latest_one_and_only_updates_count(publisher, reader):
    publisher.publish(*(company(n) for n in range(1, 5)), person(1), framework(1))
    publisher.publish(company(1), company(2), fields=("treasury",))
    publisher.publish(company(1), person(1), fields=("name",))
    publisher.publish(company(3))
    publisher.unlist("company", "company-3")
    reader.refresh()
    found = highlights(reader, TODAY, 9).updated
    assert [(each.change.key, each.change.fields) for each in found] == [
        ("company-1", ("name",)),
        ("company-2", ("treasury",)),
    ]
    assert ids(each.item for each in found) == ["company-1", "company-2"]


def test_the_largest_treasuries_come_first_and_an_unknown_one_not_at_all(publisher, reader):
    publisher.publish(*(company(n, treasuryMinor=minor) for n, minor in enumerate((5, None, 900, 0, 70), 1)))
    reader.refresh()
    assert ids(highlights(reader, TODAY, 9).largest) == ["company-3", "company-5", "company-1"]
    assert ids(highlights(reader, TODAY, 1).largest) == ["company-3"]


@pytest.mark.parametrize("limit", [1, 3])
def test_frameworks_come_in_order_of_first_publication(publisher, reader, limit):
    publisher.publish(*(framework(n) for n in range(1, 6)))
    reader.refresh()
    found = [json.loads(each)["frameworkId"] for each in highlights(reader, TODAY, limit).frameworks]
    assert found == [f"framework-{n}" for n in range(1, limit + 1)]
