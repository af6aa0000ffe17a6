"""
The shapes of answers, as JSON Schema (the dialect of OpenAPI 3.1), with fictional examples.

Source: service document, Resources and their fields; decisions, section 2, absent values and additions.
"""

from typing import Any, Final

Schema = dict[str, Any]

TEXT: Final[Schema] = {"type": "string"}
COUNT: Final[Schema] = {"type": "integer", "minimum": 0}
MOMENT: Final[Schema] = {"type": "string", "format": "date-time"}


def open_object(properties: Schema, required: tuple[str, ...] = (), description: str = "") -> Schema:
    """Describe an object that may carry further members."""
    said = {"description": description} if description else {}
    return {
        "type": "object",
        **said,
        "properties": properties,
        **({"required": list(required)} if required else {}),
        "additionalProperties": True,
    }


def ref(name: str) -> Schema:
    """Point at a shape."""
    return {"$ref": f"#/components/schemas/{name}"}


def array_of(items: Schema) -> Schema:
    """Describe a list."""
    return {"type": "array", "items": items}


def _said(schema: Schema, description: str) -> Schema:
    return {**schema, "description": description}


def nullable(*types: str) -> Schema:
    """Describe a value that may be null."""
    return {"type": [*types, "null"]}


_SOCIALS = ("email", "phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube", "twitter")
_ADDRESS = ("address_1", "address_2", "city", "state", "zip")

