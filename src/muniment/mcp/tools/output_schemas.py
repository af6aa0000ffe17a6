"""
Output schemas of the tools, derived from the registry's schema.

They have no descriptions, because clients load all of them before the first call, and they include the members that
truncation adds. Official clients reject an answer that its schema does not allow, so everything that can be missing is
optional.
"""

from muniment.kernel.json import JSONObject
from muniment.schema.kinds import ANSWER, JsonSchema, Text
from muniment.schema.objects import STATS, Schema
from muniment.schema.record import Record, nullable

STRING: JsonSchema = {"type": "string"}
INTEGER: JsonSchema = {"type": "integer"}
NUMBER: JsonSchema = {"type": "number"}
BOOLEAN: JsonSchema = {"type": "boolean"}
MOMENT: JsonSchema = {"type": "string", "format": "date-time"}


def object_of(properties: JsonSchema, *, optional: tuple[str, ...] = ()) -> JsonSchema:
    """Return the schema of an object; all members are required except *optional*."""
    required = [name for name in properties if name not in optional]
    return {"type": "object", "properties": properties, **({"required": required} if required else {})}


def strings(*names: str) -> JSONObject:
    return dict.fromkeys(names, STRING)


def cut_marks(*names: str) -> JSONObject:
    """Return the schemas of the members that truncation adds to the texts *names*."""
    return {f"{name}{end}": kind for name in names for end, kind in (("Truncated", BOOLEAN), ("Url", STRING))}


def list_of(item: JsonSchema) -> JsonSchema:
    return {"type": "array", "items": item}


def one_of(*values: str) -> JsonSchema:
    return {"type": "string", "enum": list(values)}


def record_of(record: Record, *, without: tuple[str, ...] = (), **more: JsonSchema) -> JsonSchema:
    """Return the schema of a record as truncation leaves it, *without* members that this answer lacks."""
    schema = record.definition(ANSWER)
    long = [field.name for field in record.fields if isinstance(field.kind, Text) and field.kind.lines > 1]
    shown = {name: each for name, each in schema["properties"].items() if name not in without}
    # The largest items of a list, and records that do not fit at all, have only their names.
    identity = [field.name for field in record.fields if field.required and field.name in shown]
    properties = {**shown, **more, **cut_marks(*long), "truncated": BOOLEAN, "url": STRING}
    return {"type": "object", "properties": properties, "required": identity}


def bundle(schema: Schema, **more: JsonSchema) -> JsonSchema:
    """Return the schema of a company with its parts; *more* are additional members for owners."""
    shown = schema.bundle.definition(ANSWER)["properties"]
    totals = dict.fromkeys(("positionsTotal", "proposalsTotal", "capTableTotal", "fundingRoundsTotal"), INTEGER)
    return {
        "type": "object",
        "properties": {**shown, "company": record_of(schema.company), **totals, **more},
        "required": ["company"],
    }


def pending(schema: Schema) -> JsonSchema:
    """Return the schema of a listing's fields that are pending review."""
    waiting = [field for field in schema.company_change.fields if field.review]
    return {"type": "object", "properties": {field.name: field.kind.schema(ANSWER) for field in waiting}}


STATS_SCHEMA = STATS.definition(ANSWER)
DIFF: JsonSchema = {
    "type": "object",
    "additionalProperties": {"type": "object", "properties": {"before": {}, "after": {}, "truncated": BOOLEAN}},
}
"""Before and after, by field. Of a long list: ``{changed, total, truncated}``, with the rows that differ."""
PAGINATION = object_of(
    {**dict.fromkeys(("page", "pageSize", "pageCount", "total"), INTEGER), "totalIsMinimum": {"type": "boolean"}},
    optional=("totalIsMinimum",),
)
NEXT_PAGE = {**nullable(INTEGER), "description": "the next page, null at the end"}
HINT: JsonSchema = {
    "type": "string",
    "description": "how to continue if fewer items fit than requested",
}


SEARCH_RESULTS: JsonSchema = {
    "results": list_of(object_of(strings("id", "title", "url", "text"))),
    "reading": {"type": "object"},
    "hint": STRING,
}
FETCHED: JsonSchema = {**strings("id", "title", "text", "url"), "metadata": {"type": "object"}}
CLOSEST = list_of({"type": "object"})
"""Each with ``id``, ``name`` and ``why``."""


def single(data: JsonSchema) -> JSONObject:
    return {"data": data}


def paged(item: JsonSchema) -> JSONObject:
    return {"data": list_of(item), "pagination": PAGINATION, "nextPage": NEXT_PAGE, "hint": HINT}


def searched(item: JsonSchema) -> JSONObject:
    return {**paged(item), "closest": CLOSEST, "facets": {"type": "object"}}


def listed(item: JsonSchema) -> JSONObject:
    return {
        "data": list_of(item),
        "nextPage": {"type": "null"},
        "omitted": INTEGER,
        "hint": HINT,
        "facets": {"type": "object"},
    }
