"""
The OpenAPI 3.1 contract, generated from the declarations that validate requests, and the pages that show it.

The JSON Schemas of responses have fictional examples; ``/openapi.json`` and ``/llms.txt`` describe the API.

Source: service document, Resources and their fields; decisions, section 2, absent values and additions.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from muniment.api.parameters import Parameter
from muniment.api.responses import Answer, declared_licence
from muniment.api.routes import FORMAT, ROUTES, Context, Route, routes_of
from muniment.config import Config
from muniment.kernel.http.representations import digest
from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Internal, MethodNotAllowed, NotFound, Unavailable
from muniment.registry_toml.applied import applied, current, registry_name
from muniment.schema.company_parts import (
    ADDRESS,
    ASSESSMENT,
    CAP_TABLE_ENTRY,
    DISTRIBUTION,
    FORMER_NAME,
    LOGO,
    POSITION,
    PROPOSAL,
    SOCIALS,
    VERIFIED_DOMAIN,
)
from muniment.schema.framework import COMPANY_OF_FRAMEWORK, RANKED_SCORE
from muniment.schema.kinds import CONTRACT, JsonSchema
from muniment.schema.objects import STATS, Schema
from muniment.store.search.everything import COLLECTIONS

Part = JSONObject

API_VERSION: Final = "1.0.0"
"""The version of the contract, not of the product: raise the second number when something is added to v1."""


def _header(description: str, example: str, schema: Part | None = None) -> Part:
    return {"description": description, "schema": schema or {"type": "string"}, "example": example}


HEADERS: Final[dict[str, Part]] = {
    "ETag": _header("The version in this encoding; send it as If-None-Match.", '"9f2c5e0a7b1d4c3e8f6a2b10"'),
    "Last-Modified": _header(
        "When the response last changed. An even second belongs to this version alone; an odd one is no validator.",
        "Sat, 31 Jan 2026 09:30:00 GMT",
    ),
    "Cache-Control": _header("How long the response may be cached.", "public, max-age=30, stale-while-revalidate=300"),
    "Vary": _header("The request headers that the response depends on.", "Accept-Encoding"),
    "Link": _header(
        "Related resources (RFC 8288): first, prev, next and last of a list; describedby, with the title proof, is the "
        "proof of a document in the public log.",
        '</api/v1/companies?page=2&pageSize=25>; rel="next"',
    ),
    "X-Request-Id": _header(
        "The request's id, echoed or generated; quote it when you report an error.", "01jexample0000000000000000"
    ),
    "RateLimit": _header("The remaining burst of the client's rate limit.", '"burst";r=99;t=1'),
    "X-Muniment-Edition": _header(
        "The edition that this node serves; it increases with each published change.", "1204"
    ),
    "RateLimit-Policy": _header("The client's rate limit and its burst.", '"default";q=600;w=60, "burst";q=100;w=10'),
    "Retry-After": _header("Seconds to wait.", "2", {"type": "integer", "minimum": 0}),
    "Allow": _header("The supported methods.", "GET, HEAD, OPTIONS"),
    "X-Muniment-Truncated": _header("What cut a CSV, and the rows that it has.", "by=rows; rows=100000"),
    "Deprecation": _header("When the route was deprecated (RFC 9745).", "@1767225600"),
    "Sunset": _header("When the route will be removed (RFC 8594).", "Wed, 01 Apr 2026 00:00:00 GMT"),
}
_ALWAYS: Final = ("X-Request-Id", "X-Muniment-Edition", "RateLimit", "RateLimit-Policy")
_CACHED: Final = ("ETag", "Last-Modified", "Cache-Control", "Vary")
_TAGS: Final = {
    "Companies": "Reviewed companies, DAOs, nonprofits, accelerators, incubators and funds.",
    "People": "People with positions at these organizations.",
    "Frameworks": "Assessment frameworks and programs.",
    "Log": "The public log, by which strangers verify the history.",
    "Registry": "The registry as a whole.",
}


def openapi_document(config: Config, schema: Schema) -> Part:
    shown = examples(schema)
    paths = {}
    for route in routes_of(schema):
        # HEAD is not listed: generated clients would have every method twice.
        paths[route.path] = {"get": _operation(route, shown[route.schema])}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": registry_name(),
            "version": API_VERSION,
            "summary": "A public registry of reviewed organizations, people and assessment frameworks.",
            "description": (
                "Read-only JSON over HTTP GET, without an API key. HEAD answers every GET without its body. Changes "
                "within v1 are additive: ignore members that "
                "you do not know. Every error is `{error: {code, message, hint}}`; branch on `error.code`."
            ),
            **_terms(config),
        },
        "servers": [{"url": config.base_url or "/"}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas(schema),
            "headers": HEADERS,
            "responses": {
                "BadRequest": _error("A parameter has an invalid value.", "bad_request"),
                "NotFound": _error("Not found.", "not_found"),
                "MethodNotAllowed": _error("Only GET, HEAD and OPTIONS.", "method_not_allowed", "Allow"),
                "UriTooLong": _error("The URL is longer than 16 KB.", "uri_too_long"),
                "TooMany": _error("The rate limit is exceeded.", "too_many", "Retry-After"),
                "InternalError": _error("An internal error.", "internal_error"),
                "Unavailable": _error(
                    "Not available now, for example because too many searches run or the tables are being built: wait "
                    "as long as Retry-After says.",
                    "unavailable",
                    "Retry-After",
                ),
                "NotModified": {
                    "description": "The version that If-None-Match or If-Modified-Since names is still current.",
                    "headers": _headers(*_ALWAYS, *_CACHED),
                },
            },
        },
    }


def _terms(config: Config) -> Part:
    """Return the license of the data and the contact, if the registry declares them."""
    settings = current()
    declared = settings.registry
    terms: Part = {"license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}}
    licence = declared_licence()
    if licence:
        terms["license"] = licence
    if "@" in declared.contact:
        terms["contact"] = {"email": declared.contact}
    elif declared.contact:
        terms["contact"] = {"url": declared.contact}
    if settings.legal.terms:
        terms["termsOfService"] = f"{config.base_url}/terms"
    return terms


def _headers(*names: str) -> Part:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _response(name: str) -> Part:
    return {"$ref": f"#/components/responses/{name}"}


def _error(description: str, example: str, *headers: str) -> Part:
    return {
        "description": description,
        "headers": _headers(*_ALWAYS, *headers),
        "content": {"application/json": {"schema": ref("Error"), "example": ERROR_EXAMPLES[example].to_wire()}},
    }


_PROVEN: Final = frozenset({"getCompany", "getPerson", "getFramework"})
"""Operations whose responses name the proof of their document."""


def _operation(route: Route, example: Any) -> Part:
    operation: Part = {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.description,
    }
    if route.deprecation:
        operation["deprecated"] = True
    # A stream has no version that a client could name; it is continued after an event.
    conditions = (_LAST_EVENT_ID,) if route.schema == _STREAM else _CONDITIONS
    operation["parameters"] = [*_segment(route), *map(_parameter, route.parameters), *conditions]
    operation["responses"] = _responses(route, example)
    return operation


_STREAM: Final = "ChangeStream"


def _responses(route: Route, example: Any) -> Part:
    """Return what a route may answer, by status."""
    responses = {"200": _success(route, example)}
    if route.schema != _STREAM:
        responses["304"] = _response("NotModified")
    if route.parameters:
        responses["400"] = _response("BadRequest")
    if route.missing or route.tag == "Log":
        responses["404"] = _response("NotFound")
    return {
        **responses,
        "405": _response("MethodNotAllowed"),
        "414": _response("UriTooLong"),
        "429": _response("TooMany"),
        "500": _response("InternalError"),
        "503": _response("Unavailable"),
    }


def _success(route: Route, example: Any) -> Part:
    content_type = _FORMS.get(route.schema, "application/json")
    content: Part = {content_type: {"schema": ref(route.schema), "example": example}}
    headers = [*_ALWAYS]
    if route.schema != _STREAM:
        headers += _CACHED
    envelope = {**ENVELOPES, **_TABLES, **_LOG}[route.schema]
    if "pagination" in envelope.get("properties", ()) or route.operation_id in _PROVEN:
        headers.append("Link")
    if FORMAT.name in route.by_name:
        content["text/csv"] = {"schema": TEXT, "example": _CSV_EXAMPLES[route.operation_id]}
        headers.append("X-Muniment-Truncated")
    if route.deprecation:
        headers += ["Deprecation", "Sunset"]
    return {"description": "Success.", "headers": _headers(*headers), "content": content}


_LAST_EVENT_ID: Final[Part] = {
    "name": "Last-Event-ID",
    "in": "header",
    "description": "The id of the last event that the client has: the stream continues after it.",
    "schema": {"type": "string", "pattern": "^[0-9]{1,15}(-[0-9a-f]{64})?$"},
    "example": "7",
}
_CONDITIONS: Final[tuple[Part, ...]] = (
    {
        "name": "If-None-Match",
        "in": "header",
        "description": "The ETag of an earlier response: 304 if it is still current.",
        "schema": {"type": "string"},
        "example": '"9f2c5e0a7b1d4c3e8f6a2b10"',
    },
    {
        "name": "If-Modified-Since",
        "in": "header",
        "description": "The Last-Modified of an earlier response, unchanged: 304 if it is still current. Other dates "
        "prove nothing and get the whole response, and If-None-Match comes first; prefer the ETag.",
        "schema": {"type": "string"},
        "example": "Sat, 31 Jan 2026 09:30:00 GMT",
    },
)


def _segment(route: Route) -> list[Part]:
    _, name, _ = route.segment
    if not name:
        return []
    example = _IDS[route.missing]
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "description": f"The {route.missing}'s identifier, from the list.",
            "schema": {"type": "string", "minLength": 1, "maxLength": MAX_SLUG_CHARACTERS},
            "example": example,
        }
    ]


def _parameter(parameter: Parameter) -> Part:
    described: Part = {"name": parameter.name, "in": "query", "description": parameter.description}
    if parameter.required:
        described["required"] = True
    described["schema"] = dict(parameter.schema)
    if parameter.example:
        example: Any = parameter.example
        if parameter.schema.get("type") in {"integer", "boolean"}:
            example = msgspec.json.decode(parameter.example)
        described["example"] = example
    return described


TEXT: Final[JsonSchema] = {"type": "string"}
COUNT: Final[JsonSchema] = {"type": "integer", "minimum": 0}
MOMENT: Final[JsonSchema] = {"type": "string", "format": "date-time"}
CHAIN: Final[JsonSchema] = {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}


def _open_object(properties: JsonSchema, *optional: str) -> JsonSchema:
    """Return the schema of an object that can have additional members."""
    schema: Part = {"type": "object", "properties": properties}
    required = [name for name in properties if name not in optional]
    if required:
        schema["required"] = required
    schema["additionalProperties"] = True
    return schema


def ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def _enum(*values: str) -> JsonSchema:
    return {"type": "string", "enum": list(values)}


def _list_of(name: str, *optional: str, **others: JsonSchema) -> JsonSchema:
    return _open_object({"data": {"type": "array", "items": ref(name)}, **others}, *optional)


def _searched(name: str) -> JsonSchema:
    """Return the schema of a list that names similar items if few or none match."""
    closest = _described({"type": "array", "items": ref("Closest")}, "Similar items, if few or none match.")
    hint = _described(TEXT, "Why nothing is found, with values in use.")
    unknown = _described({"type": "array", "items": TEXT}, "Those of `ids` that are not in the registry.")
    others = {"unknownIds": unknown, "closest": closest, "hint": hint, "facets": ref("FacetValues")}
    return _list_of(name, *others, pagination=ref("Pagination"), **others)


def _one(name: str) -> JsonSchema:
    return _open_object({"data": ref(name)})


def _described(schema: JsonSchema, description: str) -> JsonSchema:
    return {**schema, "description": description}


def schemas(schema: Schema) -> dict[str, JsonSchema]:
    records = (
        *(
            SOCIALS,
            ADDRESS,
            FORMER_NAME,
            LOGO,
            VERIFIED_DOMAIN,
            ASSESSMENT,
            schema.company,
            DISTRIBUTION,
            PROPOSAL,
            POSITION,
            CAP_TABLE_ENTRY,
        ),
        *(schema.funding_round, schema.bundle),
        *(schema.person, COMPANY_OF_FRAMEWORK, RANKED_SCORE, schema.framework, STATS),
    )
    members = {each.name: each.schema(CONTRACT) for each in schema.framework.fields if not each.shown}
    detail = _open_object(members, *members)
    return {
        **{record.name: record.definition(CONTRACT) for record in records},
        "FrameworkDetail": {"allOf": [ref("Framework"), detail]},
        "Closest": _open_object({"id": TEXT, "name": TEXT, "why": TEXT}),
        "ClosestOfAll": _open_object({"kind": _enum(*COLLECTIONS), "id": TEXT, "name": TEXT, "why": TEXT}),
        "SearchResult": _open_object(
            {
                "kind": _enum(*COLLECTIONS),
                "id": _described(TEXT, "The slug or frameworkId."),
                "name": TEXT,
                "url": _described({"type": "string", "format": "uri-reference"}, "Its page."),
                "summary": _described(TEXT, "The beginning of its description, without Markdown; may be empty."),
                "matched": _described(TEXT, "By what it is found, such as `name`, `domain river.example` or a person."),
                "symbol": _described(TEXT, "Of a company's token."),
                "type": _described(TEXT, "Of a company."),
                "picture": _described(TEXT, "The address of its logo or picture."),
            },
            *("matched", "symbol", "type", "picture"),
        ),
        **ENVELOPES,
        **_TABLES,
        **_LOG,
    }


ENVELOPES: Final[dict[str, JsonSchema]] = {
    "Error": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": _enum("bad_request", "not_found", "method_not_allowed", "internal_error"),
                    "message": _described(TEXT, "What is wrong, for people."),
                    "hint": _described(TEXT, "How to resolve it."),
                },
                "required": ["code", "message", "hint"],
            }
        },
        "required": ["error"],
    },
    "Pagination": _open_object(
        {
            "page": {"type": "integer", "minimum": 1},
            "pageSize": {"type": "integer", "minimum": 1, "maximum": 100},
            "pageCount": {"type": "integer", "minimum": 1},
            "total": COUNT,
            "nextCursor": _described(TEXT, "The next `cursor`; absent on the last page."),
            "totalIsMinimum": _described(
                {"type": "boolean"},
                "More match: a search that finds very many lists the most relevant or the newest ones, and `total` "
                "counts these.",
            ),
        },
        "nextCursor",
        "totalIsMinimum",
    ),
    "Change": _open_object(
        {
            "sequence": {"type": "integer", "minimum": 1},
            "kind": _enum("company", "person", "framework"),
            "id": _described(TEXT, "The slug or frameworkId."),
            "change": _enum("published", "updated", "unlisted"),
            "at": MOMENT,
            "fields": _described(
                {"type": "array", "items": TEXT},
                "The changed members of an updated company (its parts included), person or framework.",
            ),
            "chain": _described(CHAIN, "A hash over the feed up to this change; for the next `chain`."),
            "document": {
                "type": ["object", "null"],
                "additionalProperties": True,
                "description": "With include=document, the document as it is published now; null if it is not.",
            },
        },
        "fields",
        "document",
    ),
    "Export": _open_object(
        {
            "name": TEXT,
            "url": {"type": "string", "format": "uri-reference"},
            "latestUrl": _described(
                {"type": "string", "format": "uri-reference"}, "Always the newest edition of this file."
            ),
            "rows": COUNT,
            "bytes": COUNT,
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "edition": _described(COUNT, "For GET /api/v1/changes?after="),
            "at": MOMENT,
        }
    ),
    "CompanyList": _searched("Company"),
    "CompanyDetail": _one("CompanyBundle"),
    "CapTablePage": _list_of("CapTableEntry", total=COUNT, nextPage={"type": ["integer", "null"]}),
    "PersonList": _searched("Person"),
    "PersonDetail": _one("Person"),
    "FrameworkList": _list_of("Framework", "facets", facets=ref("FacetValues")),
    "FacetValues": {
        "type": "object",
        "description": "For each filter, the most frequent values and those that the query has chosen.",
        "additionalProperties": _open_object(
            {
                "values": {
                    "type": "array",
                    "items": _open_object({"value": TEXT, "count": COUNT, "selected": {"type": "boolean"}}, "selected"),
                },
                "more": _described(COUNT, "The number of further values."),
            }
        ),
    },
    "Facets": _open_object({"data": ref("FacetValues"), "total": _described(COUNT, "What the query finds.")}),
    "FrameworkOne": _one("FrameworkDetail"),
    "ScorePage": _list_of("RankedScore", total=COUNT, nextPage={"type": ["integer", "null"]}),
    "StatsOne": _one("Stats"),
    "SearchResults": _list_of(
        "SearchResult",
        "closest",
        "notUnderstood",
        "hint",
        totals=_described(
            _open_object(dict.fromkeys(COLLECTIONS.values(), COUNT), *COLLECTIONS.values()),
            "The number of matches of each kind that was searched.",
        ),
        closest=_described(
            {"type": "array", "items": ref("ClosestOfAll")}, "Similar items, if no name is or begins with the words."
        ),
        notUnderstood=_described(
            {"type": "array", "items": TEXT},
            "If nothing is found, the words that neither a name in `closest` nor a value of a filter explains.",
        ),
        hint=_described(TEXT, "Why nothing is found, with values in use, or filters that the words name."),
    ),
    "ChangeList": _open_object(
        {
            "data": {"type": "array", "items": ref("Change")},
            "nextAfter": _described(COUNT, "The next `after`."),
            "chain": _described(CHAIN, "The chain after `nextAfter`: the next `chain`; null while it is unknown."),
            "feedId": _described(TEXT, "The feed that the sequence numbers belong to; another if changes were lost."),
            "head": _described(COUNT, "The latest sequence number of the feed."),
        },
        "feedId",
        "head",
    ),
    "ChangeStream": {
        "type": "string",
        "description": "Server-sent events named `change`. The id of an event is the `sequence` of its change, a "
        "hyphen and its `chain`; its data is a `Change`.",
    },
    "ExportList": {
        **_list_of("Export"),
        "properties": {
            **_list_of("Export")["properties"],
            "license": {
                "type": "object",
                "description": "The license of the data, if the registry declares one.",
                "properties": {"name": {"type": "string"}, "url": {"type": "string", "format": "uri"}},
                "required": ["name"],
            },
        },
    },
}


BASE64: Final = {"type": "string", "contentEncoding": "base64"}
_LEAF: Final[dict[str, JsonSchema]] = {
    "kind": {"type": ["string", "null"], "enum": ["company", "person", "framework", None]},
    "key": _described({"type": ["string", "null"]}, "The slug or frameworkId."),
    "change": _enum("published", "updated", "unlisted", "state"),
    "salt": _described({**BASE64, "type": ["string", "null"]}, "Random; null once a person was erased."),
    "digest": {
        "type": ["string", "null"],
        "pattern": "^[0-9a-f]{64}$",
        "description": "SHA-256 of the body of the document's detail; null if there is none.",
    },
}
_LOG: Final[dict[str, JsonSchema]] = {
    "Log": _open_object(
        {
            "origin": _described(TEXT, "The name of the log."),
            "size": _described(COUNT, "The number of its leaves."),
            "root": BASE64,
            "keys": _described({"type": "array", "items": TEXT}, "The keys that sign, the newest first."),
            "successions": _described(
                {"type": "array", "items": TEXT}, "Signed notes by which each former key names the next one."
            ),
            "begunAt": MOMENT,
            "former": {
                "anyOf": [ref("FormerLog"), {"type": "null"}],
                "description": "The log that could not be continued, if this one began instead of it.",
            },
            "checkpointUrl": {"type": "string", "format": "uri-reference"},
            "tilesUrl": {"type": "string", "format": "uri-reference"},
            "witnesses": _described(
                {"type": "array", "items": TEXT}, "The verifier keys of witnesses that are asked to cosign."
            ),
        },
        "witnesses",
    ),
    "Cosigned": _open_object(
        {
            "size": COUNT,
            "checkpoint": _described(TEXT, "The signed note, with the cosignatures."),
            "witnesses": {"type": "array", "items": ref("Cosignature")},
        }
    ),
    "Cosignature": _open_object(
        {
            "key": _described(TEXT, "The verifier key of the witness."),
            "at": {**MOMENT, "description": "When it saw no larger log."},
        }
    ),
    "CosignedList": _list_of("Cosigned"),
    "FormerLog": _open_object({"origin": TEXT, "size": COUNT, "root": {**BASE64, "type": ["string", "null"]}}),
    "LogOne": _one("Log"),
    "Checkpoint": {"type": "string", "description": "A signed note: origin, size, root, and signatures."},
    "Tile": {"type": "string", "format": "binary", "description": "Hashes of 32 bytes, or data of leaves."},
    "LoggedLeaf": _open_object(_LEAF),
    "LogProof": _open_object(
        {
            "index": COUNT,
            "formerSize": COUNT,
            "size": COUNT,
            "leaf": ref("LoggedLeaf"),
            "leafData": BASE64,
            "hashes": {"type": "array", "items": BASE64},
            "checkpoint": _described(TEXT, "The signed note of the log of that size."),
        },
        *("index", "formerSize", "leaf", "leafData", "checkpoint"),
    ),
    "LogProofOne": _one("LogProof"),
    "Leaf": _open_object({"index": COUNT, **_LEAF, "leaf": BASE64}),
    "LeafList": _list_of("Leaf", nextAfter={"type": "integer", "minimum": -1, "description": "The next `after`."}),
}


_TABLES: Final[dict[str, JsonSchema]] = {
    "Column": _open_object({"name": TEXT, "type": _enum("TEXT", "INTEGER", "REAL"), "help": TEXT}),
    "Table": _open_object(
        {"name": TEXT, "help": TEXT, "rows": COUNT, "columns": {"type": "array", "items": ref("Column")}}
    ),
    "TableList": _list_of("Table", edition=_described(COUNT, "The edition that the tables show.")),
    "QueryResult": _open_object(
        {
            "data": _described(
                {"type": "array", "items": {"type": "object", "additionalProperties": True}},
                "The rows, each with its columns as members.",
            ),
            "columns": _described({"type": "array", "items": TEXT}, "The names of the columns in their order."),
            "truncated": {
                "anyOf": [
                    _open_object(
                        {
                            "by": {"type": "array", "items": _enum("bytes", "cells", "rows")},
                            "rows": COUNT,
                            "hint": _described(TEXT, "How to get the rest."),
                        }
                    ),
                    {"type": "null"},
                ],
                "description": "What cut the response; null if it is whole.",
            },
            "edition": _described(COUNT, "The edition that the tables show."),
        }
    ),
}


def examples(schema: Schema) -> JSONObject:
    bundle = schema.bundle.sample()
    company, holder = bundle["company"], bundle["capTable"]
    person, framework = schema.person.sample(), schema.framework.sample()
    listed = {key: value for key, value in person.items() if key != "positions"}
    detailed = {key: value for key, value in person.items() if key != "companyCount"}
    return {
        "CompanyList": {"data": [company], "pagination": _PAGINATION},
        "CompanyDetail": {"data": {**bundle, "distribution": DISTRIBUTION.sample()}},
        "CapTablePage": {"data": holder, "total": 1, "nextPage": None},
        "PersonList": {"data": [listed], "pagination": _PAGINATION},
        "PersonDetail": {"data": detailed},
        "FrameworkList": {"data": [framework]},
        "FrameworkOne": {"data": {**framework, "companyDescription": "", "topScores": [RANKED_SCORE.sample()]}},
        "ScorePage": {"data": [RANKED_SCORE.sample()], "total": 1, "nextPage": None},
        "Facets": {"data": {"status": {"values": [{"value": "active", "count": 1}], "more": 0}}, "total": 1},
        "StatsOne": {"data": STATS.sample()},
        "SearchResults": {"data": [_RESULT], "totals": {"companies": 1, "people": 0, "frameworks": 0}},
        "ChangeList": {
            "data": [_CHANGE],
            "nextAfter": 7,
            "chain": _CHANGE["chain"],
            "feedId": "9f1c2ab34d5e6f70",
            "head": 7,
        },
        "ChangeStream": _EVENT.format(**_CHANGE, data=msgspec.json.encode(_CHANGE).decode()),
        **_log_examples(),
        "ExportList": {"data": [_EXPORT]},
        "TableList": {"data": [_TABLE], "edition": 7},
        "QueryResult": {"data": [{"companies": 1}], "columns": ["companies"], "truncated": None, "edition": 7},
    }


def _log_examples() -> JSONObject:
    salt, digest_of_body = "AAECAwQFBgcICQoLDA0ODw==", "5e" * 32
    node = "XrcYDQtBVfFp0pdU4tvlzZf7PVMCSJ9XWvpBkZCbPJs="
    members = {
        "kind": "company",
        "key": "blue-river-trust",
        "change": "published",
        "salt": salt,
        "digest": digest_of_body,
    }
    origin = "registry.example/9f1c2ab34d5e6f70"
    key = f"{origin}+26f2a3d1+AUVvLqRz7xkS6dU3cJY2x5b8k1O9m4o0w7l3c5h2e6tA"
    witness = "witness.example/w1+67ce7d43+BPR5tU6UHd3BUVaxyoXzD+wxvjaGQ5RPzGdt1BTNvqRo"
    note = f"{origin}\n1\n{node}\n\n\u2014 {origin} JvKj0Q==\n"
    log = {
        "origin": origin,
        "size": 1,
        "root": node,
        "keys": [key],
        "successions": [],
        "begunAt": _CHANGE["at"],
        "former": None,
        "checkpointUrl": "https://registry.example/api/v1/log/checkpoint",
        "tilesUrl": "https://registry.example/api/v1/log/tile",
        "witnesses": [witness],
    }
    cosigned = {"size": 1, "checkpoint": note, "witnesses": [{"key": witness, "at": _CHANGE["at"]}]}
    proof = {"index": 0, "size": 1, "leaf": members, "leafData": node, "hashes": [], "checkpoint": note}
    return {
        "LogOne": {"data": log},
        "CosignedList": {"data": [cosigned]},
        "Checkpoint": note,
        "Tile": "",
        "LogProofOne": {"data": proof},
        "LeafList": {"data": [{"index": 0, **members, "leaf": node}], "nextAfter": 0},
    }


_TABLE: Final = {
    "name": "themes",
    "help": "Themes of companies, one per row.",
    "rows": 1,
    "columns": [{"name": "company", "type": "TEXT", "help": "The slug of the company."}],
}


_PAGINATION: Final = {"page": 1, "pageSize": 25, "pageCount": 1, "total": 1}
_RESULT: Final = {
    "kind": "company",
    "id": "blue-river-trust",
    "name": "Blue River Trust",
    "url": "https://registry.example/companies/blue-river-trust",
    "summary": "Looks after a river.",
    "type": "nonprofit",
}
_CHANGE: Final = {
    "sequence": 7,
    "kind": "company",
    "id": "blue-river-trust",
    "change": "updated",
    "at": "2026-01-31T09:30:00.000000Z",
    "fields": ["treasury", "positions"],
    "chain": "5e" * 32,
}
_EVENT: Final = "id: {sequence}-{chain}\nevent: change\ndata: {data}\n\n"
_EXPORT: Final = {
    "name": "companies-7-9f86d081.jsonl.gz",
    "url": "https://registry.example/exports/companies-7-9f86d081.jsonl.gz",
    "latestUrl": "https://registry.example/exports/companies-latest.jsonl.gz",
    "rows": 1,
    "bytes": 412,
    "sha256": "0" * 64,
    "edition": 7,
    "at": "2026-01-31T09:40:00.000000Z",
}

ERROR_EXAMPLES: Final = {
    "bad_request": BadRequest(
        'page is "0"; it takes a whole number from 1 to 999999999999999, in digits, at most once.',
        "For example: /api/v1/companies?page=1",
    ),
    "not_found": NotFound(
        'There is no company with the slug "blue-rivr".',
        "GET /api/v1/companies lists all; the id of each item is its slug.",
    ),
    "method_not_allowed": MethodNotAllowed("POST", "GET, HEAD, OPTIONS"),
    "uri_too_long": BadRequest("The URL is longer than 16 KB.", "Split it into several requests."),
    "too_many": BadRequest("Too many requests.", "Wait as long as Retry-After says."),
    "internal_error": Internal("01jexample0000000000000000"),
    "unavailable": Unavailable("Too many searches are running.", "Try again in a few seconds."),
}
_IDS: Final = {
    "company": "blue-river-trust",
    "person": "ada-fluss",
    "framework": "river-score",
    "tile": "0/000.p/1",
}
"""An example of what each segment identifies."""
_FORMS: Final = {
    "ChangeStream": "text/event-stream",
    "Checkpoint": "text/plain; charset=utf-8",
    "Tile": "application/octet-stream",
}
"""The media types of what is not JSON."""
_CSV_EXAMPLES: Final = {
    "listCompanies": "id,name,symbol\r\nblue-river-trust,Blue River Trust,BLUE\r\n",
    "listPeople": 'slug,name,positions\r\nada-fluss,Ada Fluss,"Steward, Blue River Trust"\r\n',
    "listFrameworks": "frameworkId,frameworkName\r\nriver-score,River score\r\n",
    "listCapTable": "address,name,tokens,percentage\r\n0x00000000000000000000000000000000000000b1,Treasury,500000,\r\n",
    "listScores": "rank,company.id,company.name,score\r\n1,blue-river-trust,Blue River Trust,81.5\r\n",
    "query": "companies\r\n60\r\n",
}


class ReferencePage:
    """A document that depends on nothing but settings, generated on first use."""

    def __init__(self, content_type: bytes, make: Callable[[], bytes]) -> None:
        self._content_type = content_type
        self._make = make
        self._answer: Answer | None = None
        self._settings = applied()

    def answer(self, _context: Context) -> Answer:
        if self._answer is None or self._settings is not applied():
            self._settings = applied()
            body = self._make()
            self._answer = Answer(body, digest(body).encode(), content_type=self._content_type)
        return self._answer


def build(config: Config, schema: Schema) -> dict[str, ReferencePage]:
    return {
        "/openapi.json": ReferencePage(
            b"application/json", lambda: msgspec.json.encode(openapi_document(config, schema))
        ),
        "/llms.txt": ReferencePage(b"text/plain; charset=utf-8", lambda: llms_text(config).encode()),
    }


def llms_text(config: Config) -> str:
    """
    Return a one-page description for language models.

    Source: llmstxt.org.
    """
    base = config.base_url
    licence = declared_licence()
    terms = f"\n\nThe data are licensed under {' '.join(licence.values())}." if licence else ""
    routes = "\n".join(f"- [{route.summary}]({base}{route.path}): {route.description}" for route in ROUTES)
    return f"""# {registry_name()}

> A public registry of reviewed companies, DAOs, nonprofits, accelerators and funds, the people who work there and \
the frameworks that assess them. Read-only JSON over HTTP GET without an API key, and tools over MCP.

Lists take `page` and `pageSize` (at most 100) or `cursor`, and `q` to search. Details take the \
`id` (companies), `slug` (people) or `frameworkId` of a list item. \
Errors are `{{"error": {{"code", "message", "hint"}}}}`; \
the hint says what to do next. Responses have an `ETag`; send it as `If-None-Match`.{terms}

## REST API

{routes}

## Contract

- [OpenAPI 3.1]({base}/openapi.json): every parameter, response and error
- [Documentation]({base}/docs): the same for people, guides with samples, and every tool

## Tools for agents (MCP, Streamable HTTP)

- [Public tools]({base}/api/mcp): the same registry, read-only, without sign-in
- [Owner tools]({base}/api/manage/mcp): your companies, documents, credits and reports; requires sign-in
- [Manifest]({base}/.well-known/mcp.json): how to connect
"""
