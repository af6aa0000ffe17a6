"""History entries: values by the names of the wire, null where there is none; and changes in compact form."""

import random

import msgspec
import pytest
from django.conf import settings

from muniment.kernel.actor import Actor
from muniment.registry import history
from muniment.registry.history import reduce_change, undo, without_rows


def test_columns_have_the_names_and_the_form_of_the_wire():
    assert history.wire_values({"team_size": 7, "treasury_minor": 123_456}, settings.SCHEMA.company) == {
        "teamSize": 7,
        "treasury": "$1234.56",
    }
    assert history.wire_values({"run_cost": 5, "name": "", "closed": False}) == {
        "runCost": 5,
        "name": None,
        "closed": False,
    }


def test_an_entry_names_the_credential_of_its_actor():
    actor = Actor(account_id=7, role="owner", via="token", credential="laptop")
    made = history.entry(actor, "updated", before={"a": 1}, after={"a": 2}, note="Why.")
    assert (made.account_id, made.via, made.credential, made.pk) == (7, "token", "laptop", None)
    assert (made.action, made.before, made.after, made.note) == ("updated", {"a": 1}, {"a": 2}, "Why.")


LETTERS = "abcdefghij"


def rows(ids, **changed):
    return [{"id": each, "name": changed.get(each, f"Row {each}")} for each in ids]


def reduced(before, after):
    """Return one field's values before and after with its part, as they are stored."""
    change = msgspec.json.decode(msgspec.json.encode(reduce_change({"x": before}, {"x": after})))
    old, new, parts = change
    return old["x"], new["x"], parts.get("x")


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("abc", "abd", ("c", "d")),  # one row replaced
        ("abcdef", "abcdefg", ("", "g")),
        ("abcdef", "bcdef", ("a", "")),
        ("abcdef", "acdebf", ("", "")),  # moved: no row changed
    ],
)
def test_a_list_keeps_the_rows_that_were_added_changed_or_removed(before, after, kept):
    old, new, part = reduced(rows(before), rows(after))
    assert ("".join(row["id"] for row in old), "".join(row["id"] for row in new)) == kept
    assert undo(rows(after), old, new, part) == rows(before)


def test_a_changed_row_is_kept_whole_on_both_sides():
    before, after = rows("abc"), rows("abc", b="Changed")
    assert reduced(before, after) == (rows("b"), rows("b", b="Changed"), {"from": [], "to": []})


def test_a_moved_row_is_kept_by_its_id_and_places():
    old, new, part = reduced(rows("abcdef"), rows("aebcdf"))
    assert (old, new) == ([], [])
    assert part == {"from": [["d", "f", 4, "e"]], "to": [["a", "b", 1, "e"]]}


def test_an_object_keeps_the_members_that_changed_also_inside_it():
    before = {"method": "sale", "note": "x", "deep": {"a": 1, "b": 2}, "pools": rows("ab")}
    after = {"method": "sale", "more": 1, "deep": {"a": 1, "b": 3}, "pools": rows("abc")}
    old, new, part = reduced(before, after)
    assert old == {"note": "x", "deep": {"b": 2}, "pools": []}
    assert new == {"more": 1, "deep": {"b": 3}, "pools": rows("c")}
    assert undo(after, old, new, part) == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (None, rows("ab")),
        ([], rows("ab")),
        (rows("ab"), []),
        (rows("ab"), rows("cd")),  # nothing in common
        (rows("aab"), rows("aabc")),  # ids that do not tell rows apart
        ([{"name": "A"}, {"name": "B"}], [{"name": "A"}]),
        (["a", "b"], ["a"]),
        ({"a": 1}, {"b": 1}),
        ("long text", "longer text"),
    ],
)
def test_what_cannot_be_reduced_stays_whole(before, after):
    assert reduced(before, after) == (before, after, None)


def test_numbers_that_look_alike_are_told_apart():
    before, after = [{"id": "a", "n": 1}, {"id": "b", "n": 1}], [{"id": "a", "n": True}, {"id": "b", "n": 1}]
    old, _, _ = reduced(before, after)
    assert old == [{"id": "a", "n": 1}]


def edited(draw, ids, names):
    """Return a list after some random edits of its rows."""
    ids = list(ids)
    for _ in range(draw.randint(1, 4)):
        match draw.choice(("add", "remove", "move", "change", "shuffle" if draw.random() < 0.1 else "add")):
            case "add" if left := [each for each in LETTERS if each not in ids]:
                ids.insert(draw.randint(0, len(ids)), draw.choice(left))
            case "remove" if ids:
                ids.pop(draw.randrange(len(ids)))
            case "move" if ids:
                each = ids.pop(draw.randrange(len(ids)))
                ids.insert(draw.randint(0, len(ids)), each)
            case "change" if ids:
                names[draw.choice(ids)] = f"Name {draw.random()}"
            case "shuffle":
                draw.shuffle(ids)
    return rows(ids, **names)


def test_any_order_of_edits_is_undone_one_by_one():
    draw = random.Random(18)
    for _ in range(300):
        states, changes, names = [rows(LETTERS[: draw.randint(0, 10)])], [], {}
        for _ in range(6):
            states.append(edited(draw, (row["id"] for row in states[-1]), names))
            changes.append(reduced(states[-2], states[-1]))
        value = states[-1]
        for before, change in zip(reversed(states[:-1]), reversed(changes), strict=True):
            value = undo(value, *change)
            assert value == before


def test_the_fewest_rows_count_as_moved():
    ids = [f"r{n}" for n in range(1_000)]
    moved = [*ids[1:], ids[0]]
    old, new, part = reduced(rows(ids), rows(moved))
    assert (old, new, part) == ([], [], {"from": [["", "r1", 0, "r0"]], "to": [["r999", "", 999, "r0"]]})


@pytest.mark.parametrize(("left", "result"), [("abd", "abcd"), ("ad", "acd"), ("ab", "abc"), ("a", "ac"), ("", "c")])
def test_a_row_returns_beside_a_neighbour_that_is_still_there(left, result):
    old, new, part = reduced(rows("abcd"), rows("abd"))
    assert "".join(row["id"] for row in undo(rows(left), old, new, part)) == result


def test_the_places_of_rows_can_be_removed():
    _, _, part = reduced(rows("abcdef"), rows("aef"))
    assert without_rows(part, {"c"}) == {"from": [["a", "e", 1, "b", "d"]], "to": []}
    assert without_rows(part, {"b", "c", "d"}) == {"from": [], "to": []}
