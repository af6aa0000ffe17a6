"""Schemas of the public tools' answers: short, since a model reads them all before its first call."""

from typing import Any

STRING: dict[str, Any] = {"type": "string"}
INTEGER: dict[str, Any] = {"type": "integer"}
NUMBER: dict[str, Any] = {"type": "number"}
BOOLEAN: dict[str, Any] = {"type": "boolean"}


def _text_or_null() -> dict[str, Any]:
    return {"type": ["string", "null"]}


def _object(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **({"required": list(required)} if required else {})}


def _list(item: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": item}


COMPANY_ITEM = _object(
    {
        "id": {"type": "string", "description": "the slug, for get_company"},
        "name": STRING,
        "symbol": STRING,
        "status": {"enum": ["active", "upcoming", "inactive"]},
        "type": STRING,
        "industry": STRING,
        "orgKind": STRING,
        "themes": _list(STRING),
        "treasury": {"type": "string", "description": "such as $1.2M"},
        "teamSize": INTEGER,
        "description": STRING,
        "website": STRING,
        "createdAt": {"type": "string", "description": "listing month, such as March 2024"},
        "updatedAt": STRING,
        "raising": BOOLEAN,
        "body": _text_or_null(),
        "bodyTruncated": BOOLEAN,
        "bodyUrl": {"type": "string", "description": "where the whole is"},
    },
    ("id", "name"),
)
COMPANY = _object(
    {
        **COMPANY_ITEM["properties"],
        "dao_website": STRING,
        "icon": STRING,
        "socials": {"type": ["object", "null"]},
        "address": {"type": ["array", "null"]},
    },
    ("id", "name"),
)
BUNDLE = _object(
    {
        "company": COMPANY,
        "distribution": {"type": ["object", "null"]},
        "proposals": _list(
            _object(
                {
                    "id": STRING,
                    "title": STRING,
                    "status": {"enum": ["active", "passed", "failed", "pending"]},
                    "votes": _object({"for": NUMBER, "against": NUMBER}),
                    "endDate": STRING,
                }
            )
        ),
        "positions": _list(_object({"title": STRING, "person": _object({"name": STRING, "slug": STRING})})),
        "capTable": _list(_object({"address": STRING, "name": STRING, "tokens": STRING, "percentage": NUMBER})),
        "proposalsTotal": INTEGER,
        "positionsTotal": INTEGER,
        "capTableTotal": INTEGER,
    },
    ("company",),
)
_PERSON = {
    "documentId": STRING,
    "name": STRING,
    "slug": {"type": "string", "description": "for get_person"},
    "bio": _text_or_null(),
}
PERSON_ITEM = _object({**_PERSON, "companyCount": INTEGER}, ("name", "slug"))
PERSON = _object(
    {
        **_PERSON,
        "positions": _list(
            _object({"title": STRING, "company": _object({"id": STRING, "name": STRING, "slug": STRING})})
        ),
        "positionsTotal": INTEGER,
    },
    ("name", "slug"),
)
_FRAMEWORK = {
    "frameworkId": STRING,
    "frameworkName": STRING,
    "description": {"type": "string", "description": "markdown"},
    "kind": {"enum": ["score", "program"]},
    "isOpen": {"type": "boolean", "description": "whether it can be run"},
    "company": {"type": ["object", "null"]},
}
FRAMEWORK_ITEM = _object({**_FRAMEWORK, "descriptionTruncated": BOOLEAN}, ("frameworkId", "frameworkName", "kind"))
FRAMEWORK = _object({**_FRAMEWORK, "companyDescription": STRING}, ("frameworkId", "frameworkName", "kind"))
STATS = _object(
    {
        "total": {"type": "integer", "description": "companies"},
        "projectsRaising": INTEGER,
        "totalTreasury": STRING,
        "founders": {"type": "integer", "description": "people"},
        "frameworks": INTEGER,
    },
    ("total",),
)
FORM_OPTIONS = _object({"status": _list(STRING), "type": _list(STRING), "limits": {"type": "object"}})
PAGINATION = _object(
    {"page": INTEGER, "pageSize": INTEGER, "pageCount": INTEGER, "total": INTEGER},
    ("page", "pageSize", "pageCount", "total"),
)
NEXT_PAGE: dict[str, Any] = {"type": ["integer", "null"], "description": "the next page to ask for, null at the end"}

HINT: dict[str, Any] = {"type": "string", "description": "where fewer items fit than were asked for: how to go on"}


def single(data: dict[str, Any]) -> dict[str, Any]:
    """Give the answer of a tool that shows one thing."""
    return {"data": data}


def paged(item: dict[str, Any]) -> dict[str, Any]:
    """Give the answer of a tool that pages through a list."""
    return {"data": _list(item), "pagination": PAGINATION, "nextPage": NEXT_PAGE, "hint": HINT}


def listed(item: dict[str, Any]) -> dict[str, Any]:
    """Give the answer of a tool that shows a whole list."""
    return {"data": _list(item), "nextPage": {"type": "null"}, "hint": HINT}