SCHEMAS: Final[dict[str, Schema]] = {
    "Error": {
        "type": "object",
        "properties": {
            "error": {
                "type": "object",
                "properties": {
                    "code": {
                        "type": "string",
                        "enum": ["bad_request", "not_found", "method_not_allowed", "internal_error"],
                    },
                    "message": _said(TEXT, "What is wrong, for people."),
                    "hint": _said(TEXT, "How to resolve it."),
                },
                "required": ["code", "message", "hint"],
            }
        },
        "required": ["error"],
    },
    "Pagination": open_object(
        {
            "page": {"type": "integer", "minimum": 1},
            "pageSize": {"type": "integer", "minimum": 1, "maximum": 100},
            "pageCount": {"type": "integer", "minimum": 1},
            "total": COUNT,
            "nextCursor": _said(TEXT, "For `cursor`; absent on the last page."),
        },
        ("page", "pageSize", "pageCount", "total"),
    ),
    "Socials": open_object({name: nullable("string") for name in _SOCIALS}, _SOCIALS),
    "Address": open_object({name: nullable("string") for name in _ADDRESS}, _ADDRESS),
    "Company": open_object(
        {
            "id": _said(TEXT, "Stable identifier, the company's slug."),
            "name": TEXT,
            "symbol": _said(TEXT, "Token symbol, present when the company has a token."),
            "teamSize": COUNT,
            "treasury": _said(TEXT, "Formatted treasury size, such as $1.2M."),
            "status": {"type": "string", "enum": ["active", "upcoming", "inactive"]},
            "type": _said(TEXT, "Organization type, such as corporation, DAO, non-profit, accelerator."),
            "industry": TEXT,
            "orgKind": TEXT,
            "themes": array_of(TEXT),
            "description": TEXT,
            "body": _said(nullable("string"), "Long-form markdown description."),
            "website": TEXT,
            "dao_website": TEXT,
            "createdAt": _said(TEXT, "Listing date as month and year."),
            "icon": _said(TEXT, "Logo URL."),
            "socials": {"anyOf": [ref("Socials"), {"type": "null"}]},
            "address": {"anyOf": [array_of(ref("Address")), {"type": "null"}]},
            "raising": _said({"type": "boolean"}, "Whether a funding round is open."),
            "updatedAt": _said(MOMENT, "When the listing last changed."),
        },
        ("id", "name"),
    ),
    "Distribution": open_object(
        {
            "method": TEXT,
            "details": TEXT,
            "schedule": TEXT,
            "vestingPeriod": TEXT,
            "pools": array_of(open_object({"name": TEXT, "percentage": {"type": "number"}})),
        }
    ),
    "Proposal": open_object(
        {
            "id": TEXT,
            "title": TEXT,
            "status": {"type": "string", "enum": ["active", "passed", "failed", "pending"]},
            "votes": open_object({"for": {"type": "number"}, "against": {"type": "number"}}),
            "endDate": TEXT,
        }
    ),
    "Position": open_object(
        {
            "title": TEXT,
            "person": open_object({"name": TEXT, "slug": _said(TEXT, "For GET /api/v1/people/{slug}.")}),
        }
    ),
    "CapTableEntry": open_object(
        {"address": TEXT, "name": TEXT, "tokens": TEXT, "percentage": {"type": "number"}},
        description="A token holder.",
    ),
    "CompanyBundle": open_object(
        {
            "company": ref("Company"),
            "distribution": {"anyOf": [ref("Distribution"), {"type": "null"}]},
            "proposals": array_of(ref("Proposal")),
            "positions": array_of(ref("Position")),
            "capTable": array_of(ref("CapTableEntry")),
        },
        ("company",),
    ),
    "Person": open_object(
        {
            "documentId": TEXT,
            "name": TEXT,
            "slug": _said(TEXT, "Stable identifier."),
            "bio": nullable("string"),
            "companyCount": _said(COUNT, "Reviewed companies where the person holds a position; in lists only."),
            "positions": _said(
                array_of(
                    open_object(
                        {
                            "title": TEXT,
                            "company": open_object(
                                {"id": TEXT, "name": TEXT, "slug": TEXT, "symbol": TEXT, "icon": TEXT}
                            ),
                        }
                    )
                ),
                "In the detail only.",
            ),
            "updatedAt": MOMENT,
        },
        ("name", "slug"),
    ),
    "FrameworkCompany": open_object(
        {
            "id": TEXT,
            "name": TEXT,
            "slug": nullable("string"),
            "symbol": nullable("string"),
            "icon": TEXT,
        },
        description="The company behind the framework.",
    ),
    "Framework": open_object(
        {
            "frameworkId": TEXT,
            "frameworkName": TEXT,
            "description": _said(TEXT, "What the framework assesses, markdown; empty when not yet authored."),
            "kind": {"type": "string", "enum": ["score", "program"]},
            "isOpen": _said({"type": "boolean"}, "False until the specification is authored."),
            "company": {"anyOf": [ref("FrameworkCompany"), {"type": "null"}]},
        },
        ("frameworkId", "frameworkName", "description", "kind", "isOpen"),
    ),
    "FrameworkDetail": {
        "allOf": [
            ref("Framework"),
            open_object({"companyDescription": _said(TEXT, "The company's own description, markdown.")}),
        ]
    },
    "Stats": open_object(
        {
            "total": _said(COUNT, "Reviewed companies."),
            "projectsRaising": _said(COUNT, "Companies with an open funding round."),
            "totalTreasury": _said(TEXT, "Combined treasury, formatted."),
            "founders": _said(COUNT, "People profiles."),
            "frameworks": _said(COUNT, "Assessment frameworks of both kinds."),
        },
        ("total", "projectsRaising", "totalTreasury", "founders", "frameworks"),
    ),
    "Change": open_object(
        {
            "sequence": {"type": "integer", "minimum": 1},
            "kind": {"type": "string", "enum": ["company", "person", "framework"]},
            "id": _said(TEXT, "The slug or frameworkId."),
            "change": {"type": "string", "enum": ["published", "updated", "unlisted"]},
            "at": MOMENT,
        },
        ("sequence", "kind", "id", "change", "at"),
    ),
    "Export": open_object(
        {
            "name": TEXT,
            "url": {"type": "string", "format": "uri-reference"},
            "rows": COUNT,
            "bytes": COUNT,
            "sha256": {"type": "string", "pattern": "^[0-9a-f]{64}$"},
            "edition": _said(COUNT, "For GET /api/v1/changes?after="),
            "at": MOMENT,
        },
        ("name", "url", "rows", "bytes", "sha256", "edition", "at"),
    ),
    "CompanyList": open_object(
        {"data": array_of(ref("Company")), "pagination": ref("Pagination")}, ("data", "pagination")
    ),
    "CompanyDetail": open_object({"data": ref("CompanyBundle")}, ("data",)),
    "CapTablePage": open_object(
        {"data": array_of(ref("CapTableEntry")), "total": COUNT, "nextPage": nullable("integer")},
        ("data", "total", "nextPage"),
    ),
    "PersonList": open_object(
        {"data": array_of(ref("Person")), "pagination": ref("Pagination")}, ("data", "pagination")
    ),
    "PersonDetail": open_object({"data": ref("Person")}, ("data",)),
    "FrameworkList": open_object({"data": array_of(ref("Framework"))}, ("data",)),
    "FrameworkOne": open_object({"data": ref("FrameworkDetail")}, ("data",)),
    "StatsOne": open_object({"data": ref("Stats")}, ("data",)),
    "ChangeList": open_object(
        {"data": array_of(ref("Change")), "nextAfter": _said(COUNT, "The next `after`.")}, ("data", "nextAfter")
    ),
    "ExportList": open_object({"data": array_of(ref("Export"))}, ("data",)),
}

