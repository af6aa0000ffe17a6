"""
The ASGI application of a tool server: JSON-RPC messages of both protocol generations, without state, in JSON.

In the order in which it happens: a body is read once, by the strict reader of JSON, as a message whose version and
parameters are checked; one method calls every tool (`ToolServer._start`); the result is sent as bytes. Unknown members
are ignored: later revisions add some. The generations differ in where the version is (each modern request carries it in
`params._meta` and in a header), not in the parameters.

Look-ups are resources, prompts, completions and skills; their results have no members that only one generation knows.
What depends only on the server and on the caller's scopes (discovery, the handshake, lists) is encoded once.
A subscription to resources is an event stream that tells which of them were published, until the client leaves.

A call that waits is answered by JSON, or by an event stream from the first news of progress on: a client that accepts
event streams gets one as soon as the call reports progress, or after 15 s, with pings from then on, so that no proxy
takes the connection for idle. When the client goes away, the call is canceled.

Source: decisions, section 3; MCP specification 2026-07-28 and 2025-11-25, base protocol, Streamable HTTP, progress;
JSON-RPC 2.0.
"""

import asyncio
import base64
import binascii
import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import unquote

import msgspec
from msgspec import Struct, field

from muniment.kernel import tracing
from muniment.kernel.asgi import Receive, Scope, Send, gone
from muniment.kernel.fairness import Limiter
from muniment.kernel.ids import slug_fault
from muniment.kernel.json import JSONError, JSONObject, encode, read_json
from muniment.kernel.problems import Forbidden, MethodNotAllowed, Problem, TooMany
from muniment.mcp import web_pages
from muniment.mcp.arguments import Check, compile_arguments
from muniment.mcp.declarations import (
    INPUT,
    PROVENANCE,
    Answer,
    Caller,
    Declarations,
    Follow,
    InputRequired,
    Marked,
    NotAtOnce,
    Report,
    Tool,
)
from muniment.mcp.protocol.http import (
    ALLOW,
    CORS,
    JSON_HEADERS,
    MAX_BODY_BYTES,
    MAX_PUBLIC_BODY_BYTES,
    NOTHING,
    Access,
    Admitted,
    Headers,
    NotAcceptable,
    OriginPolicy,
    Reply,
    accepts_events,
    admit,
    check_types,
    deliver,
    error_reply,
    headers_by_name,
    in_state,
    preflight,
    read_body,
    read_prompt_body,
)
from muniment.store.database.faults import log_failure, unexpected
from muniment.store.published import ChangeRow

MODERN: Final = "2026-07-28"
LEGACY: Final[tuple[str, ...]] = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
LATEST_LEGACY: Final = LEGACY[-1]

PARSE_ERROR: Final = -32700
INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
RESOURCE_NOT_FOUND: Final = -32002
"""The code in the legacy protocols; the modern one uses INVALID_PARAMS."""
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_NAMED_BY: Final = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
"""The parameter that a modern request repeats in its header Mcp-Name."""
_MODERN_VERSION: Final = MODERN.encode()
_LEGACY_VERSIONS: Final = frozenset(version.encode() for version in LEGACY)
_ONE_MESSAGE: Final = "A body must be one JSON-RPC request or notification"


class Fault(Exception):  # noqa: N818 - an answer of the protocol
    """
    The error of the protocol that answers a message.

    Args:
        data: the member of the error, if it has one.
    """

    def __init__(self, code: int, message: str, data: JSONObject | None = None) -> None:
        super().__init__(message)
        self.code, self.message, self.data = code, message, data


class Message(NamedTuple):
    """
    A message of a client.

    Args:
        id: as JSON; None for a notification, and for a response, which this server never asks for.
        method: "" for a response.
    """

    id: bytes | None
    method: str
    params: object


# ---------------------------------------------------------------------- the message


def read_message(body: bytes) -> Message:
    """Return the message in *body*; raise Fault, whose answer has no id, if there is none."""
    try:
        message = read_json(body)
    except JSONError as error:
        raise Fault(PARSE_ERROR, f"The body is not valid JSON: {error}.") from None
    if isinstance(message, list):
        raise Fault(INVALID_REQUEST, f"{_ONE_MESSAGE}; batches are not supported. Send the requests one by one.")
    if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
        raise Fault(INVALID_REQUEST, f'{_ONE_MESSAGE} with "jsonrpc": "2.0".')
    method = message.get("method")
    if method is None and ("result" in message or "error" in message):
        return Message(None, "", None)
    if not isinstance(method, str):
        raise Fault(INVALID_REQUEST, f"{_ONE_MESSAGE} with a method.")
    request_id = _id_of(message["id"]) if "id" in message else None
    return Message(request_id, method, message.get("params"))


