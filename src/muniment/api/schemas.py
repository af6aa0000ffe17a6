"""
The JSON Schemas of responses (in the dialect of OpenAPI 3.1), with fictional examples.

Source: service document, Resources and their fields; decisions, section 2, absent values and additions.
"""

from typing import Final

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Internal, MethodNotAllowed, NotFound
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

TEXT: Final[JsonSchema] = {"type": "string"}
COUNT: Final[JsonSchema] = {"type": "integer", "minimum": 0}
MOMENT: Final[JsonSchema] = {"type": "string", "format": "date-time"}
CHAIN: Final[JsonSchema] = {"type": ["string", "null"], "pattern": "^[0-9a-f]{64}$"}


def _open_object(properties: JsonSchema, *optional: str) -> JsonSchema:
    """Return the schema of an object that can have additional members."""
    required = [name for name in properties if name not in optional]
    return {
        "type": "object",
        "properties": properties,
        **({"required": required} if required else {}),
        "additionalProperties": True,
    }


def ref(name: str) -> JsonSchema:
    return {"$ref": f"#/components/schemas/{name}"}


def _enum(*values: str) -> JsonSchema:
    return {"type": "string", "enum": list(values)}


def _list_of(name: str, *optional: str, **others: JsonSchema) -> JsonSchema:
    return _open_object({"data": {"type": "array", "items": ref(name)}, **others}, *optional)


def _searched(name: str) -> JsonSchema:
    """Return the schema of a list that says what is close, if nothing or little is found."""
    closest = _described({"type": "array", "items": ref("Closest")}, "What is close, if little or nothing is found.")
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
        },
        "fields",
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
            {"type": "array", "items": ref("ClosestOfAll")}, "What is close, if no name is or begins with the words."
        ),
        notUnderstood=_described(
            {"type": "array", "items": TEXT}, "If nothing is found, the words that are in no name of what is close."
        ),
        hint=_described(TEXT, "Why nothing is found, with values in use."),
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
        "ExportList": {"data": [_EXPORT]},
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
    "too_many": BadRequest("Too many requests.", "Wait as long as Retry-After says."),
    "internal_error": Internal("01jexample0000000000000000"),
}
