"""Documents that describe the API: ``/openapi.json`` and ``/llms.txt``."""

from collections.abc import Callable

import msgspec

from muniment.api.contract import openapi_document
from muniment.api.handlers import Context
from muniment.api.responses import Answer, declared_licence
from muniment.api.routes import ROUTES
from muniment.config import Config
from muniment.kernel.ids import digest
from muniment.registry_toml.applied import applied, registry_name
from muniment.schema.objects import Schema


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