def _id_of(value: object) -> bytes:
    """Return a request's id as it is sent back."""
    if type(value) is int:
        return b"%d" % value
    if isinstance(value, str):
        return msgspec.json.encode(value)
    # Some encoders write every number with a fraction.
    if isinstance(value, float) and value.is_integer():
        return b"%d" % int(value)
    raise Fault(INVALID_REQUEST, "The id of a request must be a string or a whole number.")


# ---------------------------------------------------------------------- the protocol version


def is_of_modern_version(headers: dict[bytes, bytes]) -> bool:
    """Return whether a request is of the modern protocol, which only its header says."""
    return headers.get(b"mcp-protocol-version") == _MODERN_VERSION


def check_version(headers: dict[bytes, bytes], params: JSONObject) -> None:
    """Raise Fault if header and parameters name different versions, or one that this server does not have."""
    header = headers.get(b"mcp-protocol-version")
    meta = params.get("_meta")
    named = meta.get(_VERSION) if isinstance(meta, dict) else None
    if named is not None and (header is None or header.decode("latin-1") != named):
        raise _mismatch("mcp-protocol-version", "the protocol version in params._meta")
    if header is None or header == _MODERN_VERSION or header in _LEGACY_VERSIONS:
        return
    requested = header.decode("latin-1")[:100]
    raise Fault(
        UNSUPPORTED_VERSION,
        f"Unsupported protocol version: {requested}. Supported: {MODERN}; after initialize, {', '.join(LEGACY)}.",
        {"supported": [MODERN], "requested": requested},
    )


def params_of(message: Message) -> JSONObject:
    """Return the parameters of a request; empty if there are none."""
    params = message.params
    if params is None:
        return {}
    if not isinstance(params, dict):
        raise Fault(INVALID_PARAMS, "params must be an object.")
    return params


def check_envelope(headers: dict[bytes, bytes], method: str, params: JSONObject) -> JSONObject:
    """Return the capabilities of the client that sends a modern request; raise Fault if what it must repeat differs."""
    meta = params.get("_meta")
    if not isinstance(meta, dict) or _VERSION not in meta or _CAPABILITIES not in meta:
        raise Fault(INVALID_PARAMS, f"params._meta must be an object with {_VERSION} and {_CAPABILITIES}.")
    if headers.get(b"mcp-method", b"").decode("latin-1") != method:
        raise _mismatch("mcp-method", "the method")
    key = _NAMED_BY.get(method)
    if key is not None and key in params and _decoded(headers.get(b"mcp-name")) != params[key]:
        raise _mismatch("mcp-name", f"the parameter {key}")
    capabilities = meta[_CAPABILITIES]
    if not isinstance(capabilities, dict):
        raise Fault(INVALID_PARAMS, f"{_CAPABILITIES} must be an object.")
    return capabilities


def _mismatch(header: str, part: str) -> Fault:
    return Fault(HEADER_MISMATCH, f"The header {header} does not match {part}.")


def _decoded(header: bytes | None) -> str | None:
    """Return a header's value, which is in base64 if it is not printable ASCII; None if it cannot be decoded."""
    if header is None:
        return None
    if not (header.startswith(b"=?base64?") and header.endswith(b"?=")):
        return header.decode("latin-1")
    encoded = header[len(b"=?base64?") : -len(b"?=")]
    try:
        value = base64.b64decode(encoded, validate=True)
        # Other spellings of the same value are refused, so that everybody who reads the header reads the same.
        return value.decode() if base64.b64encode(value) == encoded else None
    except (binascii.Error, UnicodeDecodeError):
        return None


def asks_by_form(capabilities: JSONObject) -> bool:
    """Return whether the client can ask its user by a form; the capability without modes means that."""
    modes = capabilities.get("elicitation")
    return isinstance(modes, dict) and (modes.get("form") is not None or modes.get("url") is None)


# ---------------------------------------------------------------------- the parameters


class _CallMeta(Struct):
    progress_token: int | str | None = field(default=None, name="progressToken")


class CallParams(Struct):
    """A tool call, and the user's answer to what an earlier one asked."""

    name: str
    arguments: JSONObject | None = None
    meta: _CallMeta | None = field(default=None, name="_meta")
    answers: dict[str, JSONObject] | None = field(default=None, name="inputResponses")
    state: str | None = field(default=None, name="requestState")

    @property
    def progress_token(self) -> int | str | None:
        return self.meta.progress_token if self.meta else None

    def answer(self, name: str) -> str:
        """Return what the user answered to the question *name*; "" without an answer."""
        action = (self.answers or {}).get(name, {}).get("action")
        return action if action in ("accept", "decline", "cancel") else ""


class _ResourceRef(Struct, tag_field="type", tag="ref/resource"):
    uri: str


class _PromptRef(Struct, tag_field="type", tag="ref/prompt"):
    name: str


class _Typed(Struct):
    """The part of an argument that a user has typed."""

    name: str
    value: str


class UriParams(Struct):
    """The parameters of a request for a resource or a skill: its URI."""

    uri: str


