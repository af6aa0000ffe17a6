"""What a pasted table changes in a list: new rows, changed ones, and those that it does not name."""

import pytest

from muniment.schema.validation import ChoiceFault, Fault
from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM
from muniment.web.views.authoring.pasted import Pasted, read_table

STORED = [
    {"id": "h1", "name": "Treasury", "tokens": "500", "percentage": 50},
    {"id": "h2", "name": "Fund", "address": "0x1", "percentage": 10, "origin": "import"},
]
ADA = {"id": "p1", "title": "Chair", "person": {"name": "Ada Reef", "slug": "ada-reef"}}


def pasted(text, rows=HOLDERS, stored=STORED, **options):
    return Pasted(rows, stored, read_table(text, rows), **options)


def test_a_row_changes_the_stored_one_that_it_names_and_is_new_otherwise():
    found = pasted("Name\tPercent\ntreasury\t45.0%\nFounders\t20\nFund\t10%")
    assert found.change() == {
        "capTable": {
            "add": [{"name": "Founders", "percentage": 20}],
            "set": [{"id": "h1", "name": "treasury", "percentage": 45}],
        }
    }
    assert found.counts() == {"new": 1, "changed": 1, "unchanged": 1, "removed": 0}


def test_the_same_table_pasted_again_changes_nothing():
    assert pasted("Treasury\t500\t50.00%\nFund\t\t10").change() == {}


def test_rows_of_one_name_are_told_apart_by_their_address():
    found = pasted("Name\tAddress\tPercent\nFund\t0x2\t5\nFund\t0x1\t10")
    assert found.change() == {"capTable": {"add": [{"name": "Fund", "address": "0x2", "percentage": 5}]}}


def test_rows_of_one_name_are_found_without_comparing_each_with_each(monkeypatch):
    shown, cells = [], HOLDERS.cells
    monkeypatch.setattr(HOLDERS, "cells", lambda row: shown.append(row) or cells(row))
    stored = [{"id": f"h{n}", "name": "Fund", "address": f"0x{n}"} for n in range(100)]
    table = "Name\tAddress\n" + "".join(f"Fund\t0y{n}\n" for n in range(100))
    assert pasted(table, HOLDERS, stored).counts()["new"] == 100
    assert len(shown) <= 200


def test_a_row_without_an_address_is_the_first_of_its_name_that_no_other_row_names():
    stored = [{"id": f"h{n}", "name": "Fund", "address": f"0x{n}"} for n in range(3)]
    found = pasted("Name\tAddress\tPercent\nFund\t\t7\nFund\t0x0\t5\nFund\t\t8", HOLDERS, stored)
    assert [row.at for row in found.rows] == [1, 0, 2]


def test_rows_that_the_table_does_not_name_stay_unless_it_is_the_whole_list():
    assert "remove" not in pasted("Fund\t10").change().get("capTable", {})
    found = pasted("Fund\t10", is_whole=True)
    assert found.change() == {"capTable": {"remove": ["h1"]}}
    assert found.counts()["removed"] == 1


def test_a_person_keeps_the_profile_when_the_title_changes():
    found = pasted("Ada Reef\tTreasurer\nBo Marsh\tClerk", TEAM, [ADA])
    assert found.change() == {
        "positions": {
            "add": [{"title": "Clerk", "person": {"name": "Bo Marsh"}}],
            "set": [{"id": "p1", "title": "Treasurer"}],
        }
    }
    both = pasted("Ada Reef\tChair\nAda Reef\tTreasurer", TEAM, [ADA])
    assert both.change() == {"positions": {"add": [{"title": "Treasurer", "person": {"name": "Ada Reef"}}]}}


def test_a_pool_is_changed_inside_the_distribution():
    assert pasted("Members\t60", DISTRIBUTED, []).change() == {
        "distribution": {"pools": {"add": [{"name": "Members", "percentage": 60}]}}
    }
    assert pasted("City\nPort Ansel", PLACES, []).change() == {"address": {"add": [{"city": "Port Ansel"}]}}


@pytest.mark.parametrize(
    ("field", "line"),
    [
        ("capTable.set[0].percentage", 2),
        ("capTable[0].percentage", 2),
        ("capTable.add[0].percentage", 3),
        ("capTable[2].percentage", 3),
        ("capTable.add[9].percentage", None),
        ("capTable", None),
        ("name", None),
    ],
)
def test_a_fault_is_shown_in_its_row_or_above_the_table(field, line):
    found = pasted("Name\tPercent\nTreasury\t200\nFounders\thalf")
    found.put([Fault(field, "is wrong")])
    assert [row.line for row in found.rows if row.faults == ["Percent: is wrong."]] == ([line] if line else [])
    assert bool(found.sentences) == (line is None)
    assert found.has_faults


def test_a_name_that_several_people_have_is_chosen_from():
    found = pasted("Bo Marsh\tClerk", TEAM, [])
    fault = ChoiceFault("positions[0].person.name", "is the name of bo-marsh")
    fault.choices = ("bo-marsh",)
    found.put([fault])
    assert found.rows[0].choices == ("bo-marsh",)
    chosen = pasted("Bo Marsh\tClerk", TEAM, [], choices={1: "bo-marsh"})
    assert chosen.change()["positions"]["add"][0]["person"] == {"name": "Bo Marsh", "slug": "bo-marsh"}
    new = pasted("Bo Marsh\tClerk", TEAM, [], choices={1: "?new"})
    assert new.change()["positions"]["add"][0]["person"] == {"name": "Bo Marsh", "isNew": True}