_COMPANY: Final[dict[str, Any]] = {
    "id": "blue-river-trust",
    "name": "Blue River Trust",
    "symbol": "BLUE",
    "teamSize": 1,
    "treasury": "$1.2M",
    "status": "active",
    "type": "DAO",
    "industry": "Water",
    "orgKind": "foundation",
    "themes": ["public goods"],
    "description": "Keeps the Blue River clean.",
    "body": None,
    "website": "https://blue-river.example",
    "createdAt": "March 2024",
    "socials": None,
    "address": None,
    "raising": False,
    "updatedAt": "2026-01-31T09:30:00.000000Z",
}
_PAGINATION: Final = {"page": 1, "pageSize": 25, "pageCount": 1, "total": 1}
_HOLDER: Final = {"address": "0x00000000000000000000000000000000000000b1", "name": "Treasury", "tokens": "500000"}
_FRAMEWORK: Final[dict[str, Any]] = {
    "frameworkId": "river-score",
    "frameworkName": "River score",
    "description": "How well an organization looks after a river.",
    "kind": "score",
    "isOpen": True,
    "company": None,
}
_PERSON: Final[dict[str, Any]] = {
    "documentId": "01jexample0000000000000000",
    "name": "Ada Fluss",
    "slug": "ada-fluss",
    "bio": None,
    "updatedAt": "2026-01-31T09:30:00.000000Z",
}

EXAMPLES: Final[dict[str, Any]] = {
    "CompanyList": {"data": [_COMPANY], "pagination": _PAGINATION},
    "CompanyDetail": {
        "data": {
            "company": _COMPANY,
            "distribution": {"method": "airdrop", "pools": [{"name": "Community", "percentage": 60}]},
            "proposals": [
                {
                    "id": "1",
                    "title": "Plant willows",
                    "status": "passed",
                    "votes": {"for": 12, "against": 1},
                    "endDate": "2025-06-30",
                }
            ],
            "positions": [{"title": "Steward", "person": {"name": "Ada Fluss", "slug": "ada-fluss"}}],
            "capTable": [_HOLDER],
        }
    },
    "CapTablePage": {"data": [_HOLDER], "total": 1, "nextPage": None},
    "PersonList": {"data": [{**_PERSON, "companyCount": 1}], "pagination": _PAGINATION},
    "PersonDetail": {
        "data": {
            **_PERSON,
            "positions": [
                {
                    "title": "Steward",
                    "company": {
                        "id": "blue-river-trust",
                        "name": "Blue River Trust",
                        "slug": "blue-river-trust",
                        "symbol": "BLUE",
                    },
                }
            ],
        }
    },
    "FrameworkList": {"data": [_FRAMEWORK]},
    "FrameworkOne": {"data": {**_FRAMEWORK, "companyDescription": ""}},
    "StatsOne": {"data": {"total": 1, "projectsRaising": 0, "totalTreasury": "$1.2M", "founders": 1, "frameworks": 1}},
    "ChangeList": {
        "data": [
            {
                "sequence": 7,
                "kind": "company",
                "id": "blue-river-trust",
                "change": "updated",
                "at": "2026-01-31T09:30:00.000000Z",
            }
        ],
        "nextAfter": 7,
    },
    "ExportList": {
        "data": [
            {
                "name": "companies-7.jsonl.gz",
                "url": "https://registry.example/exports/companies-7.jsonl.gz",
                "rows": 1,
                "bytes": 412,
                "sha256": "0" * 64,
                "edition": 7,
                "at": "2026-01-31T09:40:00.000000Z",
            }
        ]
    },
}

ERROR_EXAMPLES: Final[dict[str, Any]] = {
    "bad_request": {
        "code": "bad_request",
        "message": 'page is "0"; it takes a whole number from 1 to 999999999999999, in digits, at most once.',
        "hint": "For example: /api/v1/companies?page=1",
    },
    "not_found": {
        "code": "not_found",
        "message": 'There is no company with the slug "blue-rivr".',
        "hint": "GET /api/v1/companies lists what there is; the id of each item is its slug.",
    },
    "method_not_allowed": {
        "code": "method_not_allowed",
        "message": "POST is not allowed here.",
        "hint": "Use one of: GET, HEAD, OPTIONS.",
    },
    "too_many": {
        "code": "bad_request",
        "message": "Too many requests.",
        "hint": "Wait as long as Retry-After says.",
    },
    "internal_error": {
        "code": "internal_error",
        "message": "Something went wrong on our side (request 01jexample0000000000000000).",
        "hint": "Try again; if the error persists, send the operator the request id.",
    },
}