class NameParams(Struct):
    """The parameters of a request for a prompt: its name and its arguments."""

    name: str
    arguments: dict[str, str] | None = None


class CompletionParams(Struct):
    """The parameters of a completion: the argument, and the beginning of its value."""

    ref: _ResourceRef | _PromptRef
    argument: _Typed


class _Client(Struct):
    name: str
    version: str


class InitializeParams(Struct):
    """The handshake of the legacy protocols."""

    version: str = field(name="protocolVersion")
    capabilities: JSONObject
    client: _Client = field(name="clientInfo")


class ListParams(Struct):
    """A place in a list: each has one page, so no place is valid."""

    cursor: Any = None


class _Wanted(Struct):
    """What a client wants to be told; kinds that are not here never change while the server runs."""

    resources: tuple[str, ...] | None = field(default=None, name="resourceSubscriptions")


class ListenParams(Struct):
    """The parameters of a subscription."""

    notifications: _Wanted


LookupParams = UriParams | NameParams | CompletionParams
_Params = TypeVar("_Params", bound=Struct)


def as_params(params: JSONObject, shape: type[_Params]) -> _Params:
    """Return *params* as *shape*; raise Fault if they do not have it."""
    try:
        return msgspec.convert(params, shape)
    except msgspec.ValidationError as error:
        raise Fault(INVALID_PARAMS, f"Invalid params: {error}.") from None


# ---------------------------------------------------------------------- results and errors


ACCEPTED = Reply(202, NOTHING, b"")
"""The reply to a notification."""

_LEGACY_RESULTS = frozenset({METHOD_NOT_FOUND, INVALID_PARAMS, RESOURCE_NOT_FOUND})
"""Errors that the legacy protocols send with status 200: the request was understood."""
_MAX_REMEMBERED_BYTES = 8_000
_PROVENANCE = b'"' + PROVENANCE.encode() + b'":'


def as_text(structured: bytes) -> bytes:
    """Return JSON as a JSON string."""
    return msgspec.json.encode(structured.decode())


@lru_cache(maxsize=128)
def _remembered_text(structured: bytes) -> bytes:
    return as_text(structured)


def public_text(structured: bytes) -> bytes:
    """
    Return JSON as a JSON string, and remember it: public answers are repeated, as the same objects.

    Without this, the text is a sixth of the cost of a list (10 of 56 microseconds for 4.5 KB).
    """
    return _remembered_text(structured) if len(structured) <= _MAX_REMEMBERED_BYTES else as_text(structured)


def tool_result(answer: Marked, text: bytes, modern: bytes | None, *, failed: bool) -> tuple[bytes, ...]:
    """
    Return a tool result in pieces, with both closing braces: the JSON as text and as structuredContent, and the marks.

    Args:
        text: the answer's content as a JSON string.
        modern: the rest of a modern result, from the members of its `_meta`; None for a legacy one.
    """
    structured, marks = answer
    kind = b',"isError":true' if failed else b',"isError":false'
    if modern is not None:
        marked = _PROVENANCE + marks + b"," if marks else b""
        end = b',"resultType":"complete","_meta":{' + marked + modern
    else:
        end = b',"_meta":{' + _PROVENANCE + marks + b"}}}" if marks else b"}}"
    return b'{"content":[{"type":"text","text":', text, b'}],"structuredContent":', structured, kind, end


def input_required(question: InputRequired, modern: bytes) -> bytes:
    """Return a result that asks the client to ask its user; *modern* as for :func:`tool_result`."""
    return msgspec.json.encode(question.to_wire())[:-1] + b',"_meta":{' + modern


def result(request_id: bytes, *pieces: bytes) -> Reply:
    """Return the reply to a request: its id, and the *pieces* of the result with both closing braces."""
    return Reply(200, JSON_HEADERS, b"".join((b'{"jsonrpc":"2.0","id":', request_id, b',"result":', *pieces)))


def fault_reply(fault: Fault, request_id: bytes, *, is_modern: bool) -> Reply:
    """Return the error that answers a message; the request's id is null if it could not be read."""
    code = INVALID_PARAMS if is_modern and fault.code == RESOURCE_NOT_FOUND else fault.code
    if is_modern:
        status = 404 if code == METHOD_NOT_FOUND else 400
    else:
        status = 200 if code in _LEGACY_RESULTS else 400
    error: JSONObject = {"code": code, "message": fault.message}
    if fault.data is not None:
        error["data"] = fault.data
    body = b'{"jsonrpc":"2.0","id":' + request_id + b',"error":' + msgspec.json.encode(error) + b"}"
    return Reply(status, JSON_HEADERS, body)


# ---------------------------------------------------------------------- look-ups


TOOL: Final = "tools/call"
"""The method of a look-up of an unknown tool."""
MAX_COMPLETIONS: Final = 100
_JSON: Final = "application/json"


