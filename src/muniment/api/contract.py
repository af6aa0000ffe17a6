"""The OpenAPI 3.1 contract, generated from the declarations that validate requests."""

from typing import Any, Final

import msgspec

from muniment.api.parameters import Parameter
from muniment.api.responses import declared_licence
from muniment.api.routes import Route, routes_of
from muniment.api.schemas import ENVELOPES, ERROR_EXAMPLES, examples, ref, schemas
from muniment.config import Config
from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONObject
from muniment.registry_toml.applied import current, registry_name
from muniment.schema.objects import Schema

Part = JSONObject

API_VERSION: Final = "1.0.0"
"""Of the contract, not of the product: raise the second number when something is added to v1."""


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
        "Related pages (RFC 8288): first, prev, next, last.", '</api/v1/companies?page=2&pageSize=25>; rel="next"'
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
    "Deprecation": _header("When the route was deprecated (RFC 9745).", "@1767225600"),
    "Sunset": _header("When the route will be removed (RFC 8594).", "Wed, 01 Apr 2026 00:00:00 GMT"),
}
_ALWAYS: Final = ("X-Request-Id", "X-Muniment-Edition", "RateLimit", "RateLimit-Policy")
_CACHED: Final = ("ETag", "Last-Modified", "Cache-Control", "Vary")
_TAGS: Final = {
    "Companies": "Reviewed companies, DAOs, nonprofits, accelerators, incubators and funds.",
    "People": "People with positions at these organizations.",
    "Frameworks": "Assessment frameworks and programs.",
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
                "TooMany": _error("The rate limit is exceeded.", "too_many", "Retry-After"),
                "InternalError": _error("An internal error.", "internal_error"),
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
    found: Part = {"license": {"name": "Apache-2.0", "identifier": "Apache-2.0"}}
    if licence := declared_licence():
        found["license"] = licence
    if declared.contact:
        found["contact"] = {"email" if "@" in declared.contact else "url": declared.contact}
    if settings.legal.terms:
        found["termsOfService"] = f"{config.base_url}/terms"
    return found


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


def _operation(route: Route, example: Any) -> Part:
    own = ("Deprecation", "Sunset") if route.deprecation else ()
    pages = ("Link",) if "pagination" in ENVELOPES[route.schema]["properties"] else ()
    responses: Part = {
        "200": {
            "description": "Success.",
            "headers": _headers(*_ALWAYS, *_CACHED, *pages, *own),
            "content": {"application/json": {"schema": ref(route.schema), "example": example}},
        },
        "304": _response("NotModified"),
        **({"400": _response("BadRequest")} if route.parameters else {}),
        **({"404": _response("NotFound")} if route.missing else {}),
        "405": _response("MethodNotAllowed"),
        "429": _response("TooMany"),
        "500": _response("InternalError"),
    }
    return {
        "operationId": route.operation_id,
        "tags": [route.tag],
        "summary": route.summary,
        "description": route.description,
        **({"deprecated": True} if route.deprecation else {}),
        "parameters": [*_segment(route), *map(_parameter, route.parameters), *_CONDITIONS],
        "responses": responses,
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
    example = {"company": "blue-river-trust", "person": "ada-fluss", "framework": "river-score"}[route.missing]
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
        kind, example = parameter.schema.get("type"), parameter.example
        described["example"] = msgspec.json.decode(example) if kind in {"integer", "boolean"} else example
    return described
