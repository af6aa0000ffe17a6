"""What the project's own checks find and what they let pass."""

import runpy
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[2] / "checks"


@pytest.fixture
def bare_waivers(tmp_path):
    def found(text):
        file = tmp_path / "module.py"
        file.write_text(text)
        return list(house["bare_waivers"]([file]))

    house = runpy.run_path(str(CHECKS / "house.py"))
    house["bare_waivers"].__globals__["ROOT"] = tmp_path
    return found


@pytest.mark.parametrize(
    "text",
    [
        "import brush  # type: ignore[import-untyped]  # it ships no types\n",
        "import brush  # noqa: F401, E402 - it registers itself\n",
        "# It ships no types.\nimport brush  # type: ignore[import-untyped]\n",
        "import brush  # type: ignore[import-untyped]  # noqa: F401 - for its types, which it does not ship\n",
        "text = 'import brush  # noqa: F401'\n",
    ],
)
def test_a_waiver_passes_with_a_reason_beside_it_or_above(bare_waivers, text):
    assert bare_waivers(text) == []


@pytest.mark.parametrize(
    "waiver",
    [
        "# type: ignore",
        "# type: ignore[import-untyped, misc]",
        "# noqa",
        "# noqa: F401,E402",
        "# noqa: F401 -",
        "# type: ignore[import-untyped]  # noqa: F401",
    ],
)
def test_a_waiver_without_a_reason_is_found_with_its_place(bare_waivers, waiver):
    assert bare_waivers(f"x = 1  # a word\nimport brush  {waiver}\n") == [
        f"module.py:2: no reason is given for {waiver}"
    ]
