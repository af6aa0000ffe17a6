"""The check that names raise statements which no test executed."""

import runpy
from pathlib import Path

import pytest
from coverage import CoverageData

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
def check(tmp_path, capsys):
    """Run the check over a feature of one module, of which *lines* were executed."""

    def run(*lines, allowed=()):
        data = CoverageData(str(tmp_path / ".coverage"))
        data.erase()
        data.add_lines({str(module): lines})
        data.write()
        names = loaded["main"].__globals__
        names.update(ROOT=tmp_path, FEATURES=("feature",), NEVER_EXECUTED=dict.fromkeys(allowed, "why"))
        code = loaded["main"]()
        return code, capsys.readouterr().out.splitlines()

    module = tmp_path / "feature" / "module.py"
    module.parent.mkdir()
    module.write_text(MODULE)
    loaded = runpy.run_path(str(CHECK))
    return run


def test_a_statement_is_executed_when_any_of_its_lines_is(check):
    assert check(3, 4, 6, 9, 11) == (0, [])


def test_each_statement_that_no_test_executes_is_named_with_its_place(check):
    assert check(3, 4) == (
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
    assert check(3, 4, 8, allowed=allowed) == (0, [])
    assert check(3, 4, 8, 11, allowed=allowed) == (
        1,
        ["checks/refusals.py: a test executes it, or it is gone: feature/module.py: raise TypeError"],
    )
