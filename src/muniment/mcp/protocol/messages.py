"""
The common requests of both protocol generations, as strict shapes.

A body that decodes here is one that the SDK accepts too and answers the same way: each shape is a strict subset of
the protocol's. The SDK handles everything else (unknown members, unusual types, other methods).
"""

from typing import ClassVar, Final, Literal

import msgspec
from msgspec import UNSET, Raw, Struct, UnsetType, field

from muniment.kernel.json import JSONObject

MODERN = "2026-07-28"
LEGACY: tuple[str, ...] = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY = LEGACY[-1]

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
    """Members of the elicitation and sampling capabilities."""

    form: JSONObject | None = None
    url: JSONObject | None = None
    context: JSONObject | None = None
    tools: JSONObject | None = None


class _Capabilities(Struct):
    elicitation: _Modes | None = None
    sampling: _Modes | None = None
    experimental: dict[str, JSONObject] | None = None
    extensions: dict[str, JSONObject] | None = None


class _ModernCapabilities(_Capabilities):
    roots: JSONObject | None = None


class _Roots(Struct):
    list_changed: bool | None = field(default=None, name="listChanged")


class _LegacyCapabilities(_Capabilities):
    roots: _Roots | None = None
    tasks: None = None


class _ModernMeta(Struct):
    """The envelope of each request in the modern protocol."""

    version: str = field(name="io.modelcontextprotocol/protocolVersion")
    capabilities: _ModernCapabilities = field(name="io.modelcontextprotocol/clientCapabilities")
    client: _Implementation | None = field(default=None, name="io.modelcontextprotocol/clientInfo")
    level: _Level | None = field(default=None, name="io.modelcontextprotocol/logLevel")
    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")

    @property
    def token(self) -> int | str | None:
        return None if self.progress_token is UNSET else self.progress_token


class _LegacyMeta(Struct):
    progress_token: int | str | UnsetType = field(default=UNSET, name="progressToken")

    @property
    def token(self) -> int | str | None:
        return None if self.progress_token is UNSET else self.progress_token


class _Answer(Struct, forbid_unknown_fields=True):
    """The answer of a user who was asked by a form."""

    action: Literal["accept", "decline", "cancel"]
    content: dict[str, str | int | float | bool | list[str] | None] | None = None


class ModernCallParams(Struct, forbid_unknown_fields=True):
    """A tool call, and the user's answer to what an earlier one asked."""

    name: str
    meta: _ModernMeta = field(name="_meta")
    arguments: JSONObject | None = None
    answers: dict[str, _Answer] | None = field(default=None, name="inputResponses")
    state: str | None = field(default=None, name="requestState")

    @property
    def elicits(self) -> bool:
        """Return whether the client can ask its user by a form; a capability without modes means that."""
        modes = self.meta.capabilities.elicitation
        return modes is not None and (modes.form is not None or modes.url is None)

    def answer(self, name: str) -> str:
        """Return what the user answered to the question *name*; "" without an answer."""
        found = (self.answers or {}).get(name)
        return found.action if found else ""


class _LegacyCallParams(Struct, forbid_unknown_fields=True):
    name: str
    meta: _LegacyMeta | None = field(default=None, name="_meta")
    arguments: JSONObject | None = None


class _ResourceRef(Struct, tag_field="type", tag="ref/resource", forbid_unknown_fields=True):
    uri: str


class _PromptRef(Struct, tag_field="type", tag="ref/prompt", forbid_unknown_fields=True):
    name: str
    title: str | None = None


class _Typed(Struct, forbid_unknown_fields=True):
    """What a user has typed of an argument."""

    name: str
    value: str


class _Known(Struct, forbid_unknown_fields=True):
    """The arguments that are complete."""

    arguments: dict[str, str] | None = None


class UriParams(Struct, kw_only=True, forbid_unknown_fields=True):
    """What names a resource or a skill."""

    uri: str


