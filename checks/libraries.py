"""
Check how the product uses libraries: declared, within tested versions, and by their public names.

- Every library that a module imports is a dependency, and every dependency has a lower and an upper bound: the wheel
  permits only versions like those that were tested.
- A private name is one that begins with an underscore, is in a package called ``internal``, or is missing from the
  ``__all__`` of its module; it may change in any version. PRIVATE lists those in use, each with its reason, and the
  versions that it binds the wheel to.

Prints each fault with its place and exits with 1 if there is one. Reads sources only: it imports no library's modules.
"""

import ast
import functools
import importlib.metadata
import importlib.util
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "muniment"
STANDARD: Final = {"", "muniment", "compression", *sys.stdlib_module_names}
"""What no distribution brings; ``compression`` is part of Python from 3.14 on."""
LONGEST_CHAIN: Final = 12
"""Imports and bases that lead to a class; a circle ends there."""


class Waiver(NamedTuple):
    """Private names of a library, the versions that it binds the wheel to, and why they are used."""

    library: str
    versions: str
    reason: str
    names: frozenset[str]


ALLAUTH: Final = "allauth.account.internal.flows"
PRIVATE: Final = [
    Waiver(
        "django-allauth",
        "==65.22.1",
        "It offers no public way to note how a session authenticated, and to continue a form that waited for it.",
        frozenset(
            {
                f"{ALLAUTH}.login.record_authentication",
                f"{ALLAUTH}.reauthentication.STATE_SESSION_KEY",
                f"{ALLAUTH}.reauthentication.resume_request",
                "allauth.mfa.adapter.DefaultMFAAdapter._get_site_name",
                "allauth.account.views._password_reset.ConfirmPasswordResetCodeView._process",
            }
        ),
    ),
    Waiver(
        "uvicorn",
        "==0.54.0",
        "Connections are limited, and cached answers sent, before its own protocol makes a task of a request.",
        frozenset({"uvicorn.protocols.http.httptools_impl.HttpToolsProtocol._start_asgi_task"}),
    ),
    Waiver(
        "django",
        "<5.3",
        "Database backends, storages and tokens are made by overriding these; within a series, only faults are mended.",
        frozenset(
            {
                "django.contrib.auth.base_user.AbstractBaseUser._get_session_auth_hash",
                "django.contrib.auth.tokens.PasswordResetTokenGenerator._now",
                "django.contrib.auth.tokens.PasswordResetTokenGenerator._num_seconds",
                "django.contrib.messages.storage.session.SessionStorage._get",
                "django.contrib.messages.storage.session.SessionStorage._store",
                "django.contrib.sessions.backends.db.SessionStore._get_new_session_key",
                "django.contrib.sessions.backends.db.SessionStore._get_session",
                "django.contrib.sessions.backends.db.SessionStore._session_key",
                "django.core.cache.backends.db.DatabaseCache._base_set",
                "django.core.cache.backends.db.DatabaseCache._cull",
                "django.db.backends.base.base.BaseDatabaseWrapper._close",
                "django.db.backends.base.base.BaseDatabaseWrapper._commit",
                "django.db.backends.base.base.BaseDatabaseWrapper._rollback",
                "django.db.backends.sqlite3.base.DatabaseWrapper._start_transaction_under_autocommit",
                "django.db.models.base.Model._state",
            }
        ),
    ),
]


class Use(NamedTuple):
    """A name of a library where it is used."""

    name: str
    file: Path
    line: int


def imports(file: Path, tree: ast.Module) -> Iterator[Use]:
    """Yield the full names of what a module imports from libraries."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.partition(".")[0] not in STANDARD:
                yield Use(name, file, node.lineno)


def is_private(name: str) -> bool:
    """Return whether a dotted name is private by its own words, or by the ``__all__`` of its module."""
    for part in name.split("."):
        if part == "internal" or (part.startswith("_") and not part.startswith("__")):
            return True
    module, _, last = name.rpartition(".")
    offered = public_names(module) if module and not source_of(name) else None
    return offered is not None and last not in offered


@functools.cache
def source_of(module: str) -> Path | None:
    """Return the Python file of a module of a library, None if it has none. Nothing is imported."""
    top, *below = module.split(".")
    spec = importlib.util.find_spec(top)
    if spec is None or spec.origin is None:
        return None
    if not below:
        return Path(spec.origin) if spec.origin.endswith(".py") else None
    place = Path(spec.origin).parent.joinpath(*below)
    return next((file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()), None)


@functools.cache
def tree_of(module: str) -> ast.Module | None:
    file = source_of(module)
    return ast.parse(file.read_text()) if file else None


def public_names(module: str) -> set[str] | None:
    """Return the ``__all__`` of a module if it is a plain list; None if it declares none."""
    tree = tree_of(module)
    found: set[str] | None = None
    for node in tree.body if tree else []:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if [ast.unparse(target) for target in targets if target] != ["__all__"]:
            continue
        try:
            found = (found or set()) | set(ast.literal_eval(node.value))  # type: ignore[attr-defined]  # an assignment
        except ValueError:
            return None
    return found


def inherited(file: Path, tree: ast.Module) -> Iterator[Use]:
    """Yield private members of libraries' classes that a class of ours overrides or reads of itself."""
    known = imported_names("", tree)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ClassDef):
            continue
        private: dict[str, str] = {}
        for base in node.bases:
            root, dot, rest = ast.unparse(base).partition(".")
            full = f"{known.get(root, '')}{dot}{rest}"
            if full.partition(".")[0] not in STANDARD:
                private |= private_members(full)
        for member in sorted(set(members(node)) & private.keys()):
            yield Use(private[member], file, node.lineno)


