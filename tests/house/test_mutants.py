"""The mutants that `make mutate` draws."""

import runpy
import tomllib
from pathlib import Path

import pytest

CHECK = Path(__file__).parents[2] / "checks" / "mutants.py"
MODULE = '''
"""A module with 1 docstring."""
LIMIT: int = 20

def allowed(actor, given: "str | None" = None, *, count=1):
    """Return whether 2 are allowed."""
    log.info("allowed %s", count + 1)
    assert count > 0
    if given is None and count >= LIMIT:
        raise Conflict(f"At most {count + 1}", hint="Close 1 first.")
    history.save(by=actor, note="was %s" % given)
    return Entry.objects.filter(account=actor, open=True).exists()
'''


@pytest.fixture
def found(tmp_path):
    """Return the mutants of a module by their key."""
    mutants = runpy.run_path(str(CHECK))["mutants"]

    def keys(text):
        file = tmp_path / "rules" / "claims.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        return {each.key: each for each in mutants(file)}

    return keys


def test_rules_are_mutated_and_texts_annotations_assertions_and_refusals_are_not(found):
    assert list(found(MODULE)) == [
        "rules/claims.allowed: given is None and count >= LIMIT => False",
        "rules/claims.allowed: given is None and count >= LIMIT => True",
        "rules/claims.allowed: given is None and count >= LIMIT => given is None or count >= LIMIT",
        "rules/claims.allowed: is => is not",
        "rules/claims.allowed: >= LIMIT => > LIMIT",
        'rules/claims.allowed: history.save(by=actor, note="…" % given) => pass',
        'rules/claims.allowed: history.save(by=actor, note="…" % given) => history.save(note="…" % given)',
        'rules/claims.allowed: history.save(by=actor, note="…" % given) => history.save(by=actor, )',
        "rules/claims.allowed: Entry.objects.filter(account=actor, open=True) => Entry.objects.filter(open=True)",
        "rules/claims.allowed: Entry.objects.filter(account=actor, open=True) => Entry.objects.filter(account=actor, )",
        "rules/claims.allowed: True => False",
    ]


def test_a_mutant_is_the_module_with_one_change(found):
    mutant = found(MODULE)["rules/claims.allowed: >= LIMIT => > LIMIT"]
    assert mutant.source() == MODULE.replace(">= LIMIT", "> LIMIT")
    assert list(mutant.lines) == [9]


def test_a_key_survives_other_lines_and_other_messages(found):
    moved = MODULE.replace("LIMIT: int", "# a line more\nLIMIT: int").replace("was %s", "has been %s")
    assert found(moved).keys() == found(MODULE).keys()


def test_equal_mutants_of_a_function_are_numbered(found):
    assert list(found("def both(a, b):\n    return a == 1, b == 1\n")) == [
        "rules/claims.both: == 1 => != 1",
        "rules/claims.both: 1 => 2",
        "rules/claims.both: == 1 => != 1 #2",
        "rules/claims.both: 1 => 2 #2",
    ]


def test_each_named_mutant_still_changes_one_place():
    root = CHECK.parents[1]
    listed = tomllib.loads(CHECK.with_suffix(".toml").read_text())
    assert len(listed["equivalent"]) <= 15
    for each in listed["named"]:
        assert (root / each["file"]).read_text().count(each["old"]) == 1, each["rule"]
        assert all((root / tests).exists() for tests in each["tests"]), each["rule"]