class Lookup(NamedTuple):
    """A look-up, with the end of a modern result; None for a legacy one."""

    request_id: bytes
    method: str
    params: LookupParams
    end: bytes | None


def encoded(answer: Answer) -> Marked:
    if isinstance(answer, Marked):
        return answer
    return Marked(answer if isinstance(answer, bytes) else encode(answer))


def shapes(offer: Declarations) -> dict[str, type[LookupParams]]:
    """Return the methods of look-ups that a server has, with the shape of their parameters."""
    found: dict[str, type[LookupParams]] = {}
    if "resources" in offer.capabilities:
        found["resources/read"] = UriParams
    if offer.prompts:
        found["prompts/get"] = NameParams
    if "completions" in offer.capabilities:
        found["completion/complete"] = CompletionParams
    if offer.skills:
        found["skills/get"] = UriParams
    return found


def meta(answer: Marked) -> JSONObject:
    """Return the `_meta` of a result with the marks of *answer*."""
    return {PROVENANCE: msgspec.json.decode(answer.marks)} if answer.marks else {}


def read_resource(offer: Declarations, uri: str, caller: Caller) -> JSONObject:
    """Return the contents of the resource at *uri*."""
    text = next((found for found in offer.texts if found.is_at(uri)), None)
    if text is not None:
        shown = {"_meta": dict(text.meta)} if text.meta else {}
        return {"contents": [{"uri": uri, "mimeType": text.mime_type, "text": text.text, **shown}]}
    message = f"Resource not found: {uri[:200]}."
    for found in offer.resources:
        if not found.is_of(uri):
            continue
        key = unquote(uri.removeprefix(found.prefix)) if found.variable else ""
        try:
            answer = encoded(found.read(key, caller))
        except Problem as problem:
            message = f"{problem.message} {problem.hint}"
            break
        marked = {"_meta": meta(answer)} if answer.marks else {}
        return {"contents": [{"uri": uri, "mimeType": _JSON, "text": answer.content.decode()}], **marked}
    raise Fault(RESOURCE_NOT_FOUND, message, {"uri": uri})


def get_prompt(offer: Declarations, name: str, arguments: Mapping[str, str] | None) -> JSONObject:
    """Return the messages of the prompt *name*."""
    found = next((prompt for prompt in offer.all_prompts if prompt.name == name), None)
    if found is None:
        raise Fault(INVALID_PARAMS, f"Unknown prompt: {name[:100]}")
    given = arguments or {}
    for required in found.arguments:
        if not given.get(required, "").strip():
            raise Fault(INVALID_PARAMS, f"The argument {required} of the prompt {found.name} is missing.")
    message = {"role": "user", "content": {"type": "text", "text": found.render(given)}}
    return {"description": found.description, "messages": [message]}


def get_skill(offer: Declarations, uri: str) -> JSONObject:
    """Return the skill at *uri*, with what the extension says of every result."""
    for skill in offer.skills:
        if skill.uri == uri:
            return {"skill": skill.to_wire(), "resultType": "complete", **kept(offer)}
    raise Fault(INVALID_PARAMS, f"Skill not found: {uri[:200]}.", {"uri": uri})


def kept(offer: Declarations) -> JSONObject:
    """Return how long clients may keep what does not change while the server runs."""
    return {"ttlMs": offer.list_ttl_ms, "cacheScope": offer.cache_scope}


def complete(offer: Declarations, ref: Any, name: str, value: str) -> JSONObject:
    """Return completions of the argument *name* of a prompt, or of a resource's variable."""
    find = None
    uri = getattr(ref, "uri", None)
    if uri is not None:
        template = next((found for found in offer.resources if found.uri == uri), None)
        if template is not None and template.variable == name:
            find = template.complete
    else:
        prompt = next((found for found in offer.all_prompts if found.name == ref.name), None)
        find = prompt.complete.get(name) if prompt else None
    values = find(value, MAX_COMPLETIONS + 1) if find else []
    return {"completion": {"values": values[:MAX_COMPLETIONS], "hasMore": len(values) > MAX_COMPLETIONS}}


def answer_lookup(asked: Lookup, offer: Declarations, caller: Caller) -> Reply:
    """Return the reply to a look-up."""
    end = asked.end
    try:
        found = _found(asked, offer, caller)
    except Fault as fault:
        return fault_reply(fault, asked.request_id, is_modern=end is not None)
    if end is None:
        return result(asked.request_id, encode(found), b"}")
    marks = encode(found.pop("_meta"))[1:-1] + b"," if "_meta" in found else b""
    return result(asked.request_id, encode({**found, "resultType": "complete"})[:-1], b',"_meta":{', marks, end)


def unknown_tool(name: str, offer: Declarations) -> Fault:
    message = web_pages.unknown_tool(name, [tool.name for tool in offer.tools], offer.website_url)
    return Fault(INVALID_PARAMS, message)


