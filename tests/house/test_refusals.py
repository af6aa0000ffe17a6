"""The check that names raise statements which no test executed."""

import builtins
import contextlib
import json
import runpy
from pathlib import Path

import pytest

from services import raised

CHECK = Path(__file__).parents[2] / "checks" / "refusals.py"
MODULE = """
def refuse(kind):
    if kind == "one":
        raise ValueError(kind)
    try:
        int(kind)
    except ValueError:
        raise KeyError(
            kind,
        ) from None
    raise TypeError
"""


@pytest.fixture
def check(tmp_path, capsys, monkeypatch):
    """Run the check over a feature of one module, whose function was called with *kinds*."""

    def run(*kinds, allowed=()):
        executed = set()
        monkeypatch.setattr(builtins, raised.MARK, executed.add, raising=False)
        names = {}
        exec(raised.marked(MODULE, str(module)), names)
        for kind in kinds:
            with contextlib.suppress(ValueError, KeyError, TypeError):
                names["refuse"](kind)
        records = tmp_path / ".raised"
        records.mkdir(exist_ok=True)
        (records / "1.json").write_text(json.dumps(sorted(executed)))
        names = loaded["main"].__globals__
        names.update(ROOT=tmp_path, FEATURES=("feature",), NEVER_EXECUTED=dict.fromkeys(allowed, "why"))
        code = loaded["main"]()
        return code, capsys.readouterr().out.splitlines()

    module = tmp_path / "feature" / "module.py"
    module.parent.mkdir()
    module.write_text(MODULE)
    loaded = runpy.run_path(str(CHECK))
    return run


def test_a_statement_that_ran_in_any_process_is_executed(check, tmp_path):
    assert check("one", "two") == (1, ["feature/module.py:11: no test executes: raise TypeError"])
    (tmp_path / ".raised" / "2.json").write_text(json.dumps([[str(tmp_path / "feature" / "module.py"), 11]]))
    assert check("one", "two") == (0, [])


def test_each_statement_that_no_test_executes_is_named_with_its_place(check):
    assert check("one") == (
        1,
        [
            "feature/module.py:8: no test executes: raise KeyError(kind) from None",
            "feature/module.py:11: no test executes: raise TypeError",
        ],
    )


def test_a_module_that_no_test_imports_is_named_whole(check):
    assert len(check()[1]) == 3


def test_an_exception_is_needed_or_goes(check):
    allowed = ["feature/module.py: raise TypeError"]
    assert check("one", "two", allowed=allowed) == (0, [])
    assert check("one", "two", "3", allowed=allowed) == (
        1,
        ["checks/refusals.py: a test executes it, or it is gone: feature/module.py: raise TypeError"],
    )


def test_a_marked_module_raises_as_its_source_says():
    names = {}
    exec(raised.marked(MODULE, "module.py"), {**names, raised.MARK: lambda _: None}, names)
    with pytest.raises(TypeError) as refusal:
        names["refuse"]("3")
    assert refusal.traceback[-1].lineno + 1 == 11
