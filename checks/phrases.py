"""
Texts of features that pages show through a variable: those of Problems, faults, losses and findings.

They are the arguments of the calls in :data:`CALLS`, written in place, or in a name that the module assigns or imports;
and those of phrases, wherever these are.
"""

import ast
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

SOURCE: Final = Path(__file__).parents[1] / "src" / "muniment"
_PROBLEM: Final = (0, 1)
_FAULT: Final = (1,)
CALLS: Final = {
    **dict.fromkeys(
        ("BadRequest", "NotFound", "Unauthorized", "Forbidden", "Conflict", "LimitReached", "TooLarge", "TooMany"),
        _PROBLEM,
    ),
    **dict.fromkeys(("Unavailable", "Refused", "NotAPicture", "own_profile", "no_company"), _PROBLEM),
    **dict.fromkeys(
        ("BadFields", "read_fields", "Fault", "ChoiceFault", "Breach", "refuse", "require_account", "require_note"),
        _FAULT,
    ),
    **dict.fromkeys(("require_reviewer", "_require"), _FAULT),
    **dict.fromkeys(("warning", "good", "bad", "Verdict"), _PROBLEM),
    "_Words": _PROBLEM,
    **dict.fromkeys(
        ("NoteMissing", "Rejected", "NotATable", "LogoFault", "NotDrawable", "NotFetched", "Abandoned", "Postponed"),
        (0,),
    ),
    **dict.fromkeys(("marked", "Phrase", "ValueError"), (0,)),
    "Lost": (0, 1),
    "Noted": (1, 2),
    "Loss": (3, 5),
    "Finding": (0, 2),
    "InvalidSettings": (0,),
}
"""The places of the arguments that are texts, by the name of the function or class."""
_OF_DOCTOR: Final = {"Finding", "good", "bad", "warning", "Verdict"}
KEYWORDS: Final = {"message", "hint", "fix", "reason"}
FEATURES: Final = (
    *("accounts", "assessments", "backup", "credits", "documents", "jobs", "kernel", "mail", "outbound", "registry"),
    *("registry_toml", "schema", "scrub", "searches", "server", "store", "web", "webhooks"),
)
UNSHOWN: Final = (
    *(
        "server/app/",
        "server/observability/",
        "server/http/",
        "server/fastpath/",
        "server/process/",
        "cli/",
        "store/sqlite/",
        "registry/models/",
        "accounts/keys/",
    ),
    *("backup/container", "backup/restoring", "backup/moving", "backup/rows", "backup/snapshot"),
    *("assessments/evaluation/language_model/", "web/views/oauth"),
)
"""What no page shows: texts of protocols, of the command line and of faults of language models."""


class Text(NamedTuple):
    """A text, with its plural if it depends on a number."""

    text: str
    plural: str = ""


def of_features(path: Path) -> Iterator[Text]:
    """Yield the texts of a module of a feature."""
    for call in _calls(path) if _is_shown(path) else ():
        yield from _of_call(call, path)


def _is_shown(path: Path) -> bool:
    relative = path.relative_to(SOURCE).as_posix()
    return relative.startswith(tuple(f"{each}/" for each in FEATURES)) and not relative.startswith(UNSHOWN)


def _of_call(call: ast.Call, path: Path) -> Iterator[Text]:
    name = _name(call)
    if name == "Counted" and len(call.args) > 1:
        one, several = (next(iter(_texts(each, path)), "") for each in call.args[:2])
        if one:
            yield Text(one, several)
        return
    if not _is_known(name, path):
        return
    for place in CALLS[name]:
        if place < len(call.args):
            yield from map(Text, _texts(call.args[place], path))
    if name not in {"Phrase", "Counted"}:
        for keyword in call.keywords:
            if keyword.arg in KEYWORDS:
                yield from map(Text, _texts(keyword.value, path))


def _is_known(name: str, path: Path) -> bool:
    if name in _OF_DOCTOR:
        return path.relative_to(SOURCE).parts[0] == "server"
    return name in CALLS and (name not in {"ValueError", "_require"} or _is_input(path))


def _is_input(path: Path) -> bool:
    """Return whether the errors of a module are faults of values that people give."""
    return path.relative_to(SOURCE).parts[0] == "registry_toml" or path.name in {"wire.py", "following.py"}


