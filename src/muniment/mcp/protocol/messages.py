"""
JSON-RPC messages of both protocol generations, what their parameters must be, and the replies to them.

A body is read once, by the strict reader of JSON; everything after works on what it returned. Unknown members are
ignored: later revisions add some. The generations differ in where the version is (each modern request carries it
in `params._meta` and in a header), not in the parameters.

Source: MCP specification 2026-07-28, base protocol and Streamable HTTP; 2025-11-25 and before; JSON-RPC 2.0.
"""

import base64
import binascii
from functools import lru_cache
from typing import Any, Final, NamedTuple, TypeVar

import msgspec
from msgspec import Struct, field

from muniment.kernel.json import JSONError, JSONObject, read_json
from muniment.mcp.declarations import PROVENANCE, InputRequired, Marked
from muniment.mcp.protocol.http import JSON_HEADERS, NOTHING, Reply

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


def read(body: bytes) -> Message:
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


def is_modern(headers: dict[bytes, bytes]) -> bool:
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


# ---------------------------------------------------------------------- parameters


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
