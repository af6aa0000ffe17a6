"""The documents match the product: settings, commands, error codes, links, pictures, decisions and the first look."""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from urllib.parse import quote, unquote

import pytest

from muniment import __version__
from muniment.cli import main as command
from muniment.config import SETTINGS
from muniment.kernel import problems
from muniment.schema.declared import declarations
from muniment.web.views.operate import fields

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text()
REFERENCE = (ROOT / "docs" / "REFERENCE.md").read_text()
DOCUMENTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.md")]
LINK = re.compile(r"\]\(([^)\s]+)\)")


def anchors(text):
    """Return the anchors of a document's headings, formed as on code hosts."""
    prose = re.sub(r"(?ms)^```.*?^```", "", text)
    titles = re.findall(r"(?m)^#+ (.+)$", prose)
    return {
        re.sub(r"[^\w\- ]", "", re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", one)).lower().replace(" ", "-") for one in titles
    }


def test_the_readme_has_at_most_120_lines():
    assert len(README.splitlines()) <= 120


@pytest.mark.parametrize("setting", SETTINGS, ids=lambda setting: setting.name)
def test_the_reference_lists_every_setting_with_its_default_and_help(setting):
    assert setting.help.endswith(".")
    default = f"`{setting.default}`" if setting.default else "–"
    assert f"| `{setting.variable}` | {default} | {setting.help} |" in REFERENCE


def test_the_reference_lists_every_command_and_each_has_help():
    for name, entry in command.all().items():
        for member in getattr(entry, "commands", {"": entry}):
            assert f"| `{f'{name} {member}'.strip()}` |" in REFERENCE
        assert entry.help


def test_the_generated_tables_of_the_reference_are_up_to_date():
    done = subprocess.run([sys.executable, ROOT / "checks" / "reference.py", "--check"], check=False)
    assert done.returncode == 0, "run: make reference"


def test_every_setting_and_command_that_a_document_names_exists():
    variables = {setting.variable for setting in SETTINGS}
    # Of the suite and its examples, not of the product.
    variables |= {"MUNIMENT_SAMPLE_DATA", "MUNIMENT_REFERENCE_BENCH", "MUNIMENT_SITE"}
    variables |= {"MUNIMENT_API"}  # what a plugin says of itself
    for file in DOCUMENTS:
        text = file.read_text()
        unknown = set(re.findall(r"MUNIMENT_[A-Z_]*[A-Z](?!\w|\*)", text)) - variables
        assert not unknown, file.name
        for name in re.findall(
            r"(?<![\w/.])muniment ([a-z]+)(?![\w-])", "\n".join(re.findall(r"`[^`]+`|(?s:```.*?```)", text))
        ):
            assert name in command.all(), f"{file.name}: muniment {name}"


def test_every_make_target_that_a_document_names_exists():
    targets = set(re.findall(r"(?m)^([a-z-]+):", (ROOT / "Makefile").read_text()))
    for file in DOCUMENTS:
        named = set(re.findall(r"(?m)(?:`|^)make ([a-z-]+)", file.read_text()))
        assert named <= targets, (file.name, named - targets)


def test_every_relative_link_leads_to_a_file_and_every_anchor_to_a_heading():
    for file in DOCUMENTS:
        for target in LINK.findall(file.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = unquote(target).partition("#")
            other = file.parent / path if path else file
            assert other.exists(), f"{file.relative_to(ROOT)}: {target}"
            if anchor:
                assert anchor in anchors(other.read_text()), f"{file.relative_to(ROOT)}: {target}"


def test_every_source_file_that_a_document_names_exists():
    folders = "src|tests|checks|bench|deploy|docs|requirements"
    roots = [ROOT, ROOT / "src" / "muniment"]
    rooms = "|".join(folder.name for folder in (ROOT / "src" / "muniment").iterdir() if folder.is_dir())
    for file in DOCUMENTS:
        for named in re.findall(
            rf"`((?:{folders}|{rooms})/[\w./-]+\.(?:py|html|yaml|md|json|lock|css))`", file.read_text()
        ):
            assert any((root / named).exists() for root in roots), f"{file.relative_to(ROOT)}: {named}"


def test_every_log_line_that_a_document_names_is_written():
    source = "\n".join(file.read_text() for file in (ROOT / "src" / "muniment").rglob("*.py"))
    named = re.findall(r"(?m)^\| `([a-z][^`]+)` \|", (ROOT / "docs" / "BUYING-CREDITS.md").read_text())
    named += re.findall(r"`(language model [^`]+)`", (ROOT / "docs" / "LANGUAGE-MODEL.md").read_text())
    assert len(named) == 7
    for line in named:
        assert line in source


def test_no_document_uses_an_outdated_phrase():
    phrases = re.compile(r"(?i)\b(?:whoever|nobody|somebody|anew|for ever|of old|goes on|express lane)\b")
    for file in DOCUMENTS:
        assert not (found := phrases.findall(file.read_text())), (file.name, found)


def test_the_pictures_of_the_readme_are_small_and_none_is_left_over():
    shown = {ROOT / target for target in re.findall(r"!\[[^]]+\]\(([^)]+)\)", README)}
    assert len(shown) >= 2
    for picture in shown:
        assert picture.read_bytes().startswith(b"\x89PNG")
        assert picture.stat().st_size < 300_000
    assert shown == set((ROOT / "docs" / "pictures").iterdir())


def test_the_changelog_begins_with_the_version_of_the_package():
    version = re.findall(r"(?m)^## \[?(\d[^\]\s]*)", (ROOT / "CHANGELOG.md").read_text())[0]
    assert version == tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"] == __version__


def test_every_error_code_is_explained():
    design = (ROOT / "docs" / "API-DESIGN.md").read_text()
    for code in {kind.code for kind in problems.Problem.__subclasses__()}:
        assert f"`{code}`" in design


def test_every_decision_is_listed_by_its_title_and_has_its_four_parts():
    folder = ROOT / "docs" / "decisions"
    index = (folder / "README.md").read_text()
    for file in folder.glob("0*.md"):
        text = file.read_text()
        number, title = re.match(r"# (\d+)\. (.+)\n", text).groups()
        assert f"{number}. [{title}]({file.name})" in index
        assert file.name.startswith(f"{int(number):04}-")
        assert re.findall(r"(?m)^## (.+)$", text) == ["Context", "Decision", "Consequences", "Alternatives"], file.name


def test_the_packages_of_the_architecture_are_those_of_the_code():
    source = ROOT / "src" / "muniment"
    drawn = []
    for indent, name in re.findall(r"(?m)^(  |    )(\w+)/ ", (ROOT / "docs" / "ARCHITECTURE.md").read_text()):
        drawn.append(
            (source if indent == "  " else drawn[-1] if drawn[-1].parent == source else drawn[-1].parent) / name
        )
    assert all((folder / "__init__.py").exists() for folder in drawn), drawn
    packages = {folder for folder in source.iterdir() if (folder / "__init__.py").exists()}
    assert packages == {folder for folder in drawn if folder.parent == source}


@pytest.mark.requirement("cli.demo")
def test_the_quick_start_of_the_readme_shows_what_the_demo_answers(demo):
    """Compare the shown answers with the live ones; line breaks are added for readability."""
    consoles = "\n".join(re.findall(r"(?s)```console\n(.*?)```", README))
    shown = re.findall(r"(?sm)^\$ curl '?([^'\n]+)'?\n(.*?)(?=\n\n|\Z)", consoles)
    assert len(shown) == 2
    for address, answer in shown:
        live = demo.get(quote(address.removeprefix("http://127.0.0.1:8000"), safe="/?&=,%")).json()
        assert json.loads(answer.replace("\n ", "")) == live, address


def test_every_test_that_the_documents_name_exists():
    named = {name for file in DOCUMENTS for name in re.findall(r"`(test_[a-z0-9_]+)`", file.read_text())}
    files = (ROOT / "tests").rglob("test_*.py")
    defined = {name for file in files for name in re.findall(r"^ *def (test_\w+)", file.read_text(), re.MULTILINE)}
    assert named
    assert named - defined == set()


def test_every_kind_of_declared_field_has_its_name_in_the_console_and_its_line_in_the_docs():
    assert set(declarations.KINDS) == set(fields.KINDS)
    text = (ROOT / "docs" / "FIELDS.md").read_text()
    assert [kind for kind in declarations.KINDS if f"`{kind}`" not in text] == []
