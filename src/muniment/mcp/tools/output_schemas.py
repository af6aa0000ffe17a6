"""
Output schemas of the tools, derived from the registry's schema.

They have no descriptions, because clients load all of them before the first call, and they include the members that
truncation adds. Official clients reject an answer that its schema does not allow, so everything that can be missing is
optional.
"""

from collections.abc import Iterable
from typing import Final

from muniment.kernel.json import JSONObject
from muniment.schema.kinds import ANSWER, JsonSchema
from muniment.schema.objects import STATS, Schema
from muniment.schema.record import Record, nullable

_FEW: Final = 3
STRING: JsonSchema = {"type": "string"}
INTEGER: JsonSchema = {"type": "integer"}
NUMBER: JsonSchema = {"type": "number"}
BOOLEAN: JsonSchema = {"type": "boolean"}
ROWS: JsonSchema = {"type": "array"}
"""A list whose rows are not described."""
MOMENT: JsonSchema = STRING
"""An RFC 3339 time, which the name of its member tells."""


def object_of(properties: JsonSchema, *, optional: tuple[str, ...] = ()) -> JsonSchema:
    """Return the schema of an object; all members are required except *optional*."""
    schema: JSONObject = {"type": "object", "properties": properties}
    required = [name for name in properties if name not in optional]
    if required:
        schema["required"] = required
    return schema


def some_of(schema: JsonSchema, *identity: str) -> JsonSchema:
    """Return the schema of an object of which a call names the members that it wants besides its *identity*."""
    rest = {name: each for name, each in schema.items() if name != "required"}
    return {**rest, "required": list(identity)} if identity else rest


def strings(*names: str) -> JSONObject:
    return dict.fromkeys(names, STRING)


def cuttable(schema: JsonSchema) -> JsonSchema:
    """Return the schema of an object whose texts truncation may cut: it adds ``…Truncated`` and ``…Url``."""
    return {**schema, "patternProperties": {"(Truncated|Url)$": {"type": ["boolean", "string", "null"]}}}


def list_of(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item}


def one_of(*values: str) -> JsonSchema:
    return {"enum": list(values)}


def record_of(record: Record, *, without: tuple[str, ...] = (), **more: JsonSchema) -> JsonSchema:
    """
    Return the schema of a record as summaries and truncation leave it, *without* members that this answer lacks.

    What a summary may leave out is not required, and members of one type are not named.
    """
    shown = {name: _brief(each) for name, each in _properties(record) if name not in without}
    identity = [field.name for field in record.fields if field.required and field.name in shown]
    properties = {**shown, **more, "truncated": BOOLEAN, "url": STRING}
    return cuttable({"type": "object", "properties": properties, "required": identity})


def bundle(schema: Schema, **more: JsonSchema) -> JsonSchema:
    """Return the schema of a company with its parts; *more* are additional members for owners."""
    shown = {name: _brief(each) for name, each in _properties(schema.bundle)}
    totals = dict.fromkeys(("positionsTotal", "proposalsTotal", "capTableTotal", "fundingRoundsTotal"), INTEGER)
    return {
        "type": "object",
        "properties": {**shown, "company": record_of(schema.company), **totals, **more},
        "required": ["company"],
    }


def _properties(record: Record) -> Iterable[tuple[str, JsonSchema]]:
    """
    Yield the members of a record; lists and evidence that the registry derives are not described further.

    Derived objects that no summary has are left out: an answer may have more than its schema says.
    """
    properties: JSONObject = record.definition(ANSWER)["properties"]
    for name, schema in properties.items():
        field = record.by_name[name]
        is_derived = not field.editable and schema.get("type") in {"array", "object"}
        if not is_derived:
            yield name, schema
        elif field.summary != "none":
            yield name, {"type": schema["type"]}


def _brief(schema: JsonSchema) -> JsonSchema:
    """Return a schema without what a summary may leave out, and without bounds."""
    brief = {keyword: value for keyword, value in schema.items() if keyword not in {"required", "minimum"}}
    if "enum" in brief:
        brief.pop("type", None)
    if "items" in brief:
        brief["items"] = _brief(brief["items"])
    if "anyOf" in brief:
        brief["anyOf"] = [_brief(alternative) for alternative in brief["anyOf"]]
    properties = brief.pop("properties", None)
    if properties:
        brief |= _brief_members(properties)
    return brief


def _brief_members(properties: JsonSchema) -> JsonSchema:
    """Return the keyword for the members of an object; several texts are said together, without their names."""
    members = {name: _brief(schema) for name, schema in properties.items() if name != "logo"}  # as in records
    types: set[str] = set()
    for schema in members.values():
        types.update(_types(schema))
    if len(members) > _FEW and types <= {"string", "null"}:
        return {"additionalProperties": {"type": sorted(types, reverse=True)}}
    return {"properties": members}


def _types(schema: JsonSchema) -> list[str]:
    """Return the types of a value; "other" stands for those of a choice of words or forms."""
    kinds = schema.get("type", "other")
    return kinds if isinstance(kinds, list) else [kinds]


def pending(schema: Schema) -> JsonSchema:
    """Return the schema of a listing's fields that are pending review."""
    waiting = [field for field in schema.company_change.fields if field.review]
    return {"type": "object", "properties": {field.name: field.kind.schema(ANSWER) for field in waiting}}


STATS_SCHEMA = STATS.definition(ANSWER)
DIFF: JsonSchema = {"type": "object", "additionalProperties": {"type": "object"}}
"""The schema of differences by field, as :func:`muniment.mcp.tools.answers.shown` makes them."""
PAGINATION = object_of(
    {**dict.fromkeys(("page", "pageSize", "pageCount", "total"), INTEGER), "totalIsMinimum": {"type": "boolean"}},
    optional=("totalIsMinimum",),
)
NEXT_PAGE = nullable(INTEGER)

SEARCH_RESULTS: JsonSchema = {
    "results": list_of(object_of(strings("id", "title", "url", "matched", "text"), optional=("matched",))),
    "notUnderstood": list_of(STRING),
    "hint": STRING,
}
FETCHED: JsonSchema = {**strings("id", "title", "text", "url"), "metadata": {"type": "object"}}
CHANGED: JsonSchema = {
    "data": list_of(
        object_of(
            {**strings("kind", "id", "name", "change"), "at": MOMENT, "fields": list_of(STRING)},
            optional=("name", "fields"),
        )
    ),
    "nextSince": STRING,
    "left": INTEGER,
    "hint": STRING,
}
CLOSEST = list_of({"type": "object"})
"""Each with ``id``, ``name`` and ``why``."""


def single(data: JsonSchema) -> JSONObject:
    return {"data": data}


def paged(item: JsonSchema) -> JSONObject:
    return {"data": list_of(item), "pagination": PAGINATION, "nextPage": NEXT_PAGE, "hint": STRING}


def searched(item: JsonSchema) -> JSONObject:
    return {**paged(item), "unknownIds": list_of(STRING), "closest": CLOSEST, "facets": {"type": "object"}}


def listed(item: JsonSchema) -> JSONObject:
    return {
        "data": list_of(item),
        "total": INTEGER,
        "nextPage": {"type": "null"},
        "omitted": INTEGER,
        "hint": STRING,
        "facets": {"type": "object"},
    }
