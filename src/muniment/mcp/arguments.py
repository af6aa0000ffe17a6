"""
Validate tool arguments against the published inputSchema.

The SDK publishes schemas but does not enforce them. A compiled check takes a microsecond or two, and an error names the
argument and what it accepts, so that a model can correct its call.
"""

import difflib
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from muniment.kernel.problems import BadRequest

Check = Callable[[Any, str], Any]
"""Takes a value and the argument's name; returns the value for the handler, or raises BadRequest."""

_TYPE_NAMES = {
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "true or false",
    "object": "an object",
    "array": "a list",
    "null": "null",
}
_SUPPORTED_KEYWORDS = frozenset(
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


def _quoted(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value) if isinstance(value, str) else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"


def _kind(value: object) -> str:
    if isinstance(value, float):
        return "integer" if value.is_integer() else "number"
    return _KINDS[type(value)]


def _accepted(schema: Mapping[str, Any]) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(_quoted(choice) for choice in schema["enum"])
    kinds = schema.get("type", [])
    words = " or ".join(_TYPE_NAMES[kind] for kind in ([kinds] if isinstance(kinds, str) else kinds)) or "any value"
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


def _invalid(name: str, value: object, schema: Mapping[str, Any]) -> BadRequest:
    accepted = _accepted(schema)
    return BadRequest(
        f"The argument {name} takes {accepted}, not {_quoted(value)}.",
        f"Call again with {name} as {accepted}" + (", or omit it." if value is None else "."),
    )


class _Value:
    """The compiled check of a value."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        if unknown := set(schema) - _SUPPORTED_KEYWORDS:
            message = f"unsupported keywords in an inputSchema: {sorted(unknown)}"
            raise ValueError(message)
        kinds = schema.get("type")
        self.schema = schema
        self.kinds = frozenset([kinds] if isinstance(kinds, str) else kinds or _TYPE_NAMES)
        self.enum = schema.get("enum")
        self.pattern = re.compile(schema["pattern"]) if "pattern" in schema else None
        self.inner = compile_object(schema) if "properties" in schema else None
        self.items = _Value(schema["items"]) if "items" in schema else None

    def __call__(self, value: Any, name: str) -> Any:
        kind = _kind(value)
        if kind not in self.kinds and not (kind == "integer" and "number" in self.kinds):
            raise _invalid(name, value, self.schema)
        if self.enum is not None and value not in self.enum:
            raise _invalid(name, value, self.schema)
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
            raise _invalid(name, value, schema)
        try:
            value.encode()
        except UnicodeEncodeError:
            raise BadRequest(
                f"The argument {name} contains an unpaired surrogate, which is not valid text.",
                f"Call again with {name} as valid Unicode text.",
            ) from None
        return value

    def _number(self, value: float, name: str) -> float:
        if not self.schema.get("minimum", value) <= value <= self.schema.get("maximum", value):
            raise _invalid(name, value, self.schema)
        return int(value) if value == value // 1 else value

    def _array(self, value: list[Any], name: str) -> list[Any]:
        if not self.schema.get("minItems", 0) <= len(value) <= self.schema.get("maxItems", len(value)):
            raise _invalid(name, f"{len(value)} entries", self.schema)
        items = self.items
        return value if items is None else [items(item, f"{name}[{index}]") for index, item in enumerate(value)]


def compile_value(schema: Mapping[str, Any]) -> Check:
    """
    Return the check of a value.

    Raises:
        ValueError: the schema uses a keyword that would be published but not enforced.
    """
    return _Value(schema)


def compile_object(schema: Mapping[str, Any]) -> Check:
    """Return the check of an object: its properties, required members, and no others."""
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
                accepted = _accepted(schema["properties"][name])
                raise BadRequest(
                    f"The argument {prefix}{name} is missing.", f"Call again with {prefix}{name}: {accepted}."
                )
        return found

    return check
