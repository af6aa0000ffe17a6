"""
Check that the tests executed every ``raise`` statement of the features.

Reads what ``pytest -p services.raised`` recorded, prints each statement that was never executed, and ends with 1 when
there is one.
"""

import ast
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
FEATURES = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["source"]
NEVER_EXECUTED: dict[str, str] = {}
"""Why no test can execute a statement, by ``file: statement``. Prefer to delete it."""


def refusals(file: Path) -> Iterator[ast.Raise]:
    """Yield the raise statements of a module, in the order of their lines."""
    found = (node for node in ast.walk(ast.parse(file.read_text())) if isinstance(node, ast.Raise))
    yield from sorted(found, key=lambda node: node.lineno)


def never_executed(executed: set[tuple[str, int]], files: list[Path]) -> Iterator[tuple[Path, ast.Raise]]:
    """Yield each raise statement of *files* that was not executed."""
    for file in files:
        for node in refusals(file):
            if (str(file), node.lineno) not in executed:
                yield file, node


def main() -> int:
    """Print the statements that no test executed, and the exceptions that are not needed."""
    records = (ROOT / ".raised").glob("*.json")
    executed = {(file, line) for record in records for file, line in json.loads(record.read_text())}
    files = [file for feature in FEATURES for file in sorted((ROOT / feature).rglob("*.py"))]
    unused, faults = set(NEVER_EXECUTED), 0
    for file, node in never_executed(executed, files):
        statement = f"{file.relative_to(ROOT)}: {ast.unparse(node)}"
        if statement in NEVER_EXECUTED:
            unused.discard(statement)
            continue
        faults += 1
        print(f"{file.relative_to(ROOT)}:{node.lineno}: no test executes: {ast.unparse(node)}")
    for statement in sorted(unused):
        faults += 1
        print(f"checks/refusals.py: a test executes it, or it is gone: {statement}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
