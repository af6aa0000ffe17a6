"""The ids of rows: where they come from, that they stay, and what the operations on rows refuse."""

import msgspec
import pytest

from muniment.schema.company_parts import ADDRESSES, CAP_TABLE, POSITIONS, PROPOSALS
from muniment.schema.kinds import CHANGE
from muniment.schema.validation import Validation


def position(name, title, **more):
    return {"title": title, "person": {"name": name}, **more}


def applied(kind, stored, change):
    validation = Validation(change=True)
    operations = validation.read(kind, change)
    assert validation.faults == []
    rows = kind.apply(stored, operations, ("rows",), validation)
    return rows, [f"{fault.field} {fault.reason}" for fault in validation.faults]


def test_the_same_rows_get_the_same_ids_and_equal_rows_different_ones():
    rows = [position("Ada", "Chair"), position("Bo", "Chair"), position("Ada", "Chair")]
    first, second = POSITIONS.with_ids(rows), POSITIONS.with_ids(rows)
    assert first == second
    assert len({row["id"] for row in first}) == 3
    assert all(len(row["id"]) == 8 for row in first)


def test_a_row_of_another_list_with_the_same_name_has_another_id():
    assert CAP_TABLE.with_ids([{"name": "Team"}])[0]["id"] != PROPOSALS.with_ids([{"title": "Team"}])[0]["id"]


def test_a_row_without_an_id_takes_that_of_the_equal_stored_row_in_its_order():
    stored = [position("Ada", "Chair", id="x"), position("Bo", "Clerk", id="y"), position("Ada", "Chair", id="z")]
    given = [position("Bo", "Clerk"), position("Ada", "Chair"), position("Ada", "Chair"), position("Ada", "Chair")]
    found = [row["id"] for row in POSITIONS.with_ids(given, stored)]
    assert found[:3] == ["y", "x", "z"]
    assert found[3] not in {"x", "y", "z"}


def test_an_id_of_a_removed_row_is_not_given_again():
    (first,) = POSITIONS.with_ids([position("Ada", "Chair")])
    (second,) = POSITIONS.with_ids([position("Ada", "Chair")], retired={first["id"]})
    assert first["id"] != second["id"]


def test_an_id_of_its_own_stays_and_comes_first():
    (row,) = PROPOSALS.with_ids([{"title": "Plant willows", "id": "7"}])
    assert row["id"] == "7"
    (derived,) = PROPOSALS.with_ids([{"title": "Plant willows", "extra": 1}])
    assert list(derived) == ["id", "title", "extra"]


def test_a_holder_is_known_by_address_then_by_name():
    stored = CAP_TABLE.with_ids([{"address": "0x1", "name": "Ada"}, {"name": "Bo"}])
    given = [{"name": "Bo", "percentage": 5}, {"address": "0x1", "name": "Ada Moss"}]
    assert [row["id"] for row in CAP_TABLE.with_ids(given, stored)] == [stored[1]["id"], stored[0]["id"]]


def test_operations_change_only_the_rows_that_they_name():
    stored = [position("Ada", "Chair", id="a", since=2020), position("Bo", "Clerk", id="b"), position("Cy", "", id="c")]
    change = {"add": [position("Di", "Dean")], "set": [{"id": "a", "title": "President"}], "remove": ["c"]}
    rows, faults = applied(POSITIONS, stored, change)
    assert faults == []
    assert rows == [{**stored[0], "title": "President"}, stored[1], position("Di", "Dean")]
    assert stored[0]["title"] == "Chair"


def test_set_merges_votes_replaces_a_person_and_clears_with_null():
    stored = [{"id": "1", "title": "Go", "votes": {"for": 5, "against": 1}, "endDate": "2025-01-01"}]
    rows, faults = applied(PROPOSALS, stored, {"set": [{"id": "1", "votes": {"for": 6}, "endDate": None}]})
    assert (rows, faults) == ([{"id": "1", "title": "Go", "votes": {"for": 6, "against": 1}}], [])
    team = [{"id": "1", "person": {"name": "Ada", "slug": "ada"}}]
    rows, _ = applied(POSITIONS, team, {"set": [{"id": "1", "person": {"name": "Bo"}}]})
    assert rows == [{"id": "1", "person": {"name": "Bo"}}]


