"""
Check what linters do not: names, machine-specific text, environment access, waivers, dense expressions, stale locks.

Prints each fault with its place and exits with 1 if there is one. Reads committed files only.
"""

import ast
import re
import subprocess
import sys
import tokenize
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SIBLINGS = [{"documents", "credits", "oauth", "searches"}, {"api", "mcp", "web"}]
"""Packages that share a floor."""
NAMED_BY_DJANGO = {"Meta", "DatabaseWrapper"}
ENVIRONMENT_READERS = {"src/muniment/config.py"}
EMPTY_NAMES = {"utils", "helpers", "common", "manager", "service", "base"}
DJANGO_NAMES = {"src/muniment/store/sqlite/base.py", "src/muniment/store/postgresql/base.py"}
"""Django finds a database backend by this name."""

# Written so that this file does not match itself.
FOREIGN = [
    (re.compile(r"(?<![\w.<{])/(?:work|tmp|root)/"), "a path of one machine"),
    (re.compile(r"\.\./shared\b"), "a path of one machine"),
    (
        re.compile(r"https?://[\w.-]*(?:pypi|npmjs|pythonhosted|artifactory|nexus)[\w.-]*/"),
        "the host of a package index",
    ),
    (re.compile(r"\b(?:10|192\.168)\.\d+\.\d+\.\d+:\d+/(?:simple|npm)"), "the host of a package index"),
    (re.compile(r'"resolved"\s*:'), "the host of a package index"),
    (re.compile(r"\b(?:[T]ODO|[F]IXME|[X]XX)\b"), "unfinished work"),
]
NAMES_THE_SAMPLE = {"Makefile"}
"""Files that may name the default folder of the sample data."""
TEXT = {".py", ".md", ".toml", ".html", ".css", ".js", ".json", ".lock", ".txt", ".yml", ".ts", ".svg", ""}
TEXT |= {".env", ".service", ".timer", ".yaml"}
WAIVER = re.compile(
    r"# *(?:type: *ignore(?:\[[^\]]*\])?|(?:ruff: *)?noqa(?:: *[A-Z]+\d+(?:[, ]+[A-Z]+\d+)*)?)(?![\w-])", re.IGNORECASE
)
"""A directive to mypy or ruff; any other words of the comment are its reason."""