class _ModernUriParams(UriParams, kw_only=True):
    meta: _ModernMeta = field(name="_meta")


class _LegacyUriParams(UriParams, kw_only=True):
    meta: _LegacyMeta | None = field(default=None, name="_meta")


class NameParams(Struct, kw_only=True, forbid_unknown_fields=True):
    """What names a prompt, or a tool that there is not, and its arguments."""

    name: str
    arguments: dict[str, str] | None = None


class _ModernPromptParams(NameParams, kw_only=True):
    meta: _ModernMeta = field(name="_meta")


class _LegacyPromptParams(NameParams, kw_only=True):
    meta: _LegacyMeta | None = field(default=None, name="_meta")


class CompletionParams(Struct, kw_only=True, forbid_unknown_fields=True):
    """What names an argument, and how its value begins."""

    ref: _ResourceRef | _PromptRef
    argument: _Typed
    context: _Known | None = None


class _ModernCompletionParams(CompletionParams, kw_only=True):
    meta: _ModernMeta = field(name="_meta")


class _LegacyCompletionParams(CompletionParams, kw_only=True):
    meta: _LegacyMeta | None = field(default=None, name="_meta")


class _ModernListParams(Struct, forbid_unknown_fields=True):
    meta: _ModernMeta = field(name="_meta")
    cursor: None = None


class _LegacyListParams(Struct, forbid_unknown_fields=True):
    meta: _LegacyMeta | None = field(default=None, name="_meta")
    cursor: None = None


class _InitializeParams(Struct, forbid_unknown_fields=True):
    protocol_version: str = field(name="protocolVersion")
    capabilities: _LegacyCapabilities
    client: _Implementation = field(name="clientInfo")
    meta: _LegacyMeta | None = field(default=None, name="_meta")


class _Message(Struct, tag_field="method", forbid_unknown_fields=True):
    jsonrpc: Literal["2.0"]


class _Request(_Message, tag_field="method", forbid_unknown_fields=True):
    id: Raw


class ModernCall(_Request, tag="tools/call"):
    """tools/call in the modern protocol."""

    method: ClassVar[bytes] = b"tools/call"
    params: ModernCallParams


class ModernList(_Request, tag="tools/list"):
    """tools/list in the modern protocol."""

    method: ClassVar[bytes] = b"tools/list"
    params: _ModernListParams


class ModernResources(ModernList, tag="resources/list"):
    """resources/list in the modern protocol."""

    method: ClassVar[bytes] = b"resources/list"


class ModernTemplates(ModernList, tag="resources/templates/list"):
    """resources/templates/list in the modern protocol."""

    method: ClassVar[bytes] = b"resources/templates/list"


class ModernPrompts(ModernList, tag="prompts/list"):
    """prompts/list in the modern protocol."""

    method: ClassVar[bytes] = b"prompts/list"


class ModernSkills(ModernList, tag="skills/list"):
    """skills/list in the modern protocol."""

    method: ClassVar[bytes] = b"skills/list"


class ModernRead(_Request, tag="resources/read"):
    """resources/read in the modern protocol."""

    method: ClassVar[bytes] = b"resources/read"
    params: _ModernUriParams


class ModernSkill(_Request, tag="skills/get"):
    """skills/get in the modern protocol."""

    method: ClassVar[bytes] = b"skills/get"
    params: _ModernUriParams


class ModernPrompt(_Request, tag="prompts/get"):
    """prompts/get in the modern protocol."""

    method: ClassVar[bytes] = b"prompts/get"
    params: _ModernPromptParams


class ModernCompletion(_Request, tag="completion/complete"):
    """completion/complete in the modern protocol."""

    method: ClassVar[bytes] = b"completion/complete"
    params: _ModernCompletionParams


class Discover(_Request, tag="server/discover"):
    """server/discover."""

    method: ClassVar[bytes] = b"server/discover"
    params: _ModernListParams


