"""Every requirement has a test or is openly open, and every test that names one names a real one."""

import ast
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from contract.requirements import DECISIONS, OPEN, REQUIREMENTS, SERVICE, TOOLS

TESTS = Path(__file__).parents[1]


def markers() -> Iterator[tuple[str, str]]:
    """Yield each requirement that a test names, with the place."""
    for file in sorted(TESTS.rglob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "requirement":
                for argument in node.args:
                    assert isinstance(argument, ast.Constant), f"{file}:{node.lineno}: the id stands there in words"
                    yield argument.value, f"{file.relative_to(TESTS)}:{node.lineno}"


@cache  # all tests are parsed, and two tests ask
def named() -> dict[str, list[str]]:
    places = defaultdict(list)
    for identifier, place in markers():
        places[identifier].append(place)
    return places


def test_every_id_is_used_once():
    assert len(SERVICE) + len(DECISIONS) + len(TOOLS) == len(REQUIREMENTS)
    opened = [identifier for part in OPEN.values() for identifier in part]
    assert len(opened) == len(set(opened))
    assert set(opened) <= set(REQUIREMENTS)


def test_every_requirement_has_a_test_or_names_the_part_that_closes_it():
    opened = {identifier for part in OPEN.values() for identifier in part}
    without = set(REQUIREMENTS) - set(named()) - opened
    assert not without, "no test names: " + ", ".join(sorted(without))


def test_every_named_requirement_exists():
    unknown = {identifier: places for identifier, places in named().items() if identifier not in REQUIREMENTS}
    assert not unknown


def _names_one(node: ast.FunctionDef) -> bool:
    return any("requirement" in ast.unparse(decorator) for decorator in node.decorator_list)


def test_every_test_of_the_contract_names_its_requirement():
    without = []
    for file in set(Path(__file__).parent.glob("test_*.py")) - {Path(__file__)}:
        tree = ast.parse(file.read_text())
        if any(isinstance(node, ast.Assign) and "requirement" in ast.unparse(node.value) for node in tree.body):
            continue
        tests = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")]
        without += [f"{file.name}:{node.lineno} {node.name}" for node in tests if not _names_one(node)]
    assert not without
