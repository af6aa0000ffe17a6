"""The finished answers of JSON-RPC that the thin path gives."""

import msgspec

from muniment.kernel.problems import TooMany
from muniment.mcp.protocol.http import JSON_HEADERS, NOTHING, Reply

ACCEPTED = Reply(202, NOTHING, b"")
"""The answer to a notification."""

BATCH = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"A body is one JSON-RPC request or notification; '
    b'batches are not taken. Send the requests one by one."}}'
)


def result_members(structured: bytes, *, failed: bool) -> bytes:
    """Give a tool result up to the closing brace: the same JSON as text and as structuredContent."""
    text = msgspec.json.encode(structured.decode())
    end = b',"isError":true' if failed else b',"isError":false'
    return b'{"content":[{"type":"text","text":' + text + b'}],"structuredContent":' + structured + end


def result(request_id: bytes, rest: bytes) -> Reply:
    """Give the answer to a request: its id, and the result with both closing braces."""
    return Reply(200, JSON_HEADERS, b'{"jsonrpc":"2.0","id":' + request_id + b',"result":' + rest)


def too_many(waits_s: int) -> TooMany:
    """Give the refusal of a client whose rate is used up for *waits_s* seconds."""
    return TooMany(
        "Too many requests from this address.",
        f"Wait {waits_s} s, then call again; fewer, larger pages need fewer calls.",
        retry_after_s=waits_s,
    )


def hold_to_rate(waits_s: int) -> None:
    """Refuse a client whose rate is used up; 0 lets it pass."""
    if waits_s:
        raise too_many(waits_s)
