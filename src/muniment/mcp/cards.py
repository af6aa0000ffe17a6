"""
The cards: what directories and clients read about the tool servers before they connect. All from one object.

Source: decisions, section 3, cards; SEP-2127 (draft) for server cards and their discovery; the MCP registry's
server.json, schema of 2025-12-11.
"""

import ipaddress
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

import msgspec

from muniment.kernel.content_negotiation import is_known
from muniment.kernel.ids import digest
from muniment.kernel.problems import MethodNotAllowed, NotFound
from muniment.mcp.protocol.http import EXPOSED, Headers, Receive, Reply, Scope, Send, deliver, refusal
from muniment.mcp.protocol.messages import LEGACY, MODERN

CARD_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json"
REGISTRY_SCHEMA: Final = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
CARD_TYPE: Final = "application/mcp-server-card+json"
CATALOG_TYPE: Final = "application/ai-catalog+json"
PUBLIC_PATH: Final = "/api/mcp"
MANAGE_PATH: Final = "/api/manage/mcp"
ICON_PATH: Final = "/api/mcp/icon.svg"
_ALLOW: Final = "GET, HEAD, OPTIONS"
_MOST_CHARACTERS: Final = 100
_ICON: Final = (
    b'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="6" fill="#8a2b2b"/>'
    b'<path d="M7 24V9l9 8 9-8v15" fill="none" stroke="#fbfaf7" stroke-width="3" stroke-linejoin="round"/></svg>'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """
    The one object that every card is made from.

    Args:
        base_url: the public address, without a slash at its end.
        title: what the registry calls itself.
        version: of the software.
        has_manage: whether the owner-scoped server is served.
    """

    base_url: str
    title: str
    version: str
    has_manage: bool = True

    @property
    def host(self) -> str:
        """Give the host of the base address in ASCII, without its port."""
        host = urlsplit(self.base_url).hostname or "localhost"
        return host if host.isascii() else host.encode("idna").decode()

    @property
    def namespace(self) -> str:
        """Give the host in reverse order, as names of servers want it; an IP address has none and stays."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return ".".join(reversed(self.host.split(".")))
        return self.host.replace(":", "-")

    def description(self, *, manage: bool) -> str:
        """Say what a server does, in at most a hundred characters."""
        end = ": edit your own listings, documents and reports." if manage else ": companies, people and frameworks."
        return self.title[: _MOST_CHARACTERS - len(end)] + end

    def _remote(self, *, manage: bool) -> dict[str, Any]:
        remote: dict[str, Any] = {
            "type": "streamable-http",
            "url": self.base_url + (MANAGE_PATH if manage else PUBLIC_PATH),
        }
        if manage:
            remote["headers"] = [
                {
                    "name": "Authorization",
                    "description": "Bearer and a personal access token from /manage/tokens; or sign in by OAuth.",
                    "isRequired": False,
                    "isSecret": True,
                }
            ]
        return remote

    def _common(self, *, manage: bool) -> dict[str, Any]:
        return {
            "name": f"{self.namespace}/{'manage' if manage else 'registry'}",
            "title": (self.title[:90] + (" (manage)" if manage else ""))[:_MOST_CHARACTERS],
            "description": self.description(manage=manage),
            "version": self.version,
            "websiteUrl": self.base_url,
            "icons": [{"src": self.base_url + ICON_PATH, "mimeType": "image/svg+xml", "sizes": ["any"]}],
        }

    def card(self, *, manage: bool) -> dict[str, Any]:
        """Give a server card: identity and transport, never tools."""
        remote = {**self._remote(manage=manage), "supportedProtocolVersions": [MODERN, *reversed(LEGACY)]}
        return {"$schema": CARD_SCHEMA, **self._common(manage=manage), "remotes": [remote]}

    def registry_entry(self) -> dict[str, Any]:
        """Give the server.json that the public MCP registry takes."""
        return {"$schema": REGISTRY_SCHEMA, **self._common(manage=False), "remotes": [self._remote(manage=False)]}

    def catalog(self) -> dict[str, Any]:
        """Give the catalog by which clients find the cards."""
        return {
            "specVersion": "1.0",
            "entries": [
                {
                    "identifier": f"urn:air:{self.host}:mcp:{'manage' if manage else 'registry'}",
                    "displayName": self._common(manage=manage)["title"],
                    "type": CARD_TYPE,
                    "url": f"{self.base_url}{MANAGE_PATH if manage else PUBLIC_PATH}/server-card",
                }
                for manage in ((False, True) if self.has_manage else (False,))
            ],
        }


class Cards:
    """
    Serves the cards; an ASGI application for the addresses in `paths`.

    Args:
        identity: what the cards say.
    """

    def __init__(self, identity: Identity) -> None:
        public = msgspec.json.encode(identity.card(manage=False))
        found = {
            "/.well-known/mcp.json": (public, "application/json"),
            "/.well-known/mcp/server-card.json": (public, CARD_TYPE),
            f"{PUBLIC_PATH}/server-card": (public, CARD_TYPE),
            "/.well-known/ai-catalog.json": (msgspec.json.encode(identity.catalog()), CATALOG_TYPE),
            "/.well-known/mcp/server.json": (msgspec.json.encode(identity.registry_entry()), "application/json"),
            ICON_PATH: (_ICON, "image/svg+xml"),
        }
        if identity.has_manage:
            found[f"{MANAGE_PATH}/server-card"] = (msgspec.json.encode(identity.card(manage=True)), CARD_TYPE)
        self._replies = {path: _reply(body, content_type) for path, (body, content_type) in found.items()}

    @property
    def paths(self) -> tuple[str, ...]:
        """Give the addresses that are answered here."""
        return tuple(self._replies)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 - ASGI's own shape
        """Answer one HTTP request."""
        await deliver(self._answer(scope), send)

    def _answer(self, scope: Scope) -> Reply:
        path, method = scope["path"].rstrip("/"), scope["method"]
        found = self._replies.get(path)
        if found is None:
            return refusal(NotFound(f"There is no {path[:100]}.", "The cards: " + ", ".join(self._replies) + "."))
        if method == "OPTIONS":
            return Reply(204, [*found.headers, (b"allow", _ALLOW.encode())], b"")
        if method not in {"GET", "HEAD"}:
            return refusal(MethodNotAllowed(method, _ALLOW))
        asked = b", ".join(value for name, value in scope["headers"] if name == b"if-none-match")
        if is_known(dict(found.headers)[b"etag"].strip(b'"'), asked):
            kept = [pair for pair in found.headers if pair[0] != b"content-type"]
            return Reply(304, kept, b"")
        if method == "HEAD":
            return Reply(200, [*found.headers, (b"content-length", b"%d" % len(found.body))], b"")
        return found


def _reply(body: bytes, content_type: str) -> Reply:
    headers: Headers = [
        (b"content-type", content_type.encode()),
        (b"cache-control", b"public, max-age=3600"),
        (b"etag", b'"%s"' % digest(body).encode()),
        (b"access-control-allow-origin", b"*"),
        (b"access-control-allow-methods", b"GET, HEAD, OPTIONS"),
        (b"access-control-allow-headers", b"Content-Type, Accept, If-None-Match"),
        (b"access-control-expose-headers", EXPOSED),
    ]
    if content_type.startswith("image/"):
        headers.append((b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'; sandbox"))
    return Reply(200, headers, body)
