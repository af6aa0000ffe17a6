"""
Finished results: what depends only on what a server offers and on the caller's scopes, encoded once.

These are discovery, the handshake and the lists, without the request's id.
"""

from typing import Final

import msgspec

from muniment.mcp.declarations import Declarations, Tool
from muniment.mcp.protocol import messages

TOOLS: Final = "tools/list"
_encode = msgspec.json.encode


class FinishedResults:
    """The finished results of a server that offers *offer*, each with all closing braces."""

    def __init__(self, offer: Declarations) -> None:
        info = _encode(offer.server_info)
        self.own_meta = b'"io.modelcontextprotocol/serverInfo":' + info + b"}}}"
        """The end of the `_meta` of a modern result."""
        self._offer = offer
        self._end = b',"resultType":"complete","_meta":{' + self.own_meta
        self._tools: dict[frozenset[str], tuple[bytes, bytes]] = {}
        self._lists = {**self._of_resources(), **self._of_prompts(), **self._of_skills()}
        instructions, capabilities = _encode(offer.instructions), _encode(offer.capabilities)
        self.discover = (
            b'{"supportedVersions":["%s"],"capabilities":' % messages.MODERN.encode() + capabilities
            + b',"instructions":' + instructions + self._cached + self._end
        )  # fmt: skip
        self._initialize = {
            version: b'{"protocolVersion":"' + version.encode() + b'","capabilities":' + capabilities
            + b',"serverInfo":' + info + b',"instructions":' + instructions + b"}}"
            for version in messages.LEGACY
        }  # fmt: skip

    @property
    def _cached(self) -> bytes:
        return b',"ttlMs":%d,"cacheScope":"%s"' % (self._offer.list_ttl_ms, self._offer.cache_scope.encode())

    def initialize(self, version: str) -> bytes:
        """Return the handshake's result for the *version* that a client asks for, or for the latest one."""
        return self._initialize.get(version) or self._initialize[messages.LATEST_LEGACY]

    def visible(self, scopes: frozenset[str]) -> list[Tool]:
        """Return the tools that a caller with *scopes* may use, in order."""
        return [tool for tool in self._offer.tools if tool.scope is None or tool.scope in scopes]

    def listing(self, method: str, scopes: frozenset[str]) -> tuple[bytes, bytes] | None:
        """Return the result of a list, modern and legacy; None if the server has no such list."""
        if method != TOOLS:
            return self._lists.get(method)
        found = self._tools.get(scopes)
        if found is None:
            tools = b'{"tools":' + _encode([tool.to_wire() for tool in self.visible(scopes)])
            found = self._tools[scopes] = (tools + self._cached + self._end, tools + b"}}")
        return found

    def _of_resources(self) -> dict[str, tuple[bytes, bytes]]:
        offer = self._offer
        if "resources" not in offer.capabilities:
            return {}
        plain = [each.to_wire() for each in offer.plain_resources]
        templates = [each.to_wire() for each in offer.resources if each.variable]
        return {
            "resources/list": self._list("resources", plain),
            "resources/templates/list": self._list("resourceTemplates", templates),
        }

    def _of_prompts(self) -> dict[str, tuple[bytes, bytes]]:
        if not self._offer.prompts:
            return {}
        return {"prompts/list": self._list("prompts", [each.to_wire() for each in self._offer.prompts])}

    def _of_skills(self) -> dict[str, tuple[bytes, bytes]]:
        if not self._offer.skills:
            return {}
        # The extension has the same result in both generations.
        found = {"resultType": "complete", "skills": [each.to_wire() for each in self._offer.skills]}
        whole = _encode(found)[:-1] + self._cached
        return {"skills/list": (whole + b',"_meta":{' + self.own_meta, whole + b"}}")}

    def _list(self, name: str, items: list[dict[str, object]]) -> tuple[bytes, bytes]:
        kept = {"cacheScope": self._offer.cache_scope, "resultType": "complete", "ttlMs": self._offer.list_ttl_ms}
        modern = msgspec.json.encode({name: items, **kept}, order="sorted")
        legacy = msgspec.json.encode({name: items}, order="sorted")
        return modern[:-1] + b',"_meta":{' + self.own_meta, legacy + b"}"
