"""
The tool list_company_form_options, which both servers have: the values and lengths that an owner's change accepts.

A member named in ``open`` suggests values and accepts others too. ``inUse`` has the values that public companies have.

Source: tools, list_company_form_options.
"""

import asyncio
from collections.abc import Awaitable, Callable

from muniment.kernel.json import JSONObject
from muniment.mcp.declarations import Arguments, Caller, Tool
from muniment.mcp.tools.output_schemas import INTEGER, STRING, list_of, object_of, single
from muniment.registry_toml.vocabulary import suggested
from muniment.schema.kinds import Choice, Items, Kind, Money, Text
from muniment.schema.objects import Schema
from muniment.schema.record import Field, Record
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader


def form_options_tool(
    schema: Schema, description: str, scope: str | None = None, reader: Callable[[], Reader | None] = lambda: None
) -> Tool:
    """Return the tool; *reader* gives what public companies use, None while it cannot be read."""
    options = form_options(schema)
    sizes = {"type": "object", "additionalProperties": INTEGER}
    limits = object_of({"characters": sizes, "entries": sizes})
    members = object_of({"limits": limits, "inUse": {"type": "object"}}, optional=("inUse",))
    shown = {**members, "additionalProperties": list_of(STRING), "required": list(options)}

    def handler(_: Arguments, __: Caller) -> JSONObject | Awaitable[JSONObject]:
        source = reader()
        if source is None:
            return {"data": options}
        return asyncio.get_running_loop().run_in_executor(
            source.pool, lambda: {"data": {**options, "inUse": in_use(schema, source)}}
        )

    return Tool(
        name="list_company_form_options",
        title="List form options",
        description=description,
        arguments={},
        answer=single(shown),
        handler=handler,
        scope=scope,
        read_only=True,
        idempotent=True,
    )


def in_use(schema: Schema, reader: Reader) -> JSONObject:
    """Return the most frequent values of public companies, with counts, for each editable field that has facets."""
    listing = schema.listings["company"]
    names = {}
    for name, (field, by) in listing.filters.items():
        is_of_whole_value = not by.presence and not by.member
        if by.counted and is_of_whole_value and field.editable:
            names[name] = field.name
    found = reader.facets("company", ListQuery(), tuple(names)).to_wire()
    return {field: found[name] for name, field in names.items() if name in found}


def form_options(schema: Schema) -> JSONObject:
    options: JSONObject = {}
    suggesting = []
    fields = schema.company.editable.values()
    for field in fields:
        kind = _item(field.kind)
        if isinstance(kind, Choice):
            options[field.name] = list(kind.values)
        elif isinstance(kind, Text) and kind.suggest:
            options[field.name] = list(suggested(field.name, kind.suggest))
            suggesting.append(field.name)
        elif isinstance(kind, Record):
            options[field.name] = [each.name for each in kind.values]
    characters = {}
    for field in sorted(fields, key=_group):
        limit = _most_characters(_item(field.kind))
        if limit:
            characters[field.name] = limit
    return {
        **options,
        "open": suggesting,
        "limits": {"characters": characters, "entries": _entries(schema.company_change)},
    }


def _group(field: Field) -> int:
    """Order texts before amounts before objects."""
    kind = _item(field.kind)
    if isinstance(kind, Record):
        return 2
    return 1 if isinstance(kind, Money) else 0


def _item(kind: Kind) -> Kind:
    return kind.of if isinstance(kind, Items) else kind


def _most_characters(kind: Kind) -> int | None:
    if isinstance(kind, Record):
        return next((_most_characters(field.kind) for field in kind.values), None)
    return kind.max if isinstance(kind, Text | Money) else None


def _entries(record: Record) -> dict[str, int]:
    found: dict[str, int] = {}
    for field in record.fields:
        if isinstance(field.kind, Items) and field.kind.max:
            found[field.name] = field.kind.max
        elif isinstance(field.kind, Record):
            found |= _entries(field.kind)
    return found
