"""What the project's own checks find and what they let pass."""

import runpy
from pathlib import Path

import pytest

CHECKS = Path(__file__).parents[2] / "checks"


@pytest.fixture
def faults_of(tmp_path):
    """Let a check of house.py examine one file of the product with this text."""
    house = runpy.run_path(str(CHECKS / "house.py"))

    def examined(check, text):
        file = tmp_path / "src" / "module.py"
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
        house[check].__globals__["ROOT"] = tmp_path
        return list(house[check]([file]))

    return examined


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
def test_a_waiver_passes_with_a_reason_beside_it_or_above(faults_of, text):
    assert faults_of("bare_waivers", text) == []


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
def test_a_waiver_without_a_reason_is_found_with_its_place(faults_of, waiver):
    assert faults_of("bare_waivers", f"x = 1  # a word\nimport brush  {waiver}\n") == [
        f"src/module.py:2: no reason is given for {waiver}"
    ]


@pytest.mark.parametrize(
    "text",
    [
        "names = [row.name for row in rows if row.listed]\n",
        "lists = {key: [row.name for row in rows] for key, rows in groups.items()}\n",
        "price = 0 if free else cost\n",
        "if match := pattern.match(text):\n    kept.pop(0)\n",
    ],
)
def test_an_expression_that_does_one_thing_passes(faults_of, text):
    assert faults_of("dense_expressions", text) == []


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("x = [y for row in rows if (y := row.name)]\n", "an assignment within a comprehension"),
        ("x = [row.name if row.name else 1 for row in rows]\n", "a conditional expression within a comprehension"),
        ("x = {row: ids.pop(0) for row in rows}\n", "a pop within a comprehension"),
        ("x = (\n    1 if a\n    else 2\n)\n", "a conditional expression over more than one line"),
        ("x = 1 if a else 2 if b else 3\n", "a conditional expression within another"),
        ("x = [y for y in z] if z else None\n", "a comprehension within a conditional expression"),
    ],
)
def test_an_expression_that_does_two_things_is_found(faults_of, text, fault):
    (found,) = faults_of("dense_expressions", text)
    assert fault in found


HASH = "    --hash=sha256:" + "a" * 64


@pytest.mark.parametrize(
    "lock",
    [
        f"alpha==1.0 \\\n{HASH}\n",
        f"# made by a tool\nalpha==1.0 ; python_version < '4' \\\n{HASH} \\\n{HASH}\n    # via beta\n",
        f"alpha[extra]==1.0 \\\n{HASH}\n",
    ],
)
def test_a_lock_with_one_version_and_a_hash_for_each_line_passes(lock):
    assert list(runpy.run_path(str(CHECKS / "house.py"))["faults_of_lock"]("x.lock", lock)) == []


@pytest.mark.parametrize(
    ("lock", "fault"),
    [
        ("alpha==1.0\n", "no hash: alpha==1.0"),
        ("alpha==1.0 \\\n    --hash=md5:0123\n", "no hash"),
        (f"alpha>=1.0 \\\n{HASH}\n", "not pinned"),
        (f"alpha==1.* \\\n{HASH}\n", "not pinned"),
        (f"alpha \\\n{HASH}\n", "not pinned"),
        ("alpha @ https://files.example/alpha.whl\n", "not pinned"),
        ("-e .\n", "not pinned"),
        ("--extra-index-url https://packages.example/\n", "not pinned"),
    ],
)
def test_a_lock_with_anything_else_is_a_fault(lock, fault):
    (found,) = runpy.run_path(str(CHECKS / "house.py"))["faults_of_lock"]("x.lock", lock)
    assert fault in found


@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("\t$(PYTHON) -m pip install --require-hashes -r some.lock\n", 0),
        ("RUN /opt/bin/pip install --no-deps --no-index /wheel/x.whl\n", 0),
        ("RUN pip install \\\n    requests\n", 1),
        ("\tnpm install left-pad\n", 1),
    ],
)
def test_an_installation_without_hashes_is_a_fault(tmp_path, command, count):
    house = runpy.run_path(str(CHECKS / "house.py"))
    house["loose_installs"].__globals__["ROOT"] = tmp_path
    file = tmp_path / "Makefile"
    file.write_text(command)
    assert len(list(house["loose_installs"]([file]))) == count
