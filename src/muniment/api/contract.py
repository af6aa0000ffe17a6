"""The machine-readable contract, OpenAPI 3.1, made from the declarations that check the requests."""

from importlib.metadata import version
from typing import Any, Final

import msgspec

from muniment.api.parameters import Parameter
from muniment.api.routes import ROUTES, Route
from muniment.api.schemas import ENVELOPES, ERROR_EXAMPLES, examples, ref, schemas
from muniment.config import Config
from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.schema.objects import Schema

Part = dict[str, Any]


def _header(description: str, example: str, schema: Part | None = None) -> Part:
    return {"description": description, "schema": schema or {"type": "string"}, "example": example}


HEADERS: Final[dict[str, Part]] = {
    "ETag": _header("This version in this encoding; send it back as If-None-Match.", '"9f2c5e0a7b1d4c3e8f6a2b10"'),
    "Last-Modified": _header("When what is shown last changed.", "Sat, 31 Jan 2026 09:30:00 GMT"),
    "Cache-Control": _header("How long it may be reused.", "public, max-age=30, stale-while-revalidate=300"),
    "Vary": _header("What the answer depends on.", "Accept-Encoding"),
    "Link": _header(
        "Neighbouring pages (RFC 8288): first, prev, next, last.", '</api/v1/companies?page=2&pageSize=25>; rel="next"'
    ),
    "X-Request-Id": _header("Echoed, or made; quote it when something went wrong.", "01jexample0000000000000000"),
    "RateLimit": _header("What is left of what the client may ask at once.", '"burst";r=99;t=1'),
    "X-Muniment-Edition": _header("The edition that this node shows; it grows with each published change.", "1204"),
    "RateLimit-Policy": _header("The client's rate, and how much at once.", '"default";q=600;w=60, "burst";q=100;w=10'),
    "Retry-After": _header("Seconds to wait.", "2", {"type": "integer", "minimum": 0}),
    "Allow": _header("The methods that the address takes.", "GET, HEAD, OPTIONS"),
    "Deprecation": _header("When the route became deprecated (RFC 9745).", "@1767225600"),
    "Sunset": _header("When the route goes (RFC 8594).", "Wed, 01 Apr 2026 00:00:00 GMT"),
}
_ALWAYS: Final = ("X-Request-Id", "X-Muniment-Edition", "RateLimit", "RateLimit-Policy")
_CACHED: Final = ("ETag", "Last-Modified", "Cache-Control", "Vary")
_TAGS: Final = {
    "Companies": "Reviewed companies, DAOs, nonprofits, accelerators, incubators and funds.",
    "People": "The people who hold positions there.",
    "Frameworks": "What they are assessed by.",
    "Registry": "The registry as a whole.",
}


def openapi_document(config: Config, schema: Schema) -> Part:
    """Return the whole contract."""
    shown = examples(schema)
    paths = {}
    for route in ROUTES:
        operation = _operation(route, shown[route.schema])
        paths[route.path] = {"get": operation, "head": _head(operation)}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": config.registry_name,
            "version": version("muniment"),
            "summary": "A public registry of reviewed organizations, people and assessment frameworks.",
            "description": (
                "Read-only JSON over HTTP GET, without any key. Within v1 changes are additive only: tolerate members "
                "that you do not know. Every refusal is `{error: {code, message, hint}}`; branch on `error.code`."
            ),
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": config.base_url or "/"}],
        "tags": [{"name": name, "description": description} for name, description in _TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": schemas(schema),
            "headers": HEADERS,
            "responses": {
                "BadRequest": _refusal("A parameter holds what it does not take.", "bad_request"),
                "NotFound": _refusal("Nothing has this name.", "not_found"),
                "MethodNotAllowed": _refusal("Only GET, HEAD and OPTIONS.", "method_not_allowed", "Allow"),
                "TooMany": _refusal("The client's rate is used up.", "too_many", "Retry-After"),
                "InternalError": _refusal("Something broke on this side.", "internal_error"),
                "NotModified": {
                    "description": "The version that If-None-Match names is still the current one.",
                    "headers": _headers(*_ALWAYS, *_CACHED),
                },
            },
        },
    }


def _headers(*names: str) -> Part:
    return {name: {"$ref": f"#/components/headers/{name}"} for name in names}


def _refusal(description: str, example: str, *headers: str) -> Part:
    return {
        "description": description,
        "headers": _headers(*_ALWAYS, *headers),
        "content": {"application/json": {"schema": ref("Error"), "example": {"error": ERROR_EXAMPLES[example]}}},
    }


def _operation(route: Route, example: Any) -> Part:
    own = ("Deprecation", "Sunset") if route.deprecation else ()
    pages = ("Link",) if "pagination" in ENVELOPES[route.schema]["properties"] else ()
    responses: Part = {
        "200": {
            "description": "Found.",
            "headers": _headers(*_ALWAYS, *_CACHED, *pages, *own),
            "content": {"application/json": {"schema": ref(route.schema), "example": example}},
        },
        "304": {"$ref": "#/components/responses/NotModified"},
    }
    if route.parameters:
        responses["400"] = {"$ref": "#/components/responses/BadRequest"}
    if route.missing:
        responses["404"] = {"$ref": "#/components/responses/NotFound"}
    responses["405"] = {"$ref": "#/components/responses/MethodNotAllowed"}
    responses["429"] = {"$ref": "#/components/responses/TooMany"}
    responses["500"] = {"$ref": "#/components/responses/InternalError"}
    return {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.description,
        **({"deprecated": True} if route.deprecation else {}),
        "parameters": [*_segment(route), *map(_parameter, route.parameters), _IF_NONE_MATCH],
        "responses": responses,
    }


def _head(whole: Part) -> Part:
    """Describe HEAD: as GET, without any body."""
    responses = {
        status: {"description": "As GET, without the body."} if status != "304" else response
        for status, response in whole["responses"].items()
    }
    return {
        **whole,
        "operationId": f"head{whole['operationId'][0].upper()}{whole['operationId'][1:]}",
        "summary": f"{whole['summary']}: headers only",
        "responses": responses,
    }


_IF_NONE_MATCH: Final[Part] = {
    "name": "If-None-Match",
    "in": "header",
    "description": "An ETag that was given before: 304 when it is still the current version.",
    "schema": {"type": "string"},
    "example": '"9f2c5e0a7b1d4c3e8f6a2b10"',
}


def _segment(route: Route) -> list[Part]:
    if not route.segment_name:
        return []
    example = {"company": "blue-river-trust", "person": "ada-fluss", "framework": "river-score"}[route.missing]
    return [
        {
            "name": route.segment_name,
            "in": "path",
            "required": True,
            "description": f"Which {route.missing}: an identifier from the list.",
            "schema": {"type": "string", "minLength": 1, "maxLength": MAX_SLUG_CHARACTERS},
            "example": example,
        }
    ]


def _parameter(parameter: Parameter) -> Part:
    described: Part = {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": dict(parameter.schema),
    }
    if parameter.example:
        kind, example = parameter.schema["type"], parameter.example
        described["example"] = msgspec.json.decode(example) if kind in {"integer", "boolean"} else example
    return described