class LegacyCall(_Request, tag="tools/call"):
    """tools/call in the legacy protocols."""

    params: _LegacyCallParams


class LegacyList(_Request, tag="tools/list"):
    """tools/list in the legacy protocols."""

    method: ClassVar[bytes] = b"tools/list"
    params: _LegacyListParams | None = None


class LegacyResources(LegacyList, tag="resources/list"):
    """resources/list in the legacy protocols."""

    method: ClassVar[bytes] = b"resources/list"


class LegacyTemplates(LegacyList, tag="resources/templates/list"):
    """resources/templates/list in the legacy protocols."""

    method: ClassVar[bytes] = b"resources/templates/list"


class LegacyPrompts(LegacyList, tag="prompts/list"):
    """prompts/list in the legacy protocols."""

    method: ClassVar[bytes] = b"prompts/list"


class LegacySkills(LegacyList, tag="skills/list"):
    """skills/list in the legacy protocols."""

    method: ClassVar[bytes] = b"skills/list"


class LegacyRead(_Request, tag="resources/read"):
    """resources/read in the legacy protocols."""

    method: ClassVar[bytes] = b"resources/read"
    params: _LegacyUriParams


class LegacySkill(_Request, tag="skills/get"):
    """skills/get in the legacy protocols."""

    method: ClassVar[bytes] = b"skills/get"
    params: _LegacyUriParams


class LegacyPrompt(_Request, tag="prompts/get"):
    """prompts/get in the legacy protocols."""

    method: ClassVar[bytes] = b"prompts/get"
    params: _LegacyPromptParams


class LegacyCompletion(_Request, tag="completion/complete"):
    """completion/complete in the legacy protocols."""

    method: ClassVar[bytes] = b"completion/complete"
    params: _LegacyCompletionParams


class Initialize(_Request, tag="initialize"):
    """The handshake of the legacy protocols."""

    params: _InitializeParams


class Ping(_Request, tag="ping"):
    """The ping of the legacy protocols."""

    params: _LegacyListParams | None = None


class Initialized(_Message, tag="notifications/initialized"):
    """The notification that ends the handshake."""

    params: JSONObject | None = None


class Cancelled(_Message, tag="notifications/cancelled"):
    """A notification that the client no longer waits; there is nothing to cancel here."""

    params: JSONObject | None = None


_ModernLists = ModernList | ModernResources | ModernTemplates | ModernPrompts | ModernSkills
_LegacyLists = LegacyList | LegacyResources | LegacyTemplates | LegacyPrompts | LegacySkills
ModernLookup = ModernRead | ModernSkill | ModernPrompt | ModernCompletion
LegacyLookup = LegacyRead | LegacySkill | LegacyPrompt | LegacyCompletion
LISTS: Final = (ModernList, LegacyList)
MODERN_OFFERED: Final = (ModernList, ModernRead, ModernSkill, ModernPrompt, ModernCompletion)
LEGACY_OFFERED: Final = (LegacyList, LegacyRead, LegacySkill, LegacyPrompt, LegacyCompletion)
"""Types as tuples: a union would be made again at each request."""
LookupParams = UriParams | NameParams | CompletionParams
Modern = ModernCall | _ModernLists | ModernLookup | Discover | Initialized | Cancelled
Legacy = LegacyCall | _LegacyLists | LegacyLookup | Initialize | Ping | Initialized | Cancelled

decode_modern = msgspec.json.Decoder(Modern).decode
decode_legacy = msgspec.json.Decoder(Legacy).decode
DECODE_ERRORS = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Raised by a decoder for a body that does not match, is not JSON, or is not text."""


def plain_id(raw: Raw) -> bytes | None:
    """Return a request's id as it is echoed; None if it is not a simple string or integer."""
    text = bytes(raw)
    if text[:1] == b'"':
        return None if b"\\" in text else text
    return text if text.lstrip(b"-").isdigit() and len(text) < 19 else None
