"""JSON Schemas in words: "text", "list of Address", "whole number, 1 to 100"."""

import re
from collections.abc import Collection, Iterator, Mapping
from html import escape
from typing import Any, NamedTuple
from urllib.parse import quote

from django.utils.safestring import SafeString, mark_safe

from muniment.kernel.json import JSONMapping

OBJECTS = "/docs/rest/objects"
_KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
    "array": "list",
}
_FORMATS = {"date": "date", "date-time": "time (ISO 8601)", "uri": "address", "email": "email address"}
_MAX_VALUES = 24
_MAX_BOUND = 10**9


class Row(NamedTuple):
    """
    A parameter or a member.

    Args:
        kind: HTML: its type in words, with links to objects.
        text: HTML: its description.
        note: "required", "header" and the like.
    """

    name: str
    kind: SafeString
    text: SafeString
    note: str = ""
    rows: tuple["Row", ...] = ()


_CODE = re.compile(
    r"`([^`]+)`|"
    r"(\{&quot;[^{}]*\}|\[&quot;[^\[\]]*\]|"  # JSON
    r"(?<![\w./-])…?[a-z]+(?:[A-Z][a-z0-9]*)+(?![\w/-])|(?<![\w./-])…[A-Z][a-z]+|"  # camelCase, or its end
    r"(?<![\w./-])[a-z]+(?:_[a-z]+)+(?![\w/-])|"  # the name of a tool
    r"(?<![\w./-])[a-z]+:(?:read|write|spend|submit)\b)"  # a scope
)


def inline(text: str, names: Collection[str] = ()) -> SafeString:
    """
    Return a description as HTML: names of members and tools, and what is between backquotes, as code.

    Args:
        names: the names of arguments, which are code where a value follows them.
    """
    shown = _CODE.sub(lambda found: f"<code>{found[1] or found[2]}</code>", escape(text))
    if names:
        words = "|".join(map(re.escape, names))
        shown = re.sub(rf"(?<![\w>])({words})(?=:? (?:true|false)\b| instead\b|:)", r"<code>\1</code>", shown)
    return mark_safe(shown)  # noqa: S308 - escaped


def kind_of(schema: JSONMapping) -> SafeString:
    """Return the type of a value in words, as HTML."""
    return mark_safe("".join(_words(schema)))  # noqa: S308 - every part is escaped


def members(schema: JSONMapping, *, depth: int = 0) -> tuple[Row, ...]:
    """Return the members of an object's schema, and down to *depth* those of the objects within."""
    required = set(schema.get("required", ()))
    rows = []
    for name, member in schema.get("properties", {}).items():
        note = "required" if name in required else ""
        inner_rows = members(_inner(member), depth=depth - 1) if depth else ()
        rows.append(Row(name, kind_of(member), inline(str(member.get("description", ""))), note, inner_rows))
    return tuple(rows)


def _inner(schema: JSONMapping) -> JSONMapping:
    """Return the object within *schema*: its own, or that of a list's items."""
    inner: JSONMapping = schema.get("items", schema)
    return inner if "properties" in inner else {}


def _words(schema: JSONMapping) -> Iterator[str]:
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        yield f'<a href="{OBJECTS}#{quote(name)}">{escape(name)}</a>'
        return
    for key in ("anyOf", "oneOf"):
        if key in schema:
            yield " or ".join(kind_of(alternative) for alternative in schema[key])
            return
    if "enum" in schema or "const" in schema:
        values = schema.get("enum", (schema.get("const"),))
        if len(values) > 1:
            yield "one of "
        yield ", ".join(f"<code>{escape(str(value))}</code>" for value in values[:_MAX_VALUES])
        if len(values) > _MAX_VALUES:
            yield " …"
        return
    yield " or ".join(_kind(kind, schema) for kind in _types(schema))
    yield _bounds(schema)
    if "default" in schema:
        yield f", <code>{escape(str(schema['default']))}</code> by default"


def _types(schema: JSONMapping) -> list[str]:
    default = "object" if "properties" in schema else "any"
    kind: Any = schema.get("type", default)
    return [kind] if isinstance(kind, str) else list(kind)


def _kind(kind: str, schema: JSONMapping) -> str:
    if kind == "array":
        items: Mapping[str, Any] = schema.get("items", {})
        return f"list of {kind_of(items)}" if items else "list"
    if kind == "string" and schema.get("format") in _FORMATS:
        return _FORMATS[str(schema["format"])]
    return _KINDS.get(kind, "any value")


def _bounds(schema: JSONMapping) -> str:
    least, most, longest = schema.get("minimum"), schema.get("maximum"), schema.get("maxLength")
    # Larger bounds are those of the type, which say nothing to a reader.
    if most is not None and most < _MAX_BOUND:
        return f", at most {most}" if least is None else f", {least} to {most}"
    if least is not None and least > 0:
        return f", at least {least}"
    if longest:
        return f", at most {longest:,} characters"
    return ""
