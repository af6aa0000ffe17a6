"""
Arguments of tools, checked against the inputSchema that clients are shown.

The SDK advertises schemas and never applies them. Compiled once, a check costs a microsecond or two,
and a refusal names the argument and what it takes, so that a model can mend its call.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muniment.kernel.problems import BadRequest

Check = Callable[[Any, str], Any]
"""Gets a value and the argument's name; gives the value as handlers see it, or raises BadRequest."""

_WORDS = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_APPLIED = frozenset(
    {
        *("type", "enum", "minimum", "maximum", "minLength", "maxLength", "pattern", "items", "maxItems", "minItems"),
        *("properties", "required", "additionalProperties", "title", "description", "default", "examples", "format"),
    }
)
_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    str: "string",
    list: "array",
    dict: "object",
}


def _show(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _kind(value: object) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS[type(value)]


def _takes(schema: Mapping[str, Any]) -> str:
    """Say in words what *schema* takes."""
    if "enum" in schema:
        return "one of " + ", ".join(_show(choice) for choice in schema["enum"])
    kinds = schema.get("type", [])
    words = " or ".join(_WORDS[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "any value"
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f" from {low} to {high}"
    elif low is not None:
        words += f" of at least {low}"
    elif high is not None:
        words += f" of at most {high}"
    if "maxLength" in schema:
        words += f" of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    if "maxItems" in schema:
        words += f" of at most {schema['maxItems']} entries"
    return words


def _refuse(name: str, value: object, schema: Mapping[str, Any]) -> BadRequest:
    takes = _takes(schema)
    return BadRequest(
        f"The argument {name} takes {takes}, not {_show(value)}.",
        f"Call again with {name} as {takes}" + (", or leave it out." if value is None else "."),
    )


class _Value:
    """The check of one value against its schema."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if unknown := set(schema) - _APPLIED:
            message = f"these keywords of an inputSchema are not applied: {sorted(unknown)}"
            raise ValueError(message)
        kinds = schema.get("type")
        self.schema = schema
        self.kinds = frozenset([kinds] if isinstance(kinds, str) else kinds or _WORDS)
        self.enum = schema.get("enum")
        self.pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
        self.inner = compile_object(schema) if "properties" in schema else None
        self.items = _Value(schema["items"]) if "items" in schema else None

    def __call__(self, value: Any, name: str) -> Any:
        kind = _kind(value)
        if kind not in self.kinds and not (kind == "integer" and "number" in self.kinds):
            raise _refuse(name, value, self.schema)
        if self.enum is not None and value not in self.enum:
            raise _refuse(name, value, self.schema)
        if kind == "string":
            return self._string(value, name)
        if kind in {"integer", "number"}:
            return self._number(value, name)
        if kind == "array":
            return self._array(value, name)
        return value if kind != "object" or self.inner is None else self.inner(value, name)

    def _string(self, value: str, name: str) -> str:
        schema = self.schema
        if not schema.get("minLength", 0) <= len(value) <= schema.get("maxLength", len(value)) or (
            self.pattern is not None and not self.pattern.search(value)
        ):
            raise _refuse(name, value, schema)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadRequest(
                f"The argument {name} holds half of a surrogate pair, which is no text.",
                f"Call again with {name} as valid Unicode text.",
            ) from None
        return value

    def _number(self, value: float, name: str) -> float:
        if not self.schema.get("minimum", value) <= value <= self.schema.get("maximum", value):
            raise _refuse(name, value, self.schema)
        return int(value) if value == value // 1 else value

    def _array(self, value: list[Any], name: str) -> list[Any]:
        if not self.schema.get("minItems", 0) <= len(value) <= self.schema.get("maxItems", len(value)):
            raise _refuse(name, f"{len(value)} entries", self.schema)
        items = self.items
        return value if items is None else [items(item, f"{name}[{index}]") for index, item in enumerate(value)]


def compile_value(schema: Mapping[str, Any]) -> Check:
    """
    Make the check of one value.

    Raises:
        ValueError: the schema uses a keyword that would be shown and not applied.
    """
    return _Value(schema)


def compile_object(schema: Mapping[str, Any]) -> Check:
    """Make the check of an object: its properties, what is required, and that nothing else is there."""
    checks = {name: compile_value(inner) for name, inner in schema.get("properties", {}).items()}
    required: Sequence[str] = schema.get("required", ())
    open_object = schema.get("additionalProperties", True) is not False

    def unknown(name: str, within: str) -> BadRequest:
        close = difflib.get_close_matches(name, checks, n=1, cutoff=0.5)
        known = ", ".join(checks) or "none"
        return BadRequest(
            f"There is no argument {within}{name[:60]!r}.",
            (f"Did you mean {close[0]}? " if close else "") + f"The arguments are: {known}.",
        )

    def check(value: dict[str, Any], within: str) -> dict[str, Any]:
        prefix = f"{within}." if within else ""
        found: dict[str, Any] = {}
        for name, inner in value.items():
            one = checks.get(name)
            if one is not None:
                found[name] = one(inner, f"{prefix}{name}")
            elif open_object:
                found[name] = inner
            else:
                raise unknown(name, prefix)
        for name in required:
            if name not in found:
                takes = _takes(schema["properties"][name])
                raise BadRequest(
                    f"The argument {prefix}{name} is missing.", f"Call again with {prefix}{name}: {takes}."
                )
        return found

    return check
