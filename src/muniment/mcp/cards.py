"""
Server cards: metadata that directories and clients read before they connect.

Source: decisions, section 3, cards; SEP-2127 (draft) for server cards and their discovery; the MCP registry's
server.json, schema of 2025-12-11.
"""

import ipaddress
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import msgspec

from muniment.kernel.asgi import Receive, Scope, Send
from muniment.kernel.http.public_pages import STAMP, PageStamp
from muniment.kernel.http.representations import digest, is_known
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import MethodNotAllowed, NotFound
from muniment.mcp.protocol.http import EXPOSED, Headers, Reply, deliver, error_reply
from muniment.mcp.protocol.transport import LEGACY, MODERN
from muniment.mcp.web_pages import TOKENS

CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
CARD_TYPE: Final = "application/mcp-server-card+json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
PUBLIC_PATH: Final = "/api/mcp"
MANAGE_PATH: Final = "/api/manage/mcp"
ICON_PATH: Final = "/api/mcp/icon.svg"
_ALLOW: Final = "GET, HEAD, OPTIONS"
_MAX_CHARACTERS: Final = 100
_AUTHORIZATION: Final = {
    "name": "Authorization",
    "isRequired": False,
    "isSecret": True,
}
_ICON: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#8a2b2b"/>'
    b'<path d="M7 24V9l9 8 9-8v15" fill="none" stroke="#fbfaf7" stroke-width="3" stroke-linejoin="round"/></svg>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The metadata of all cards; *base_url* has no trailing slash."""

    base_url: str
    title: str
    version: str

    @property
    def host(self) -> str:
        """Return the host of the base URL in ASCII, without its port."""
        host = urlsplit(self.base_url).hostname or "localhost"
        return host if host.isascii() else host.encode("idna").decode()

    @property
    def namespace(self) -> str:
        """Return the host in reverse order, for server names; an IP address stays as it is."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return ".".join(reversed(self.host.split(".")))
        return self.host.replace(":", "-")

    def _remote(self, *, manage: bool) -> JSONObject:
        remote = {"type": "streamable-http", "url": self.base_url + (MANAGE_PATH if manage else PUBLIC_PATH)}
        if not manage:
            return remote
        said = f"Bearer and a personal access token from {self.base_url}{TOKENS}; or sign in with OAuth."
        return {**remote, "headers": [{**_AUTHORIZATION, "description": said}]}

    def _common(self, *, manage: bool) -> JSONObject:
        if manage:
            name, title = "manage", f"{self.title[:90]} (manage)"
            end = ": edit your own listings, documents and reports."
        else:
            name, title = "registry", self.title[:90]
            end = ": companies, people and frameworks."
        return {
            "name": f"{self.namespace}/{name}",
            "title": title[:_MAX_CHARACTERS],
            "description": self.title[: _MAX_CHARACTERS - len(end)] + end,
            "version": self.version,
            "websiteUrl": self.base_url,
            "icons": [{"src": self.base_url + ICON_PATH, "mimeType": "image/svg+xml", "sizes": ["any"]}],
        }

    def card(self, *, manage: bool) -> JSONObject:
        """Return a server card: identity and transport, without tools."""
        remote = {**self._remote(manage=manage), "supportedProtocolVersions": [MODERN, *reversed(LEGACY)]}
        return {"$schema": CARD_SCHEMA, **self._common(manage=manage), "remotes": [remote]}

    def registry_entry(self, *, manage: bool) -> JSONObject:
        """Return the server.json for an MCP registry."""
        return {"$schema": REGISTRY_SCHEMA, **self._common(manage=manage), "remotes": [self._remote(manage=manage)]}

    def catalog(self) -> JSONObject:
        return {
            "specVersion": "1.0",
            "entries": [self._catalog_entry(manage=False), self._catalog_entry(manage=True)],
        }

    def _catalog_entry(self, *, manage: bool) -> JSONObject:
        name, path = ("manage", MANAGE_PATH) if manage else ("registry", PUBLIC_PATH)
        return {
            "identifier": f"urn:air:{self.host}:mcp:{name}",
            "displayName": self._common(manage=manage)["title"],
            "type": CARD_TYPE,
            "url": f"{self.base_url}{path}/server-card",
        }


class Cards:
    """The ASGI application that serves the cards at `paths`."""

    def __init__(self, identity: Identity) -> None:
        public = msgspec.json.encode(identity.card(manage=False))
        registry_entries = [msgspec.json.encode(identity.registry_entry(manage=manage)) for manage in (False, True)]
        found = {
            "/.well-known/mcp.json": (public, "application/json"),
            "/.well-known/mcp/server-card.json": (public, CARD_TYPE),
            f"{PUBLIC_PATH}/server-card": (public, CARD_TYPE),
            "/.well-known/ai-catalog.json": (msgspec.json.encode(identity.catalog()), CATALOG_TYPE),
            "/.well-known/mcp/server.json": (registry_entries[0], "application/json"),
            "/.well-known/mcp/manage/server.json": (registry_entries[1], "application/json"),
            ICON_PATH: (_ICON, "image/svg+xml"),
            f"{MANAGE_PATH}/server-card": (msgspec.json.encode(identity.card(manage=True)), CARD_TYPE),
        }
        self._replies = {path: _reply(body, content_type) for path, (body, content_type) in found.items()}

    @property
    def paths(self) -> tuple[str, ...]:
        return tuple(self._replies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's own shape
        await deliver(self._answer(scope), send)

    def _answer(self, scope: Scope) -> Reply:
        path, method = scope["path"].rstrip("/"), scope["method"]
        found = self._replies.get(path)
        if found is None:
            return error_reply(NotFound(f"There is no {path[:100]}.", "The cards: " + ", ".join(self._replies) + "."))
        if method == "OPTIONS":
            return Reply(204, [*found.headers, (b"allow", _ALLOW.encode())], b"")
        if method not in {"GET", "HEAD"}:
            return error_reply(MethodNotAllowed(method, _ALLOW))
        tag = dict(found.headers)[b"etag"].strip(b'"')
        if path == scope["path"] and not scope.get("query_string"):
            scope.get("state", {})[STAMP] = PageStamp(tag, is_compressible=False)
        asked = b", ".join(value for name, value in scope["headers"] if name == b"if-none-match")
        if is_known(tag, asked):
            return Reply(304, [pair for pair in found.headers if pair[0] != b"content-type"], b"")
        if method == "HEAD":
            return Reply(200, [*found.headers, (b"content-length", b"%d" % len(found.body))], b"")
        return found


def _reply(body: bytes, content_type: str) -> Reply:
    headers: Headers = [
        (b"content-type", content_type.encode()),
        (b"cache-control", b"public, max-age=3600"),
        (b"etag", b'"%s"' % digest(body).encode()),
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", _ALLOW.encode()),
        (b"access-control-allow-headers", b"Content-Type, Accept, If-None-Match"),
        (b"access-control-expose-headers", EXPOSED),
    ]
    if content_type.startswith("image/"):
        headers.append((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"))
    return Reply(200, headers, body)
