"""What an update changed is shown by element."""

import msgspec
import pytest

from muniment.mcp.tools.answers import shown


def difference(before, after):
    return shown({"field": {"before": before, "after": after}})["field"]


def row(key, **members):
    return {"id": key, "title": "Chair", "person": {"name": "Ada", "slug": "ada"}, **members}


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ("Old.", "New.", {"before": "Old.", "after": "New."}),
        (None, 5, {"before": None, "after": 5}),
        ([row("a"), row("b")], [row("a"), row("b", title="Pilot")], {
            "changed": [{"id": "b", "before": {"title": "Chair"}, "after": {"title": "Pilot"}}]
        }),
        ([row("a")], [row("a"), row("c")], {"added": [row("c")]}),
        ([row("a"), row("c")], [row("a")], {"removed": [row("c")]}),
        ([row("a"), row("b")], [row("b"), row("a")], {"reordered": True}),
        (None, [row("a")], {"added": [row("a")]}),
        ([row("a")], None, {"removed": [row("a")]}),
        (["x", "y"], ["y", "z"], {"added": ["z"], "removed": ["x"]}),
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, {"before": {"b": 2}, "after": {"b": 3}}),
        (None, {"a": 1, "b": None}, {"before": {"a": None}, "after": {"a": 1}}),
        ({"pools": [{"id": "p", "n": 1}, {"id": "q", "n": 1}]}, {"pools": [{"id": "p", "n": 2}, {"id": "q", "n": 1}]}, {
            "before": {"pools": [{"id": "p", "n": 1}]}, "after": {"pools": [{"id": "p", "n": 2}]}
        }),
    ],
)  # fmt: skip
def test_a_difference_shows_the_elements_that_differ(before, after, expected):
    assert difference(before, after) == expected


def test_a_difference_of_many_elements_says_how_many_there_are():
    rows = [row(str(number)) for number in range(300)]
    found = difference(rows, [])
    assert (len(found["removed"]), found["removedTotal"]) == (20, 300)


@pytest.mark.requirement("mcp.size")
def test_any_difference_fits_an_answer():
    texts = {f"f{number}": {"before": "a" * 50_000, "after": "b" * 50_000} for number in range(20)}
    assert len(msgspec.json.encode(shown(texts))) <= 30_000
    many = {f"f{number}": {"before": {"x" * 900: 1}, "after": {"x" * 900: 2}} for number in range(200)}
    assert shown(many)["f7"] == {"truncated": True}