@functools.cache
def private_members(name: str, depth: int = 0) -> dict[str, str]:
    """Return the private members of a library's class and its bases, by name, with the full name."""
    module, _, last = name.rpartition(".")
    tree = tree_of(module) if module else None
    if tree is None or depth > LONGEST_CHAIN:
        return {}
    elsewhere = imported_names(module, tree)
    if last in elsewhere:
        return private_members(elsewhere[last], depth + 1)
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == last:
            for base in map(ast.unparse, node.bases):
                found |= private_members(elsewhere.get(base, f"{module}.{base}"), depth + 1)
            found |= {member: f"{name}.{member}" for member in members(node) if re.match(r"_[^_]", member)}
    return found


def imported_names(module: str, tree: ast.Module) -> dict[str, str]:
    """Return the full names of what a module imports from others, by the name that it has here."""
    file = source_of(module)
    package = module if file is not None and file.name == "__init__.py" else module.rpartition(".")[0]
    found = {}
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and node.module:
            above = package.rsplit(".", node.level - 1)[0] + "." if node.level else ""
            found |= {alias.asname or alias.name: f"{above}{node.module}.{alias.name}" for alias in node.names}
    return found


def members(of: ast.ClassDef) -> Iterator[str]:
    """Yield the methods of a class, and what it reads or sets of itself."""
    for node in ast.walk(of):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and ast.unparse(node.value) in {"self", "cls", "super()"}:
            yield node.attr


def private_names(files: list[Path]) -> Iterator[str]:
    """Find uses of private names without a reason, and reasons without a use."""
    permitted = frozenset[str]().union(*(waiver.names for waiver in PRIVATE))
    unused = set(permitted)
    for file in files:
        tree = ast.parse(file.read_text())
        private = [use for use in imports(file, tree) if is_private(use.name)]
        for use in [*private, *inherited(file, tree)]:
            unused.discard(use.name)
            if use.name not in permitted:
                yield f"{use.file.relative_to(ROOT)}:{use.line}: a private name of a library: {use.name}"
    yield from (f"checks/libraries.py: no module uses {name}" for name in sorted(unused))


def undeclared(files: list[Path], declared: set[str]) -> Iterator[str]:
    """Find imports of libraries that are no dependency: they are there only because another library needs them."""
    distributions = importlib.metadata.packages_distributions()
    for file in files:
        for use in imports(file, ast.parse(file.read_text())):
            owners = {canonicalize_name(owner) for owner in distributions.get(use.name.partition(".")[0], [])}
            if not owners & declared:
                yield f"{use.file.relative_to(ROOT)}:{use.line}: no dependency of pyproject.toml: {use.name}"


def loose_bounds(requirements: list[Requirement]) -> Iterator[str]:
    """Find requirements that permit versions that were never tested, or not those that a private name is bound to."""
    bound = {waiver.library: waiver.versions for waiver in PRIVATE}
    for each in requirements:
        kinds = {part.operator for part in each.specifier}
        if kinds not in ({"=="}, {">=", "<"}):
            yield f"pyproject.toml: a lower and an upper bound, or one version: {each}"
        wanted = bound.get(canonicalize_name(each.name))
        if wanted and wanted not in {str(part) for part in each.specifier}:
            yield f"pyproject.toml: {each.name}{wanted} is needed, because private names are used: {each}"


def main() -> int:
    """Run every check and print what it found."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    optional = [line for lines in project["optional-dependencies"].values() for line in lines]
    requirements = [Requirement(line) for line in [*project["dependencies"], *optional]]
    files = sorted(SOURCE.rglob("*.py"))
    declared = {canonicalize_name(each.name) for each in requirements}
    faults = [*private_names(files), *undeclared(files, declared), *loose_bounds(requirements)]
    for fault in faults:
        print(fault)
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
