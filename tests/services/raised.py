"""
Record which ``raise`` statements of the features run, for ``checks/refusals.py``.

A plugin for pytest, loaded before anything else: ``PYTHONPATH=tests pytest -p services.raised``. It marks each
statement when its module is compiled, so that what does not raise costs nothing. Measuring every line (coverage) takes
70 % more CPU time of the tests of the features.
"""

import ast
import builtins
import importlib.abc
import json
import os
import shutil
import sys
import tomllib
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
RECORDS: Final = ROOT / ".raised"
MARK: Final = "__raises__"
_features = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["coverage"]["run"]["source"]
FOLDERS: Final = tuple(f"{ROOT / each}{os.sep}" for each in _features)
_raised: set[tuple[str, int]] = set()


class _Marking(ast.NodeTransformer):
    """Puts a call that records the line before each ``raise``."""

    def __init__(self, file: str) -> None:
        self._file = file

    def visit_Raise(self, node: ast.Raise) -> list[ast.stmt]:
        place = ast.Tuple([ast.Constant(self._file), ast.Constant(node.lineno)], ast.Load())
        call = ast.Expr(ast.Call(ast.Name(MARK, ast.Load()), [place], []))
        return [ast.fix_missing_locations(ast.copy_location(call, node)), node]


def marked(source: bytes | str, file: str) -> Any:
    return compile(_Marking(file).visit(ast.parse(source, file)), file, "exec", dont_inherit=True)


class MarkingLoader(SourceFileLoader):
    """Compiles a module with marks, without the bytecode that is kept beside it."""

    def get_code(self, fullname: str) -> Any:
        file = self.get_filename(fullname)
        return marked(self.get_data(file), file)


class _Finder(importlib.abc.MetaPathFinder):
    def find_spec(self, fullname: str, path: Any, target: Any = None) -> ModuleSpec | None:
        if path is None or not fullname.startswith("muniment."):
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin is None or not spec.origin.startswith(FOLDERS):
            return None
        spec.loader = MarkingLoader(fullname, spec.origin)
        return spec


builtins.__dict__[MARK] = _raised.add
sys.meta_path.insert(0, _Finder())


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        shutil.rmtree(RECORDS, ignore_errors=True)
        RECORDS.mkdir()


def pytest_unconfigure() -> None:
    """Write what this process recorded: pairs of a file and a line."""
    (RECORDS / f"{os.getpid()}.json").write_text(json.dumps(sorted(_raised)))