def _found(asked: Lookup, offer: Declarations, caller: Caller) -> JSONObject:
    params = asked.params
    if isinstance(params, NameParams):
        if asked.method == TOOL:
            raise unknown_tool(params.name, offer)
        return get_prompt(offer, params.name, params.arguments)
    if isinstance(params, CompletionParams):
        return complete(offer, params.ref, params.argument.name, params.argument.value)
    if asked.method == "skills/get":
        return get_skill(offer, params.uri)
    found = read_resource(offer, params.uri, caller)
    if asked.end is None:  # a legacy request
        return found
    return {**found, "ttlMs": offer.read_ttl_ms, "cacheScope": offer.cache_scope}


# ---------------------------------------------------------------------- what is encoded once


TOOLS: Final = "tools/list"


class FinishedResults:
    """The finished results of a server that offers *offer*, each with all closing braces."""

    def __init__(self, offer: Declarations) -> None:
        info = encode(offer.server_info)
        modern = offer.capabilities
        if offer.follow is not None:
            modern["resources"] = {**modern["resources"], "subscribe": True}
        self.own_meta = b'"io.modelcontextprotocol/serverInfo":' + info + b"}}}"
        """The end of the `_meta` of a modern result."""
        self._offer = offer
        self._end = b',"resultType":"complete","_meta":{' + self.own_meta
        self._tools: dict[frozenset[str], tuple[bytes, bytes]] = {}
        self._lists = {**self._of_resources(), **self._of_skills()}
        self._changing_prompts = offer.changing_prompts()
        self._prompts = self._of_prompts()
        instructions, capabilities = encode(offer.instructions), encode(offer.capabilities)
        self.discover = (
            b'{"supportedVersions":["%s"],"capabilities":' % MODERN.encode() + encode(modern)
            + b',"instructions":' + instructions + self._cached + self._end
        )  # fmt: skip
        self._initialize = {
            version: b'{"protocolVersion":"' + version.encode() + b'","capabilities":' + capabilities
            + b',"serverInfo":' + info + b',"instructions":' + instructions + b"}}"
            for version in LEGACY
        }  # fmt: skip

    @property
    def _cached(self) -> bytes:
        return b',"ttlMs":%d,"cacheScope":"%s"' % (self._offer.list_ttl_ms, self._offer.cache_scope.encode())

    def initialize(self, version: str) -> bytes:
        """Return the handshake's result for the *version* that a client asks for, or for the latest one."""
        return self._initialize.get(version) or self._initialize[LATEST_LEGACY]

    def visible(self, scopes: frozenset[str]) -> list[Tool]:
        """Return the tools that a caller with *scopes* may use, in order."""
        return [tool for tool in self._offer.tools if tool.scope is None or tool.scope in scopes]

    def listing(self, method: str, scopes: frozenset[str]) -> tuple[bytes, bytes] | None:
        """Return the result of a list, modern and legacy; None if the server has no such list."""
        if method == "prompts/list" and self._offer.prompts:
            return self._listed_prompts()
        if method != TOOLS:
            return self._lists.get(method)
        found = self._tools.get(scopes)
        if found is None:
            tools = b'{"tools":' + encode([tool.to_wire() for tool in self.visible(scopes)])
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

    def _listed_prompts(self) -> tuple[bytes, bytes]:
        changing = self._offer.changing_prompts()
        if changing is not self._changing_prompts:
            self._changing_prompts, self._prompts = changing, self._of_prompts()
        return self._prompts

    def _of_prompts(self) -> tuple[bytes, bytes]:
        return self._list("prompts", [each.to_wire() for each in self._offer.all_prompts])

    def _of_skills(self) -> dict[str, tuple[bytes, bytes]]:
        if not self._offer.skills:
            return {}
        # The extension has the same result in both generations.
        found = {"resultType": "complete", "skills": [each.to_wire() for each in self._offer.skills]}
        whole = encode(found)[:-1] + self._cached
        return {"skills/list": (whole + b',"_meta":{' + self.own_meta, whole + b"}}")}

    def _list(self, name: str, items: list[dict[str, object]]) -> tuple[bytes, bytes]:
        kept = {"cacheScope": self._offer.cache_scope, "resultType": "complete", "ttlMs": self._offer.list_ttl_ms}
        modern = msgspec.json.encode({name: items, **kept}, order="sorted")
        legacy = msgspec.json.encode({name: items}, order="sorted")
        return modern[:-1] + b',"_meta":{' + self.own_meta, legacy + b"}"


log = logging.getLogger("muniment.mcp")
_NO_CREDENTIAL = "This tool requires a credential."


