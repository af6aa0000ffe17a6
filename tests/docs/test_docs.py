"""What the product has is written down: settings, commands, problems, tools, decisions."""

import json
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote

import pytest

from muniment.cli import main as command
from muniment.config import SETTINGS
from muniment.kernel import problems

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
DOCS = "\n".join(file.read_text() for file in [*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"])


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_every_setting_stands_in_the_readme_with_its_default_and_help(setting):
    assert setting.help.endswith(".")
    assert f"| `{setting.variable}` | " in README
    assert setting.help in README


def test_every_setting_has_an_annotation_for_whoever_reads_it():
    from muniment.config import Config

    assert set(Config.__annotations__) == {setting.name for setting in SETTINGS}


def test_every_command_stands_in_the_readme_and_helps():
    for name, entry in command.commands.items():
        assert re.search(rf"\| `{name}[ `]", README), f"{name} is not in the README: run checks/readme.py"
        assert entry.help


def test_the_generated_parts_of_the_readme_are_as_the_code_has_them():
    done = subprocess.run([sys.executable, ROOT / "checks" / "readme.py", "--check"], check=False)
    assert done.returncode == 0, "run: .venv/bin/python checks/readme.py"


def test_every_error_code_is_explained():
    design = (ROOT / "docs" / "API-DESIGN.md").read_text()
    for code in {kind.code for kind in problems.Problem.__subclasses__()}:
        assert f"`{code}`" in design


def test_every_decision_is_listed_and_has_its_four_parts():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for file in folder.glob("0*.md"):
        assert f"({file.name})" in index
        text = file.read_text()
        for part in ("Context", "Decision", "Consequences", "Alternatives"):
            assert f"## {part}" in text, (file.name, part)


def test_every_link_between_documents_leads_somewhere():
    for file in [*(ROOT / "docs").rglob("*.md"), *ROOT.glob("*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", file.read_text()):
            assert (file.parent / target).exists(), f"{file.name}: {target}"


def test_the_rooms_of_the_architecture_are_those_of_the_code():
    drawn = set(re.findall(r"(?m)^  (\w+)/ ", (ROOT / "docs" / "ARCHITECTURE.md").read_text()))
    rooms = {folder.name for folder in (ROOT / "src" / "muniment").iterdir() if (folder / "__init__.py").exists()}
    assert rooms <= drawn, "a room that ARCHITECTURE does not know"


@pytest.mark.requirement("cli.demo")
def test_the_quick_start_of_the_readme_shows_what_the_demo_answers(demo):
    """Compare the shown answers with the live ones; line breaks were added for the eye."""
    consoles = "\n".join(re.findall(r"(?s)```console\n(.*?)```", README))
    shown = re.findall(r"(?sm)^\$ curl '?([^'\n]+)'?\n(.*?)(?=\n\n|\Z)", consoles)
    assert len(shown) == 4
    for address, answer in shown:
        live = demo.get(quote(address.removeprefix("http://127.0.0.1:8000"), safe="/?&=,%")).json()
        assert json.loads(answer.replace("\n ", "")) == live, address