def _texts(node: ast.AST, path: Path) -> Iterator[str]:
    """Yield the constants that an argument may be."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and any(map(str.isalpha, node.value)):
            yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _texts(node.body, path)
        yield from _texts(node.orelse, path)
    elif isinstance(node, ast.BoolOp):
        for each in node.values:
            yield from _texts(each, path)
    elif isinstance(node, ast.Dict):
        for value in node.values:
            yield from _texts(value, path)
    elif isinstance(node, ast.Call) and _name(node) == "Verbatim":
        return
    elif isinstance(node, ast.Name | ast.Attribute):
        yield from assigned(path).get(node.id if isinstance(node, ast.Name) else node.attr, ())


@cache
def assigned(path: Path) -> dict[str, tuple[str, ...]]:
    """Return the texts that a module assigns or imports, by name."""
    found: dict[str, tuple[str, ...]] = {}
    for node in _nodes(path):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("muniment."):
            source = SOURCE.parent / f"{(node.module or '').replace('.', '/')}.py"
            for each in node.names if source.is_file() and source != path else ():
                if each.name.isupper():
                    found[each.asname or each.name] = _constants(source).get(each.name, ())
    for name, texts in _constants(path).items():
        found[name] = (*found.get(name, ()), *texts)
    return found


@cache
def _constants(path: Path) -> dict[str, tuple[str, ...]]:
    found: dict[str, tuple[str, ...]] = {}
    for node in _nodes(path):
        pairs: list[tuple[ast.AST, ast.AST | None]] = []
        if isinstance(node, ast.Assign):
            pairs = [(target, node.value) for target in node.targets]
        elif isinstance(node, ast.AnnAssign):
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.FunctionDef):
            own = node.args.args[len(node.args.args) - len(node.args.defaults) :]
            pairs = [(ast.Name(each.arg), value) for each, value in zip(own, node.args.defaults, strict=True)]
        for target, value in pairs:
            if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
                pairs.extend(zip(target.elts, value.elts, strict=True))
            name = getattr(target, "id", "")
            if name and value is not None:
                texts = tuple(
                    each
                    for part in ([value.body, value.orelse] if isinstance(value, ast.IfExp) else [value])
                    for each in _plain(part)
                )
                found[name] = (*found.get(name, ()), *texts)
    return found


def _plain(node: ast.AST) -> Iterator[str]:
    if isinstance(node, ast.Constant) and isinstance(node.value, str) and any(map(str.isalpha, node.value)):
        yield node.value
    elif isinstance(node, ast.IfExp):
        yield from _plain(node.body)
        yield from _plain(node.orelse)
    elif isinstance(node, ast.Dict):
        for each in node.values:
            yield from _plain(each)


def _calls(path: Path) -> Iterator[ast.Call]:
    return (node for node in _nodes(path) if isinstance(node, ast.Call))


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(path.read_text("utf-8"))))


def _name(call: ast.Call) -> str:
    return getattr(call.func, "id", getattr(call.func, "attr", ""))


def states() -> Iterator[str]:
    """Yield the words for states as sentences name them, such as “The job is queued”."""
    from muniment.assessments.models import Application, RunState
    from muniment.documents.models import DocumentState
    from muniment.jobs.models import State as JobState
    from muniment.registry.models import State

    for each in (JobState, RunState, DocumentState, Application.State):
        yield from map(str, each.values)
    yield from (str(label).lower() for label in State.labels)
    yield from ("approved", "declined", "withdrawn", "requested", "unlisted", "relisted", "submitted", "published")
    yield from ("company", "person", "companies", "people", "frameworks")


def unmarked(path: Path) -> Iterator[tuple[int, str]]:
    """Yield where a text with values is put together as no phrase, so that no catalogue can have it: line and call."""
    for call in _calls(path) if _is_shown(path) else ():
        name = _name(call)
        if not _is_known(name, path) or name == "ValueError":
            continue
        given = [call.args[place] for place in CALLS[name] if place < len(call.args)]
        if any(map(_is_built, [*given, *(each.value for each in call.keywords if each.arg in KEYWORDS)])):
            yield call.lineno, name


def _is_built(node: ast.AST) -> bool:
    """Return whether an argument is an f-string of several words, a sum or a format."""
    if isinstance(node, ast.IfExp):
        return _is_built(node.body) or _is_built(node.orelse)
    if isinstance(node, ast.JoinedStr):
        return any(isinstance(each, ast.Constant) and " " in str(each.value) for each in node.values)
    if isinstance(node, ast.BinOp):
        return any(isinstance(each, ast.Constant | ast.JoinedStr) for each in (node.left, node.right))
    return isinstance(node, ast.Call) and _name(node) == "format"
