"""
Validate tool arguments against the published inputSchema.

The SDK publishes schemas but does not enforce them. A compiled check takes a microsecond or two, and an error names the
argument and what it accepts, so that a model can correct its call. Arguments are single values and lists of them; what
an operation validates by the registry's schema (`Tool.validated_later`) is only an object here.
"""

import difflib
from collections.abc import Callable
from typing import Any, Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest

Check = Callable[[JSONObject], JSONObject]
"""Takes arguments; returns them for the handler, or raises BadRequest."""

MAX_SHOWN_CHARACTERS: Final = 60
"""Of a name or value in an error; names are cut before they are compared, so that the cost is bounded."""
_TYPES: dict[str, tuple[str, type]] = {
    "string": ("a string", str),
    "integer": ("a whole number", int),
    "number": ("a number", float),
    "boolean": ("true or false", bool),
    "object": ("an object", dict),
    "array": ("a list", list),
}
_SUPPORTED_KEYWORDS = frozenset(
    {
        *("type", "anyOf", "enum", "minimum", "maximum", "minLength", "maxLength", "items", "maxItems"),
        *("description", "default", "format"),
    }
)


def _quoted(value: object) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    text = repr(value[: MAX_SHOWN_CHARACTERS + 1]) if isinstance(value, str) else str(value)
    return text if len(text) <= MAX_SHOWN_CHARACTERS else f"{text[: MAX_SHOWN_CHARACTERS - 3]}…"


def _accepted(schema: JSONMapping) -> str:
    if "enum" in schema:
        return "one of " + ", ".join(_quoted(choice) for choice in schema["enum"])
    if alternatives := _alternatives(schema):
        return " or ".join(_accepted(each) for each in alternatives)
    words, low, high = _TYPES[schema["type"]][0], schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        words += f" from {low} to {high}"
    elif low is not None:
        words += f" of at least {low}"
    if "maxLength" in schema:
        words += f" of {schema.get('minLength', 0)} to {schema['maxLength']} characters"
    return f"{words} of at most {schema['maxItems']} entries" if "maxItems" in schema else words


def _alternatives(schema: JSONMapping) -> list[JSONMapping]:
    """Return the schemas of which a value meets one; empty if there is only one."""
    types = schema.get("type")
    found: list[JSONMapping] = [{**schema, "type": each} for each in types] if isinstance(types, list) else []
    return found or list(schema.get("anyOf", ()))


class _Value:
    """The compiled check of a value."""

    def __init__(self, schema: JSONMapping) -> None:
        if unknown := set(schema) - _SUPPORTED_KEYWORDS:
            message = f"unsupported keywords in an inputSchema: {sorted(unknown)}"
            raise ValueError(message)
        self.accepted = _accepted(schema)
        alternatives = _alternatives(schema)
        self.by_type = {_TYPES[each.get("type", "string")][1]: _Value(each) for each in alternatives}
        self.type: type = type(None) if alternatives else _TYPES[schema.get("type", "string")][1]
        self.enum = schema.get("enum")
        self.low = schema.get("minimum", schema.get("minLength", 0))
        self.high = schema.get("maximum", schema.get("maxLength", schema.get("maxItems", float("inf"))))
        self.items = _Value(schema["items"]) if "items" in schema else None

    def __call__(self, value: Any, name: str) -> Any:
        if self.type is int and type(value) is float and value.is_integer():
            value = int(value)
        given = type(value)
        if self.by_type and (fitting := self.by_type.get(float if given is int else given)):
            return fitting(float(value) if given is int else value, name)
        size = value if given is int else len(value) if given in {str, list} else 0
        if given is not self.type or (self.enum and value not in self.enum) or not self.low <= size <= self.high:
            raise BadRequest(
                f"The argument {name} takes {self.accepted}, not {_quoted(value)}.",
                f"Call again with {name} as {self.accepted}" + (", or omit it." if value is None else "."),
            )
        if given is str and value.encode(errors="ignore").decode() != value:
            raise BadRequest(
                f"The argument {name} contains an unpaired surrogate, which is not valid text.",
                f"Call again with {name} as valid Unicode text.",
            )
        return value if self.items is None else [self.items(item, f"{name}[{n}]") for n, item in enumerate(value)]


def compile_object(schema: JSONMapping) -> Check:
    """
    Return the check of a tool's arguments: each of them, the required ones, and no others.

    Raises:
        ValueError: the schema uses a keyword that would be published but not enforced.
    """
    checks = {name: _Value(inner) for name, inner in schema["properties"].items()}
    known = ", ".join(checks) or "none"

    def check(value: JSONObject) -> JSONObject:
        found: JSONObject = {}
        for name, inner in value.items():
            if name not in checks:
                shown = name[:MAX_SHOWN_CHARACTERS]
                close = difflib.get_close_matches(shown, checks, n=1, cutoff=0.5)
                meant = f"Did you mean {close[0]}? " if close else ""
                raise BadRequest(f"There is no argument {shown!r}.", f"{meant}The arguments are: {known}.")
            found[name] = checks[name](inner, name)
        for name in schema.get("required", ()):
            if name not in found:
                hint = f"Call again with {name}: {checks[name].accepted}."
                raise BadRequest(f"The argument {name} is missing.", hint)
        return found

    return check
