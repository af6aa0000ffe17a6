"""
The ordinary requests of both eras, as exact shapes.

A body that decodes here is one that the SDK accepts too, and answers alike: each shape is a strict subset of
the protocol's. Whatever does not decode (unknown members, odd types, other methods) is for the SDK to judge.
"""

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

MODERN = "2026-07-28"
LEGACY: tuple[str, ...] = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY = LEGACY[-1]

_Object = dict[str, Any]
_Version = Literal["2.0"]
_Level = Literal["alert", "critical", "debug", "emergency", "error", "info", "notice", "warning"]


class _Icon(Struct):
    src: str
    mime_type: str | None = field(default=None, name="mimeType")
    sizes: list[str] | None = None
    theme: Literal["dark", "light"] | None = None


class _Implementation(Struct):
    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = field(default=None, name="websiteUrl")
    icons: list[_Icon] | None = None


class _Modes(Struct):
    """What elicitation and sampling may hold."""

    form: _Object | None = None
    url: _Object | None = None
    context: _Object | None = None
    tools: _Object | None = None


class _ModernCapabilities(Struct):
    elicitation: _Modes | None = None
    sampling: _Modes | None = None
    roots: _Object | None = None
    experimental: dict[str, _Object] | None = None
    extensions: dict[str, _Object] | None = None


class _Roots(Struct):
    list_changed: bool | None = field(default=None, name="listChanged")


class _LegacyCapabilities(Struct):
    elicitation: _Modes | None = None
    sampling: _Modes | None = None
    roots: _Roots | None = None
    experimental: dict[str, _Object] | None = None
    extensions: dict[str, _Object] | None = None
    tasks: None = None


class ModernMeta(Struct):
    """The envelope that each request of the modern era carries."""

    version: str = field(name="io.modelcontextprotocol/protocolVersion")
    capabilities: _ModernCapabilities = field(name="io.modelcontextprotocol/clientCapabilities")
    client: _Implementation | None = field(default=None, name="io.modelcontextprotocol/clientInfo")
    level: _Level | None = field(default=None, name="io.modelcontextprotocol/logLevel")
    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")


class LegacyMeta(Struct):
    """What a request of the older eras may carry."""

    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")


class _ModernCallParams(Struct, forbid_unknown_fields=True):
    name: str
    meta: ModernMeta = field(name="_meta")
    arguments: _Object | None = None


class _LegacyCallParams(Struct, forbid_unknown_fields=True):
    name: str
    meta: LegacyMeta | None = field(default=None, name="_meta")
    arguments: _Object | None = None


class _ModernListParams(Struct, forbid_unknown_fields=True):
    meta: ModernMeta = field(name="_meta")
    cursor: None = None


class _LegacyListParams(Struct, forbid_unknown_fields=True):
    meta: LegacyMeta | None = field(default=None, name="_meta")
    cursor: None = None


class _InitializeParams(Struct, forbid_unknown_fields=True):
    protocol_version: str = field(name="protocolVersion")
    capabilities: _LegacyCapabilities
    client: _Implementation = field(name="clientInfo")
    meta: LegacyMeta | None = field(default=None, name="_meta")


class _Message(Struct, tag_field="method", forbid_unknown_fields=True):
    jsonrpc: _Version


class _Request(_Message, tag_field="method", forbid_unknown_fields=True):
    id: Raw


class ModernCall(_Request, tag="tools/call"):
    """tools/call of the modern era."""

    method: ClassVar[bytes] = b"tools/call"
    params: _ModernCallParams


class ModernList(_Request, tag="tools/list"):
    """tools/list of the modern era."""

    method: ClassVar[bytes] = b"tools/list"
    params: _ModernListParams


class Discover(_Request, tag="server/discover"):
    """server/discover."""

    method: ClassVar[bytes] = b"server/discover"
    params: _ModernListParams


class LegacyCall(_Request, tag="tools/call"):
    """tools/call of the older eras."""

    params: _LegacyCallParams


class LegacyList(_Request, tag="tools/list"):
    """tools/list of the older eras."""

    params: _LegacyListParams | None = None


class Initialize(_Request, tag="initialize"):
    """The handshake of the older eras."""

    params: _InitializeParams


class Ping(_Request, tag="ping"):
    """ping, which the modern era dropped."""

    params: _LegacyListParams | None = None


class Initialized(_Message, tag="notifications/initialized"):
    """The notification that ends the handshake."""

    params: _Object | None = None


class Cancelled(_Message, tag="notifications/cancelled"):
    """A client's word that it no longer waits; there is nothing here to stop."""

    params: _Object | None = None


Modern = ModernCall | ModernList | Discover | Initialized | Cancelled
Legacy = LegacyCall | LegacyList | Initialize | Ping | Initialized | Cancelled

decode_modern = msgspec.json.Decoder(Modern).decode
decode_legacy = msgspec.json.Decoder(Legacy).decode
NOT_OF_THIS_SHAPE = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""What a decoder raises for a body that is not of its shape, no JSON, or no text."""


class _GlanceParams(Struct):
    name: Annotated[str, msgspec.Meta(max_length=200)] | UnsetType = UNSET


class Glance(Struct):
    """As much of an odd body as the front must know before the SDK reads it."""

    method: str
    params: _GlanceParams | UnsetType = UNSET

    @property
    def tool(self) -> str | None:
        """Give the name of the tool that is called, None for any other request."""
        if self.method != "tools/call" or isinstance(self.params, UnsetType) or isinstance(self.params.name, UnsetType):
            return None
        return self.params.name


_decode_glance = msgspec.json.Decoder(Glance).decode


def glance(body: bytes) -> Glance | None:
    """Look at an odd body; None when it is no JSON object with a method."""
    try:
        return _decode_glance(body)
    except NOT_OF_THIS_SHAPE:
        return None


def plain_id(raw: Raw) -> bytes | None:
    """Give a request's id as it is echoed; None when it is not plainly a string or a whole number."""
    text = bytes(raw)
    if text[:1] == b'"':
        return None if b"\\" in text else text
    return text if text.lstrip(b"-").isdigit() and len(text) < 19 else None
