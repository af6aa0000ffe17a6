"""JSON-RPC replies: results and errors."""

from functools import lru_cache

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import TooMany
from muniment.mcp.declarations import PROVENANCE, InputRequired, Marked
from muniment.mcp.protocol import messages
from muniment.mcp.protocol.http import JSON_HEADERS, NOTHING, Reply
from muniment.mcp.protocol.messages import Fault

ACCEPTED = Reply(202, NOTHING, b"")
"""The reply to a notification."""

_LEGACY_RESULTS = frozenset({messages.METHOD_NOT_FOUND, messages.INVALID_PARAMS, messages.RESOURCE_NOT_FOUND})
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
    code = messages.INVALID_PARAMS if is_modern and fault.code == messages.RESOURCE_NOT_FOUND else fault.code
    if is_modern:
        status = 404 if code == messages.METHOD_NOT_FOUND else 400
    else:
        status = 200 if code in _LEGACY_RESULTS else 400
    error: JSONObject = {"code": code, "message": fault.message}
    if fault.data is not None:
        error["data"] = fault.data
    body = b'{"jsonrpc":"2.0","id":' + request_id + b',"error":' + msgspec.json.encode(error) + b"}"
    return Reply(status, JSON_HEADERS, body)


def check_rate(refusal: TooMany | None) -> None:
    """Raise the *refusal* of a caller over a limit."""
    if refusal is not None:
        raise refusal