def test_a_cleared_member_of_an_address_is_null():
    stored = ADDRESSES.with_ids([dict.fromkeys(("address_1", "address_2", "state", "zip")) | {"city": "Port"}])
    rows, _ = applied(ADDRESSES, stored, {"set": [{"id": stored[0]["id"], "city": None, "zip": "12"}]})
    assert (rows[0]["city"], rows[0]["zip"]) == (None, "12")


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"set": [{"id": "z", "title": "x"}]}, "rows.set[0].id 'z' is the id of no row"),
        ({"remove": ["a", "z"]}, "rows.remove[1] 'z' is the id of no row"),
        ({"remove": ["twin"]}, "rows.remove[0] 'twin' is the id of 2 rows: send the whole list"),
        ({"set": [{"id": "a", "title": 5}]}, "rows.set[0].title must be text, not a number"),
        ({"set": [{"id": "a", "person": {}}]}, "rows.set[0].person.slug is missing, and so is a name"),
        ({"set": [{"id": "a", "person": None}]}, "rows.set[0].person is missing"),
    ],
)
def test_what_an_operation_names_must_be_there_and_right(change, fault):
    stored = [position("Ada", "Chair", id="a"), position("Bo", "", id="twin"), position("Cy", "", id="twin")]
    assert applied(POSITIONS, stored, change)[1] == [fault]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        ({"replace": []}, "replace is not one of add, set, remove"),
        ({"add": {}}, "add must be a list, not an object"),
        ({"set": [{"title": "x"}]}, "set[0] must be an object with the id of a row"),
        ({"set": [{"id": "a"}, {"id": "a"}]}, "set[1].id 'a' is there twice"),
        ({"set": [{"id": "a"}], "remove": ["a"]}, "remove[0] 'a' is also in set"),
        ({"remove": [5]}, "remove[0] must be the id of a row, not a number"),
        ({"add": [{"title": "x"}]}, "add[0].person is missing"),
    ],
)
def test_operations_of_the_wrong_form_are_refused(change, fault):
    validation = Validation(change=True)
    validation.read(POSITIONS, change)
    assert [f"{each.field} {each.reason}" for each in validation.faults] == [fault]


def test_an_import_takes_a_number_for_the_id_and_a_change_does_not():
    imported, changed = Validation(change=False), Validation(change=True)
    assert imported.read(CAP_TABLE, [{"id": 5}]) == [{"id": "5"}]
    changed.read(CAP_TABLE, [{"id": 5}])
    assert changed.faults[0].reason == "must be text, not a number"


def test_the_schema_of_a_change_has_the_operations_first_and_then_the_whole_list():
    operations, whole = POSITIONS.schema(CHANGE)["anyOf"]
    assert whole == {"type": "array", "items": {"type": "object"}}
    assert list(operations["properties"]) == ["add", "set", "remove"]
    assert "person" in operations["properties"]["add"]["items"]["properties"]


def shares_hint(stored, rows):
    """Return the hint of the breach that the shares of *rows* are; None if they are none."""
    breaches = list(CAP_TABLE.breaches(rows, ("capTable",), stored))
    return breaches[0].hint if breaches else None


def holder(row_id, share):
    return {"id": row_id, "name": row_id, "percentage": share}


@pytest.mark.parametrize(
    ("stored", "added", "lowered"),
    [
        ([60, 40], 0.5, None),
        ([60, 40], 0.6, 59.4),
        ([60, 40], 60, 0),
        ([60, 40], 61, 0),
        ([40, 60.0001], 30, 30.0),
    ],
)
def test_shares_above_the_whole_name_a_row_to_lower_by_as_much_as_is_missing(stored, added, lowered):
    before = [holder(f"h{number}", share) for number, share in enumerate(stored)]
    hint = shares_hint(before, [*before, holder("new", added)])
    if lowered is None:
        assert hint is None
        return
    largest = f"h{stored.index(max(stored))}"
    change = f'{{"id":"{largest}","percentage":{msgspec.json.encode(lowered).decode()}}}'
    assert hint == f'Send smaller shares, or lower others in the same call, such as by "set": [{change}].'


def test_shares_above_the_whole_that_are_all_new_name_no_other_row():
    before = [holder("a", 60), {"id": "b", "name": "Without a share"}]
    assert shares_hint(before, [holder("a", 70), before[1], holder("c", 40)]) == (
        "Send shares that add up to at most 100 %."
    )


@pytest.mark.parametrize(
    ("kind", "value", "hint"),
    [
        (POSITIONS, ["Ada"], 'rows[0] as an object such as {"title":"Steward","person":{"name":"Ada Fluss"}}.'),
        (POSITIONS, [{"person": "Ada"}], 'rows[0].person as an object such as {"name":"Ada Fluss"}.'),
        (POSITIONS, [{"title": "Chair"}], 'rows[0].person as an object such as {"name":"Ada Fluss"}.'),
        (POSITIONS, {"add": [{"person": None}]}, 'rows.add[0].person as an object such as {"name":"Ada Fluss"}.'),
        (ADDRESSES, ["Slip Street"], "rows[0] as an object such as "),
    ],
)
def test_a_value_that_must_be_an_object_is_told_with_an_example_and_its_members(kind, value, hint):
    validation = Validation(change=True)
    kind.read(value, ("rows",), validation)
    (fault,) = validation.faults
    assert hint in fault.hint
    assert fault.hint.startswith("Send rows")
    assert "Its members are " in fault.hint


def test_a_fault_that_the_form_options_explain_has_no_hint_of_its_own():
    validation = Validation(change=True)
    PROPOSALS.read([{"title": "Buy a barge", "status": "open"}], ("rows",), validation)
    assert [fault.hint for fault in validation.faults] == [""]