def committed() -> list[Path]:
    """Return the files of the repository."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout  # noqa: S607 - git of this machine
    return [ROOT / name for name in names.decode().split("\0") if name and (ROOT / name).is_file()]


def empty_names(files: list[Path]) -> Iterator[str]:
    """Find modules and folders whose name says nothing about their content."""
    for file in files:
        place = file.relative_to(ROOT)
        if file.suffix != ".py" or str(place) in DJANGO_NAMES:
            continue
        if file.stem in EMPTY_NAMES or file.parent.name in EMPTY_NAMES:
            yield f"{place}: the name does not describe the content"


def doubled_class_names(files: list[Path]) -> Iterator[str]:
    """Find class names with two meanings on one floor."""
    source = ROOT / "src" / "muniment"
    modules = [
        file
        for file in files
        if file.suffix == ".py" and source in file.parents and file.parent.name != "migrations"
        if file.name != "__init__.py"
    ]
    classes: dict[tuple[str, str], list[str]] = defaultdict(list)
    for file in modules:
        package = file.relative_to(source).parts[0]
        floor = next((" ".join(sorted(floor)) for floor in SIBLINGS if package in floor), package)
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.ClassDef) and node.name not in NAMED_BY_DJANGO:
                classes[floor, node.name].append(str(file.relative_to(ROOT)))
    for (_, name), places in classes.items():
        if len(places) > 1:
            yield f"{places[1]}: the class {name} has another meaning in {places[0]}"


def foreign_words(files: list[Path]) -> Iterator[str]:
    """Find paths of one machine, package index hosts and unfinished work."""
    for file in files:
        if file.suffix not in TEXT or str(file.relative_to(ROOT)) in NAMES_THE_SAMPLE:
            continue
        for number, line in enumerate(file.read_text(errors="replace").splitlines(), 1):
            for pattern, what in FOREIGN:
                if pattern.search(line):
                    yield f"{file.relative_to(ROOT)}:{number}: {what}: {line.strip()[:90]}"


def environment_readers(files: list[Path]) -> Iterator[str]:
    """Find code of the product outside config.py that reads the environment."""
    for file in files:
        place = str(file.relative_to(ROOT))
        if file.suffix != ".py" or not place.startswith("src/") or place in ENVIRONMENT_READERS:
            continue
        tree = ast.parse(file.read_text())
        for node in set(ast.walk(tree)) - set(_names_of_settings(tree)):
            read = (isinstance(node, ast.Attribute) and node.attr in {"environ", "getenv", "environb"}) or (
                isinstance(node, ast.ImportFrom)
                and node.module == "os"
                and any(alias.name in {"environ", "getenv"} for alias in node.names)
            )
            if read:
                yield f"{place}:{node.lineno}: only config.py reads the environment"


def bare_waivers(files: list[Path]) -> Iterator[str]:
    """Find mypy and ruff waivers without a reason, either next to them or on the line above."""
    for file in files:
        if file.suffix != ".py" or not WAIVER.search(file.read_text()):
            continue
        with tokenize.open(file) as source:
            comments = [token for token in tokenize.generate_tokens(source.readline) if token.type == tokenize.COMMENT]
        words = {token.start[0]: re.search(r"\w", WAIVER.sub("", token.string)) for token in comments}
        alone = {token.start[0] for token in comments if token.line.lstrip().startswith("#")}
        for token in comments:
            number = token.start[0]
            reasoned = words[number] or (number - 1 in alone and words[number - 1])
            if WAIVER.search(token.string) and not reasoned:
                yield f"{file.relative_to(ROOT)}:{number}: no reason is given for {token.string}"


COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def dense_expressions(files: list[Path]) -> Iterator[str]:
    """Find comprehensions and conditional expressions of the product that do more than one thing."""
    for file in files:
        place = file.relative_to(ROOT)
        if file.suffix != ".py" or place.parts[0] != "src" or "migrations" in place.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if fault := _density(node):
                yield f"{place}:{node.lineno}: {fault}: write it in steps"  # type: ignore[attr-defined] # it is an expression


def _density(node: ast.AST) -> str:
    """Return what makes an expression hard to read; empty for none, and for every other node."""
    within = [inner for inner in ast.walk(node) if inner is not node]
    holds_condition = any(isinstance(inner, ast.IfExp) for inner in within)
    fault = ""
    if isinstance(node, COMPREHENSIONS):
        if any(isinstance(inner, ast.NamedExpr) for inner in within):
            fault = "an assignment within a comprehension"
        elif holds_condition:
            fault = "a conditional expression within a comprehension"
        elif any(isinstance(inner, ast.Attribute) and inner.attr == "pop" for inner in within):
            fault = "a pop within a comprehension"
    elif isinstance(node, ast.IfExp):
        if node.lineno != node.end_lineno:
            fault = "a conditional expression over more than one line"
        elif holds_condition:
            fault = "a conditional expression within another"
        elif any(isinstance(inner, COMPREHENSIONS) for inner in within):
            fault = "a comprehension within a conditional expression"
    return fault


def _names_of_settings(tree: ast.Module) -> Iterator[ast.AST]:
    """Find where DJANGO_SETTINGS_MODULE is set, which Django reads from the environment only."""
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and node.func.attr == "setdefault"
            and [ast.unparse(argument) for argument in node.args[:1]] == ["'DJANGO_SETTINGS_MODULE'"]
        ):
            yield node.func.value


def stale_locks() -> Iterator[str]:
    """Find requirements of pyproject.toml without a matching version in the locks."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    runtime = project["project"]["dependencies"]
    extras = project["project"].get("optional-dependencies", {})
    everything = [*runtime, *project["dependency-groups"]["dev"], *(one for many in extras.values() for one in many)]
    shipped = [*runtime, *(one for many in extras.values() for one in many)]
    groups = project["dependency-groups"]
    for name, wanted in (
        ("runtime.lock", runtime),
        ("dev.lock", everything),
        ("container.lock", shipped),
        ("build.lock", groups["build"]),
        ("deploy.lock", groups["deploy"]),
        ("cluster.lock", groups["cluster"]),
        ("clients.lock", groups["clients"]),
        ("witness.lock", groups["witness"]),
    ):
        text = (ROOT / "requirements" / name).read_text()
        pinned = {
            canonicalize_name(match[1]): match[2]
            for match in re.finditer(r"^([\w.-]+)==([^\s;\\]+)", text, re.MULTILINE)
        }
        for line in wanted:
            requirement = Requirement(line)
            version = pinned.get(canonicalize_name(requirement.name))
            if version is None or not requirement.specifier.contains(version, prereleases=True):
                yield f"requirements/{name}: {line} is not pinned ({version or 'absent'}): run make lock"


def loose_locks() -> Iterator[str]:
    """Find lines of the locks without one exact version, without a hash, or with the address of an index."""
    for lock in sorted((ROOT / "requirements").glob("*.lock")):
        yield from (f"requirements/{fault}" for fault in faults_of_lock(lock.name, lock.read_text()))


def faults_of_lock(name: str, text: str) -> Iterator[str]:
    logical = re.sub(r"\\\n\s*", " ", text)
    for line in (line.strip() for line in logical.splitlines()):
        if not line or line.startswith("#"):
            continue
        if not re.match(r"[\w.-]+(?:\[[\w,.-]+\])?==[^\s;*]+(?:\s|;|$)", line):
            yield f"{name}: not pinned to one version: {line[:80]}"
        elif not re.search(r"--hash=sha256:[0-9a-f]{64}(?:\s|$)", line):
            yield f"{name}: no hash: {line[:80]}"


def loose_installs(files: list[Path]) -> Iterator[str]:
    """Find commands that install packages whose hashes are not checked."""
    for file in files:
        if file.name not in {"Makefile", "Containerfile"} and file.parent.name not in {".ci", "checks", "systemd"}:
            continue
        logical = re.sub(r"\\\n\s*", " ", file.read_text(errors="replace"))
        for line in logical.splitlines():
            for command in re.split(r"&&|;", line):
                installs = re.search(r"\bpip3?\b.*\binstall\b|\bnpm (?:install|i)\b", command)
                if installs and not re.search(r"--require-hashes|--no-deps|--no-index|#", command):
                    yield f"{file.relative_to(ROOT)}: installs without hashes: {command.strip()[:90]}"


def main() -> int:
    """Run every check and print what it found."""
    files = committed()
    faults = [
        *empty_names(files),
        *doubled_class_names(files),
        *foreign_words(files),
        *environment_readers(files),
        *bare_waivers(files),
        *dense_expressions(files),
        *stale_locks(),
        *loose_locks(),
        *loose_installs(files),
    ]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
