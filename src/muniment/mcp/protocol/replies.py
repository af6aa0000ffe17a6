"""JSON-RPC replies of the direct path."""

import msgspec

from muniment.kernel.problems import TooMany
from muniment.mcp.protocol.http import JSON_HEADERS, NOTHING, Reply

ACCEPTED = Reply(202, NOTHING, b"")
"""The reply to a notification."""

BATCH = Reply(
    400,
    JSON_HEADERS,
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A body must be a JSON-RPC request or notification; '
    b'batches are not supported. Send the requests one by one."}}',
)


def result_members(structured: bytes, *, failed: bool) -> bytes:
    """Return a tool result without its closing brace: the same JSON as text and as structuredContent."""
    text = msgspec.json.encode(structured.decode())
    end = b',"isError":true' if failed else b',"isError":false'
    return b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":' + structured + end


def result(request_id: bytes, rest: bytes) -> Reply:
    """Return the reply to a request: its id, and the result with both closing braces."""
    return Reply(200, JSON_HEADERS, b'{"jsonrpc":"2.0","id":' + request_id + b',"result":' + rest)


def check_rate(refusal: TooMany | None) -> None:
    """Raise the *refusal* of a caller over a limit."""
    if refusal is not None:
        raise refusal
