"""
List the mutants of a module, by mutmut's operators and a few of our own.

Only function bodies are mutated, without messages, annotations, docstrings, assertions and logs. A surviving mutant is
then about a rule, and a reworded message leaves the draw as it is.
"""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import libcst as cst
from libcst.metadata import MetadataWrapper, PositionProvider
from mutmut.mutation import mutators

ROOT = Path(__file__).parents[1]
SKIPPED = (cst.Annotation, cst.Decorator, cst.Raise, cst.Assert, cst.FormattedString, cst.Lambda)
UNRULY = {"__str__", "__repr__"}
HINTS = {"batch_size", "chunk_size", "of", "skip_locked", "strict", "update_fields"}
"""Arguments about speed, locking and defensive checks: on SQLite no answer depends on them."""


def if_false(node: cst.If) -> Iterator[cst.If]:
    """Yield the statement with a condition that is never true, and one that always is."""
    for value in ("False", "True"):
        test = cst.Name(value)
        yield node.with_changes(test=test, whitespace_before_test=cst.SimpleWhitespace(" "))


def dropped_call(node: cst.Expr) -> Iterator[cst.Pass]:
    """Yield a pass in place of a call whose result is not used."""
    if isinstance(node.value, cst.Call) and not _logs(node.value):
        yield cst.Pass()


def dropped_keyword(node: cst.Call) -> Iterator[cst.Call]:
    """Yield the call without each of its keyword arguments, such as a condition of a filter."""
    for number, argument in enumerate(node.args):
        if argument.keyword is not None and argument.keyword.value not in HINTS:
            yield node.with_changes(args=[*node.args[:number], *node.args[number + 1 :]])


Operator = Callable[..., object]
OPERATORS: tuple[tuple[type[cst.CSTNode], Operator], ...] = (
    (cst.If, if_false),
    (cst.Expr, dropped_call),
    (cst.Call, dropped_keyword),
    (cst.BaseNumber, mutators.operator_number),
    (cst.Name, mutators.operator_name),
    (cst.UnaryOperation, mutators.operator_remove_unary_ops),
    (cst.AugAssign, mutators.operator_augmented_assignment),
    (cst.IfExp, mutators.operator_if_exp),
    (cst.CSTNode, mutators.operator_keywords),
    (cst.CSTNode, mutators.operator_swap_op),
    (cst.Call, mutators.operator_symmetric_string_methods_swap),
)


@dataclass(frozen=True)
class Mutant:
    """A broken module. *key* identifies it without line numbers and messages."""

    file: Path
    key: str
    lines: range
    module: cst.Module
    node: cst.CSTNode
    mutated: cst.CSTNode

    def source(self) -> str:
        """Return the text of the broken module."""
        broken = self.module.deep_replace(self.node, self.mutated)
        assert isinstance(broken, cst.Module)  # noqa: S101 - a module stays one
        return broken.code


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self, file: Path, module: cst.Module) -> None:
        super().__init__()
        self.file, self.module = file, module
        self.found: list[Mutant] = []
        self._names: list[str] = []
        self._functions = 0
        self._keys: dict[str, int] = {}

    def on_visit(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.ClassDef | cst.FunctionDef):
            self._names.append(node.name.value)
            if isinstance(node, cst.ClassDef):
                return True
            if node.name.value not in UNRULY:
                self._functions += 1
                node.body.visit(self)
                self._functions -= 1
            return False
        if isinstance(node, SKIPPED) or _logs(node) or _is_text(node):
            return False
        if self._functions:
            self._mutate(node)
        return True

    def on_leave(self, original_node: cst.CSTNode) -> None:
        if isinstance(original_node, cst.ClassDef | cst.FunctionDef):
            self._names.pop()

    def _mutate(self, node: cst.CSTNode) -> None:
        for kind, operator in OPERATORS:
            if not isinstance(node, kind):
                continue
            for mutated in operator(node):
                place = self.get_metadata(PositionProvider, _part(node), None)
                if place is None:  # libcst gives an operator no position of its own
                    continue
                change = f"{self._text(_part(node))} => {self._text(_part(mutated))}"
                key = f"{self.file.parent.name}/{self.file.stem}.{'.'.join(self._names)}: {change}"
                self._keys[key] = self._keys.get(key, 0) + 1
                if self._keys[key] > 1:
                    key += f" #{self._keys[key]}"
                lines = range(place.start.line, place.end.line + 1)
                self.found.append(Mutant(self.file, key, lines, self.module, node, mutated))

    def _text(self, node: cst.CSTNode) -> str:
        code = re.sub(r"\s+", " ", self.module.code_for_node(node)).strip()
        return re.sub(r'"(?:[^"\\]|\\.)*"', lambda text: '"…"' if " " in text[0] else text[0], code)[:160]


def _part(node: cst.CSTNode) -> cst.CSTNode:
    """Return the part of a node that its key shows: of an if statement, the condition."""
    return node.test if isinstance(node, cst.If) else node


def _is_text(node: cst.CSTNode) -> bool:
    formatted = isinstance(node, cst.BinaryOperation) and isinstance(node.left, cst.BaseString)
    translated = isinstance(node, cst.Call) and isinstance(node.func, cst.Name) and node.func.value in {"_", "gettext"}
    return formatted or translated


def _logs(node: cst.CSTNode) -> bool:
    return (
        isinstance(node, cst.Call)
        and isinstance(node.func, cst.Attribute)
        and isinstance(node.func.value, cst.Name)
        and node.func.value.value in {"log", "logger"}
    )


def mutants(file: Path) -> list[Mutant]:
    """Return every mutant of a module."""
    wrapper = MetadataWrapper(cst.parse_module(file.read_text()))
    finder = _Finder(file, wrapper.module)
    wrapper.visit(finder)
    return finder.found
