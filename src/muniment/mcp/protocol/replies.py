"""JSON-RPC replies of the direct path."""

import msgspec

from muniment.kernel.problems import TooMany
from muniment.mcp.declarations import PROVENANCE, InputRequired, Marked
from muniment.mcp.protocol.http import JSON_HEADERS, NOTHING, Reply

ACCEPTED = Reply(202, NOTHING, b"")
"""The reply to a notification."""

BATCH = Reply(
    400,
    JSON_HEADERS,
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A body must be a JSON-RPC request or notification; '
    b'batches are not supported. Send the requests one by one."}}',
)


_PROVENANCE = b'"' + PROVENANCE.encode() + b'":'


def tool_result(answer: Marked, modern: bytes | None, *, failed: bool) -> tuple[bytes, ...]:
    """
    Return a tool result in pieces, with both closing braces: the JSON as text and as structuredContent, and the marks.

    Args:
        modern: the rest of a modern result, from the members of its `_meta`; None for a legacy one.
    """
    structured, marks = answer
    text = msgspec.json.encode(structured.decode())
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


def check_rate(refusal: TooMany | None) -> None:
    """Raise the *refusal* of a caller over a limit."""
    if refusal is not None:
        raise refusal