class NotPermitted(Exception):  # noqa: N818 - an answer of HTTP
    """The caller's credential lacks the scope of a tool; *problem* is the response (403)."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.message)
        self.problem = problem


@dataclass(frozen=True, slots=True)
class Bound:
    """A tool with the compiled check of its arguments."""

    tool: Tool
    check: Check


class ToolCall(NamedTuple):
    """A call of a tool that there is, with the end of a modern result; None for a legacy one."""

    request_id: bytes
    bound: Bound
    params: CallParams
    end: bytes | None
    elicits: bool = False

    def by(self, caller: Caller, report: Report | None = None) -> Caller:
        """Return the caller with what the call says of questions and progress."""
        if self.elicits:
            answer, state = self.params.answer(INPUT), self.params.state or ""
            return replace(caller, elicits=True, answer=answer, state=state, report=report)
        return caller if report is None else replace(caller, report=report)


class Listen(NamedTuple):
    """
    A subscription.

    Args:
        follow: yields what is published while the client listens.
        uris: the URI of each document that it is told of, by kind and key.
    """

    request_id: bytes
    follow: Follow
    uris: Mapping[tuple[str, str], str]


MAX_SUBSCRIBED: Final = 100
"""Resources of a subscription, as many as a list takes ids."""
_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
Asked = ToolCall | Lookup | Listen | Reply


class ToolServer:
    """
    A tool server.

    Args:
        limiter: limits requests by client; None for no limit.
        access: None for a public server, whose bodies are limited to 64 KB.
    """

    def __init__(
        self,
        offer: Declarations,
        *,
        gate: OriginPolicy,
        limiter: Limiter | None = None,
        access: Access | None = None,
    ) -> None:
        self.offer = offer
        self.gate = gate
        self.limiter = limiter
        self.access = access
        self.max_body_bytes = MAX_PUBLIC_BODY_BYTES if access is None else MAX_BODY_BYTES
        self.tools = {
            tool.name: Bound(tool, compile_arguments(tool.input_schema, later=tool.validated_later, keys=tool.keys))
            for tool in offer.tools
        }
        self._finished = FinishedResults(offer)
        self._own_meta = self._finished.own_meta
        self._text = public_text if offer.shared else as_text
        self._lookups = shapes(offer)

    # ------------------------------------------------------------------ requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            reply = await self._answer(scope, receive, send)
        except NotPermitted as refused:
            reply = self.error_reply(refused.problem)
        except Problem as problem:
            reply = self.error_reply(problem)
        except Exception as error:  # noqa: BLE001 - it is logged
            request_id = in_state(scope, "request_id")
            log_failure(log, error, "%s failed (request %s)", self.offer.name, request_id)
            reply = self.error_reply(unexpected(error, request_id))
        if reply is not None:
            await deliver(reply, send)

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Reply | None:
        """Return the reply; None if an event stream has sent it or the client disconnected."""
        headers = headers_by_name(scope["headers"])
        self.gate.admit(headers.get(b"host", b""), headers.get(b"origin", b""))
        method = scope["method"]
        if method == "OPTIONS":
            return preflight(headers)
        admitted = await admit(scope, self.access, self.limiter)
        if method != "POST":
            _check_rate(admitted.refusal)
            refused = MethodNotAllowed(method, ALLOW)
            refused.hint = "This is an MCP server, which uses POST; see /.well-known/mcp.json."
            raise refused
        check_types(headers)
        if admitted.refusal is None:
            body = await read_body(headers, receive, self.max_body_bytes)
        else:
            body = await read_prompt_body(headers, receive, admitted.refusal)
        if body is None:
            return None
        asked = self.understood(headers, body, admitted.caller)
        if not isinstance(asked, ToolCall):
            _check_rate(admitted.refusal)
            if isinstance(asked, Listen):
                if not accepts_events(headers):
                    raise NotAcceptable(
                        "A subscription is an event stream, which the Accept header excludes.",
                        "Send Accept: application/json, text/event-stream.",
                    )
                del body  # the names of the documents are all that is needed as long as the client listens
                async with aclosing(asked.follow(asked.uris.values(), scope, receive)) as editions:
                    await self._listen(asked, editions, EventStream(send, None))
                return None
            return asked if isinstance(asked, Reply) else answer_lookup(asked, self.offer, admitted.caller)
        if not asked.bound.tool.waits:
            return await self._answer_call(asked, admitted)
        stream = EventStream(send, asked.params.progress_token) if accepts_events(headers) else None
        return await answer(partial(self._answer_call, asked, admitted), stream, receive)

    def admit(self, headers: dict[bytes, bytes]) -> None:
        """Raise a problem for a Host, an Origin or a content type that is not allowed."""
        self.gate.admit(headers.get(b"host", b""), headers.get(b"origin", b""))
        check_types(headers)

    # ------------------------------------------------------------------ what a request asks for

    def understood(self, headers: dict[bytes, bytes], body: bytes, caller: Caller) -> Asked:
        """Return what a request asks for: a tool call, a look-up, or the finished reply, which may be an error."""
        is_modern = is_of_modern_version(headers)
        request_id = b"null"
        try:
            message = read_message(body)
            if message.id is None:
                # Notifications need no answer, and this server asks nothing that a response would answer.
                check_version(headers, {})
                return ACCEPTED
            request_id = message.id
            return self._asked(headers, message, request_id, caller, is_modern=is_modern)
        except Fault as fault:
            return fault_reply(fault, request_id, is_modern=is_modern)

    def _asked(
        self, headers: dict[bytes, bytes], message: Message, request_id: bytes, caller: Caller, *, is_modern: bool
    ) -> Asked:
        method, params = message.method, params_of(message)
        check_version(headers, params)
        capabilities = check_envelope(headers, method, params) if is_modern else {}
        end = self._own_meta if is_modern else None
        if method == TOOL:
            call = as_params(params, CallParams)
            bound = self.tools.get(call.name)
            if bound is None:
                return Lookup(request_id, TOOL, NameParams(call.name), end)
            return ToolCall(request_id, bound, call, end, asks_by_form(capabilities))
        follow = self.offer.follow
        if is_modern and method == "subscriptions/listen" and follow is not None:
            return Listen(request_id, follow, self._uris(as_params(params, ListenParams).notifications.resources or ()))
        shape = self._lookups.get(method)
        if shape is not None:
            return Lookup(request_id, method, as_params(params, shape), end)
        return result(request_id, self._finished_result(method, params, caller, is_modern=is_modern))

    def _finished_result(self, method: str, params: JSONObject, caller: Caller, *, is_modern: bool) -> bytes:
        """Return the result of a list, of discovery, of the handshake or of a ping."""
        listing = self._finished.listing(method, caller.actor.scopes)
        if listing is not None:
            if as_params(params, ListParams).cursor is not None:
                raise Fault(INVALID_PARAMS, "This list has only one page; call it without a cursor.")
            modern, legacy = listing
            return modern if is_modern else legacy
        if is_modern and method == "server/discover":
            return self._finished.discover
        if not is_modern and method == "initialize":
            return self._finished.initialize(as_params(params, InitializeParams).version)
        if not is_modern and method == "ping":
            return b"{}}"
        raise Fault(METHOD_NOT_FOUND, f"Method not found: {method[:100]}")

    # ------------------------------------------------------------------ subscriptions

    def _uris(self, wanted: Sequence[str]) -> dict[tuple[str, str], str]:
        """Return those of the *wanted* URIs that are documents here, by kind and key."""
        if len(wanted) > MAX_SUBSCRIBED:
            message = f"A subscription takes at most {MAX_SUBSCRIBED} resources. For more, follow GET /api/v1/changes."
            raise Fault(INVALID_PARAMS, message)
        found = {}
        for uri in wanted:
            for resource in self.offer.resources:
                key = unquote(uri.removeprefix(resource.prefix))
                if resource.variable and uri.startswith(resource.prefix) and slug_fault(key) is None:
                    found[resource.name, key] = uri
        return found

    async def _listen(self, asked: Listen, editions: AsyncIterator[Sequence[ChangeRow]], stream: "EventStream") -> None:
        """Send which of the documents are published, until the client leaves or the process ends."""
        meta = {_SUBSCRIPTION: msgspec.Raw(asked.request_id)}
        async for rows in editions:
            if not stream.is_open:
                honored = {"resourceSubscriptions": list(asked.uris.values())} if asked.uris else {}
                await stream.notify("subscriptions/acknowledged", {"notifications": honored, "_meta": meta})
            elif not rows:
                await stream.ping()
            for key in dict.fromkeys((row.kind, row.key) for row in rows):
                if key in asked.uris:
                    await stream.notify("resources/updated", {"uri": asked.uris[key], "_meta": meta})
        end = (b'{"resultType":"complete","_meta":{"%s":' % _SUBSCRIPTION.encode(), asked.request_id, b",")
        await stream.finish(result(asked.request_id, *end, self._own_meta).body)

    # ------------------------------------------------------------------ tools

    def _start(self, bound: Bound, arguments: JSONObject | None, caller: Caller) -> Answer | Awaitable[Answer]:
        """
        Call a tool. Nothing else does, so no way leads around its scope and its limits.

        Raises:
            NotPermitted: the caller's credential lacks the tool's scope.
            TooMany: the account is over its limit of calls that may change something.
        """
        tool = bound.tool
        if tool.scope is not None and tool.scope not in caller.actor.scopes:
            refused = self.access.missing(tool.scope) if self.access else Forbidden(_NO_CREDENTIAL, "")
            raise NotPermitted(refused)
        if self.access is not None and not tool.read_only:
            self.access.fairness.take("writes", str(caller.actor.account_id))
        return tool.handler(bound.check(arguments or {}), caller)

    async def _answer_call(self, asked: ToolCall, admitted: Admitted, report: Report | None = None) -> Reply:
        """Answer a tool call; raise NotPermitted."""
        bound, arguments, caller = asked.bound, asked.params.arguments, asked.by(admitted.caller, report)
        try:
            _check_rate(admitted.refusal)
            with tracing.span(f"tool {bound.tool.name}", {"gen_ai.tool.name": bound.tool.name}):
                found = self._start(bound, arguments, caller)
                if inspect.isawaitable(found):
                    found = await found
            answer, failed = encoded(found), False
        except InputRequired as question:
            return result(asked.request_id, input_required(question, self._own_meta))
        except NotPermitted:
            raise
        except Exception as error:  # noqa: BLE001 - handled by type there
            answer, failed = self._failure(error, bound, caller), True
        return result(asked.request_id, *tool_result(answer, self._text(answer.content), asked.end, failed=failed))

    def call_now(self, asked: ToolCall, caller: Caller) -> Reply | None:
        """Call an instant tool for a caller who cannot wait, and return the reply; None if it takes long."""
        try:
            found: Any = self._start(asked.bound, asked.params.arguments, caller)
            answer, failed = encoded(found), False
        except NotAtOnce:
            return None
        except NotPermitted as refused:
            return self.error_reply(refused.problem)
        except Exception as error:  # noqa: BLE001 - handled by type there
            answer, failed = self._failure(error, asked.bound, caller), True
        return result(asked.request_id, *tool_result(answer, self._text(answer.content), asked.end, failed=failed))

    def error_reply(self, problem: Problem) -> Reply:
        """Return the HTTP response for *problem*; the pages that it names have their full addresses."""
        return error_reply(problem, self.offer.website_url)

    def refused(self, asked: Asked, problem: Problem, caller: Caller) -> Reply:
        """Return the reply to a caller over the limit: the result of a tool call, which models read, or a 429."""
        if not isinstance(asked, ToolCall):
            return self.error_reply(problem)
        answer = self._failure(problem, asked.bound, caller)
        return result(asked.request_id, *tool_result(answer, as_text(answer.content), asked.end, failed=True))

    def _failure(self, error: Exception, bound: Bound, caller: Caller) -> Marked:
        if isinstance(error, Problem):
            told = error.to_wire()
            return encoded({**told, "error": web_pages.with_addresses(told["error"], self.offer.website_url)})
        log_failure(log, error, "tool %s failed (request %s)", bound.tool.name, caller.request_id)
        return encoded(unexpected(error, caller.request_id).to_wire())


def _check_rate(refusal: TooMany | None) -> None:
    """Raise the *refusal* of a caller over a limit."""
    if refusal is not None:
        raise refusal


PING_S: Final = 15.0
_HEADERS: Final[Headers] = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),
    *CORS,
]


class EventStream:
    """
    The event stream of one call, which begins with its first event.

    Args:
        token: the progress token of the call; None if it asked for none.
    """

    def __init__(self, send: Send, token: str | int | None) -> None:
        self._send, self._token = send, token
        self.is_open = False

    @property
    def report(self) -> Report | None:
        return None if self._token is None else self._report

    async def _report(self, done: int, total: int, words: str) -> None:
        params = {"progressToken": self._token, "progress": done, "total": total, "message": words}
        await self.notify("progress", params)

    async def notify(self, name: str, params: Mapping[str, object]) -> None:
        """Send a notification."""
        note = {"jsonrpc": "2.0", "method": f"notifications/{name}", "params": params}
        await self._write(_event(msgspec.json.encode(note)))

    async def ping(self) -> None:
        await self._write(b": ping\r\n\r\n")

    async def finish(self, body: bytes) -> None:
        await self._write(_event(body), is_last=True)

    async def _write(self, data: bytes, *, is_last: bool = False) -> None:
        if not self.is_open:
            self.is_open = True
            await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
        await self._send({"type": "http.response.body", "body": data, "more_body": not is_last})


async def answer(
    call: Callable[[Report | None], Awaitable[Reply]], stream: EventStream | None, receive: Receive
) -> Reply | None:
    """
    Return the reply of *call*; None if *stream* has sent it or the client went away.

    Args:
        call: gets the function that reports progress, if the client wants to know it.
        stream: None for a client that accepts JSON only.
    """
    work = asyncio.ensure_future(call(stream.report if stream else None))
    left = asyncio.ensure_future(gone(receive))
    try:
        while not work.done():
            await asyncio.wait({work, left}, timeout=PING_S, return_when=asyncio.FIRST_COMPLETED)
            if work.done():
                break
            if left.done():
                return None
            if stream is not None:
                await stream.ping()
        reply = work.result()
        if stream is None or not stream.is_open:
            return reply
        await stream.finish(reply.body)
        return None
    finally:
        work.cancel()
        left.cancel()
        await asyncio.gather(work, left, return_exceptions=True)


def _event(body: bytes) -> bytes:
    return b"event: message\r\ndata: " + body + b"\r\n\r\n"
