"""Texts of features that pages show: none is put together where no catalogue can have it."""

import runpy
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[2] / "checks"
phrases = runpy.run_path(str(CHECKS / "phrases.py"))
SOURCE = CHECKS.parent / "src" / "muniment"


def _module(folder, text, monkeypatch):
    file = folder / "registry" / "made.py"
    file.parent.mkdir()
    file.write_text(text)
    monkeypatch.setitem(phrases["unmarked"].__globals__, "SOURCE", folder)
    return file


def test_no_problem_of_a_feature_is_given_an_f_string():
    found = [(file.name, place) for file in sorted(SOURCE.rglob("*.py")) for place in phrases["unmarked"](file)]
    assert found == []


@pytest.mark.parametrize(
    "call",
    [
        'NotFound(f"No person has the slug {slug}.", "Search.")',
        'Conflict("Taken.", f"Use one of: {names}.")',
        'Fault("name", f"has {count} characters")',
        'Breach(path, f"has {count} characters")',
        'validation.refuse(path, f"is not one of {names}")',
        'Unavailable("Away.", hint=f"Try again in {seconds} s.")',
        'NotFound("No person has the slug " + slug, "Search.")',
        'NotFound("No person has the slug {}.".format(slug), "Search.")',
        'Conflict("a" if is_one else f"has {count} rows", "Read it again.")',
    ],
)
def test_a_text_that_is_put_together_is_found(call, tmp_path, monkeypatch):
    file = _module(tmp_path, f"raise {call}\n", monkeypatch)
    assert [line for line, _ in phrases["unmarked"](file)] == [1]


@pytest.mark.parametrize(
    "call",
    [
        'NotFound(Phrase("No person has the slug {slug!r}.", slug=slug), "Search.")',
        'Fault(f"positions[{index}].person", "is missing")',
        'Fault(f"positions[{index}]", reason)',
    ],
)
def test_a_phrase_is_accepted(call, tmp_path, monkeypatch):
    assert list(phrases["unmarked"](_module(tmp_path, f"raise {call}\n", monkeypatch))) == []


def test_texts_are_found_in_place_by_name_and_with_their_plural(tmp_path, monkeypatch):
    text = (
        'HINT = "Search at /people."\n'
        "def find(one):\n"
        '    reason = "is taken" if one else "is missing"\n'
        '    raise NotFound(Phrase("No {slug!r}.", slug=1), HINT)\n'
        '    Fault("name", reason)\n'
        '    Counted("{count} row", "{count} rows", count=1)\n'
    )
    found = {tuple(each) for each in phrases["of_features"](_module(tmp_path, text, monkeypatch))}
    wanted = {("No {slug!r}.", ""), ("Search at /people.", ""), ("is taken", ""), ("is missing", "")}
    assert found == {*wanted, ("{count} row", "{count} rows")}
