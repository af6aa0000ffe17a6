"""Pages that describe the API: ``/openapi.json``, ``/docs`` with its assets, ``/llms.txt``."""

import importlib.util
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Final

import msgspec

from muniment.api.contract import openapi_document
from muniment.api.handlers import Context
from muniment.api.responses import Answer
from muniment.api.routes import ROUTES
from muniment.config import Config
from muniment.kernel.ids import digest
from muniment.schema.objects import Schema

ASSETS: Final = {
    "swagger-ui.css": b"text/css; charset=utf-8",
    "swagger-ui-bundle.js": b"text/javascript; charset=utf-8",
    "favicon-32x32.png": b"image/png",
}
POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " font-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The reference page sets style attributes, so inline styles are allowed; scripts come only from this instance."""
_SAFE: Final = (
    f"content-security-policy: {POLICY}\r\nx-content-type-options: nosniff\r\nreferrer-policy: same-origin\r\n"
).encode()

_DOCS: Final = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: API reference</title>
<script src="/docs/start.js"></script>
<script src="/docs/swagger-ui-bundle.js" defer></script>
<link rel="stylesheet" href="/docs/swagger-ui.css">
<style>
body {{ margin: 0; }}
header {{ display: flex; flex-wrap: wrap; gap: 8px 24px; align-items: baseline; padding: 16px 20px;
border-bottom: 1px solid #e3e0d8; font: 15px/1.5 system-ui, sans-serif; }}
header a {{ color: #5d5f66; text-decoration: none; }}
header a:first-child {{ color: #1b1b1f; font: 600 20px/1.5 ui-serif, Charter, Georgia, serif; }}
header a:hover {{ text-decoration: underline; }}
.dark-mode header {{ border-color: #3a3a40; }}
.dark-mode header a {{ color: #b6b4ae; }}
.dark-mode header a:first-child {{ color: #eceae4; }}
</style>
<link rel="icon" type="image/png" href="/docs/favicon-32x32.png">
</head>
<body>
<noscript><p>This page needs JavaScript. The machine-readable version is at <a href="/openapi.json">/openapi.json</a>;
a summary is at <a href="/llms.txt">/llms.txt</a>.</p></noscript>
<header><a href="/">{title}</a> <a href="/companies">Companies</a> <a href="/people">People</a>
<a href="/frameworks">Frameworks</a> <a href="/connect">Connect an agent</a></header>
<main id="reference"></main>
</body>
</html>
"""
_START: Final = """"use strict";
// The theme chosen on the pages, otherwise the system's; set before the first paint.
const system = matchMedia("(prefers-color-scheme: dark)");
const paint = () => {
  let kept = null;
  try {
    kept = localStorage.getItem("theme");
  } catch {
    // Without storage, follow the system.
  }
  document.documentElement.classList.toggle("dark-mode", kept ? kept === "dark" : system.matches);
};
paint();
system.addEventListener("change", paint);
document.addEventListener("DOMContentLoaded", () =>
  window.SwaggerUIBundle({
    url: "/openapi.json",
    dom_id: "#reference",
    deepLinking: true,
    docExpansion: "list",
    defaultModelsExpandDepth: 0,
    displayRequestDuration: true,
    tryItOutEnabled: true,
    validatorUrl: null,
  }),
);
"""


class ReferencePage:
    """A page that is constant for the life of the process, generated on first use."""

    def __init__(self, content_type: bytes, make: Callable[[], bytes], *, headers: bytes = b"") -> None:
        self._content_type = content_type
        self._make = make
        self._headers = headers
        self._answer: Answer | None = None

    def answer(self, _context: Context) -> Answer:
        if self._answer is None:
            body = self._make()
            self._answer = Answer(body, digest(body).encode(), lines=self._headers, content_type=self._content_type)
        return self._answer


def build(config: Config, schema: Schema) -> dict[str, ReferencePage]:
    title = escape(config.registry_name)
    html = b"text/html; charset=utf-8"
    return {
        "/openapi.json": ReferencePage(
            b"application/json", lambda: msgspec.json.encode(openapi_document(config, schema))
        ),
        "/llms.txt": ReferencePage(b"text/plain; charset=utf-8", lambda: llms_text(config).encode()),
        "/docs": ReferencePage(html, lambda: _DOCS.format(title=title).encode(), headers=_SAFE),
        "/docs/start.js": ReferencePage(b"text/javascript; charset=utf-8", _START.encode, headers=_SAFE),
        **{
            f"/docs/{name}": ReferencePage(content_type, _asset(name).read_bytes, headers=_SAFE)
            for name, content_type in ASSETS.items()
        },
    }


def _asset(name: str) -> Path:
    """Return the path of an asset of the reference page's package, without importing the package."""
    found = importlib.util.find_spec("drf_spectacular_sidecar")
    if found is None or found.origin is None:
        message = "the package drf-spectacular-sidecar, which contains the reference page, is not installed"
        raise FileNotFoundError(message)
    return Path(found.origin).parent / "static/drf_spectacular_sidecar/swagger-ui-dist" / name


def llms_text(config: Config) -> str:
    """
    Return a one-page description for language models.

    Source: llmstxt.org.
    """
    base = config.base_url
    routes = "\n".join(f"- [{route.summary}]({base}{route.path}): {route.description}" for route in ROUTES)
    return f"""# {config.registry_name}

> A public registry of reviewed companies, DAOs, nonprofits, accelerators and funds, the people who work there and \
the frameworks that assess them. Read-only JSON over HTTP GET without an API key, and tools over MCP.

Lists take `page` and `pageSize` (at most 100) or `cursor`, and `q` to search. Details take the \
`id` (companies), `slug` (people) or `frameworkId` of a list item. \
Errors are `{{"error": {{"code", "message", "hint"}}}}`; \
the hint says what to do next. Responses have an `ETag`; send it as `If-None-Match`.

## REST API

{routes}

## Contract

- [OpenAPI 3.1]({base}/openapi.json): every parameter, response and error
- [Reference]({base}/docs): the same, for people

## Tools for agents (MCP, Streamable HTTP)

- [Public tools]({base}/api/mcp): the same registry, read-only, without sign-in
- [Owner tools]({base}/api/manage/mcp): your companies, documents, credits and reports; requires sign-in
- [Manifest]({base}/.well-known/mcp.json): how to connect
"""
