"""The shapes of the service document, written by hand from it: independent of what the product says of itself."""

from typing import Any

import jsonschema


def _object(required: tuple[str, ...] = (), *, closed: bool = False, **properties: Any) -> dict[str, Any]:
    shape: dict[str, Any] = {"type": "object", "required": list(required), "properties": properties}
    if closed:
        shape["additionalProperties"] = False
    return shape


STRING: dict[str, Any] = {"type": "string"}
NUMBER: dict[str, Any] = {"type": "number"}
DATE: dict[str, Any] = {"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"}
TEXT_OR_NULL: dict[str, Any] = {"type": ["string", "null"]}


def _list(items: dict[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": items}


def _or_null(shape: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [shape, {"type": "null"}]}


SOCIALS = ("email", "phone_number", "facebook", "instagram", "tiktok", "linkedin", "youtube", "twitter")
ADDRESS = ("address_1", "address_2", "city", "state", "zip", "country")

COMPANY = _object(
    ("id", "name", "body", "socials", "address"),
    id=STRING,
    name=STRING,
    symbol=STRING,
    teamSize={"type": "integer", "minimum": 0},
    treasury={"type": "string", "pattern": r"^\$\d{1,4}(\.[1-9])?[KMBT]?$"},
    treasuryAmount=_object(
        ("amount", "currency"),
        closed=True,
        amount={"type": "string", "pattern": r"^\d+\.\d\d$"},
        currency={"const": "USD"},
    ),
    status={"enum": ["active", "upcoming", "inactive"]},
    type=STRING,
    industry=STRING,
    orgKind=STRING,
    themes=_list(STRING),
    description=STRING,
    body=TEXT_OR_NULL,
    website=STRING,
    dao_website=STRING,
    createdAt={
        "pattern": r"^(January|February|March|April|May|June|July|August|September|October|November|December) \d{4}$"
    },
    listedAt={"type": "string", "pattern": r"^\d{4}-\d\d-\d\d$"},
    icon=STRING,
    socials=_or_null(_object(SOCIALS, closed=True, **dict.fromkeys(SOCIALS, TEXT_OR_NULL))),
    address=_or_null(_list(_object((*ADDRESS, "id"), id=STRING, **dict.fromkeys(ADDRESS, TEXT_OR_NULL)))),
)
DISTRIBUTION = _or_null(
    _object(
        method=STRING,
        details=STRING,
        schedule=STRING,
        vestingPeriod=STRING,
        pools=_list(_object(("id",), id=STRING, name=STRING, percentage=NUMBER)),
    )
)
PROPOSAL = _object(
    ("id",),
    id=STRING,
    title=STRING,
    status={"enum": ["active", "passed", "failed", "pending"]},
    votes=_object(("for", "against"), **{"for": NUMBER, "against": NUMBER}),
    endDate=STRING,
)
POSITION = _object(
    ("id", "person"), id=STRING, title=STRING, person=_object(("name", "slug"), name=STRING, slug=STRING)
)
HOLDER = _object(("id",), id=STRING, address=STRING, name=STRING, tokens=STRING, percentage=NUMBER)
ROUND = _object(("id",), id=STRING, name=STRING, target=STRING, opened=DATE)
ROUND["properties"]["closed"] = DATE
BUNDLE = _object(
    ("company", "distribution", "proposals", "positions", "capTable", "fundingRounds"),
    company=COMPANY,
    distribution=DISTRIBUTION,
    proposals=_list(PROPOSAL),
    positions=_list(POSITION),
    capTable=_list(HOLDER),
    fundingRounds=_list(ROUND),
)
PERSON = _object(("name", "slug", "bio"), documentId=STRING, name=STRING, slug=STRING, bio=TEXT_OR_NULL)
COMPANY_OF_POSITION = _object(
    ("id", "name", "slug"), id=STRING, name=STRING, slug=STRING, symbol=TEXT_OR_NULL, icon=TEXT_OR_NULL
)
FRAMEWORK = _object(
    ("frameworkId", "frameworkName", "description", "kind", "isOpen", "company"),
    frameworkId=STRING,
    frameworkName=STRING,
    description=STRING,
    kind={"enum": ["score", "program"]},
    isOpen={"type": "boolean"},
    company=_or_null(
        _object(("id", "name"), id=STRING, name=STRING, slug=TEXT_OR_NULL, symbol=TEXT_OR_NULL, icon=STRING)
    ),
)
STATS = _object(
    ("total", "projectsRaising", "totalTreasury", "founders", "frameworks"),
    total={"type": "integer"},
    projectsRaising={"type": "integer"},
    totalTreasury=STRING,
    founders={"type": "integer"},
    frameworks={"type": "integer"},
)
PAGINATION = _object(
    ("page", "pageSize", "pageCount", "total"),
    page={"type": "integer", "minimum": 1},
    pageSize={"type": "integer", "minimum": 1, "maximum": 100},
    pageCount={"type": "integer", "minimum": 1},
    total={"type": "integer", "minimum": 0},
)
ERROR = _object(
    ("error",),
    closed=True,
    error=_object(
        ("code", "message", "hint"),
        closed=True,
        code={"enum": ["bad_request", "not_found", "method_not_allowed", "internal_error"]},
        message={"type": "string", "minLength": 1},
        hint={"type": "string", "minLength": 1},
    ),
)


def check(value: Any, shape: dict[str, Any]) -> None:
    """
    Compare *value* with *shape*.

    Raises:
        jsonschema.ValidationError: it differs; names the place.
    """
    jsonschema.validate(value, shape, cls=jsonschema.Draft202012Validator)


def check_error(answer: Any, status: int, code: str) -> dict[str, str]:
    """Check that *answer* is the error envelope with *status* and *code*, and give what it holds."""
    assert answer.status == status, answer
    assert answer.headers["content-type"].startswith("application/json"), answer
    envelope = answer.json()
    check(envelope, ERROR)
    assert envelope["error"]["code"] == code, envelope
    found: dict[str, str] = envelope["error"]
    return found
