"""Pass requests to the SDK in the form that it expects, and its responses on in the form of this server."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Struct, UnsetType

from muniment.kernel.asgi import Message, Send
from muniment.mcp.protocol import messages
from muniment.mcp.protocol.content_types import NotAcceptable
from muniment.mcp.protocol.http import CORS, Headers, deliver, error_reply


class _SummaryParams(Struct):
    name: Annotated[str, msgspec.Meta(max_length=200)] | UnsetType = UNSET


class _Summary(Struct):
    method: str
    params: _SummaryParams | UnsetType = UNSET


_decode_summary = msgspec.json.Decoder(_Summary).decode


def called_tool(body: bytes) -> str | None:
    """Return the name of the tool that an unusual body calls; None for any other request."""
    try:
        found = _decode_summary(body)
    except messages.DECODE_ERRORS:
        return None
    name = UNSET if found.method != "tools/call" or found.params is UNSET else found.params.name
    return None if name is UNSET else name


class SdkResponseSender:
    """Sends the SDK's responses with CORS headers, and replaces its plain errors by the JSON envelope."""

    def __init__(self, send: Send) -> None:
        self._send = send
        self._bare = 0

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [*message.get("headers", []), *CORS]
            is_json_answer = any(name == b"content-type" and b"json" in value for name, value in headers)
            if message["status"] >= 400 and not is_json_answer:
                self._bare = message["status"]
                return
            message = {**message, "headers": headers}
        elif self._bare:
            if not message.get("more_body"):
                problem = NotAcceptable(
                    "The request was rejected.", "Send Accept: application/json, text/event-stream."
                )
                await deliver(error_reply(problem)._replace(status=self._bare), self._send)
            return
        await self._send(message)


def normalize_headers(headers: Headers) -> Headers:
    """
    Return the headers in the form that the SDK expects.

    httptools keeps trailing white space in values, which the SDK takes for a mismatch; a missing Accept means anything
    (RFC 9110), and media types are case-insensitive.
    """
    normalized = [
        (name, value.strip() if name.startswith(b"mcp-") else value)
        for name, value in headers
        if name not in {b"content-type", b"content-length"} and not (name == b"accept" and not value.strip())
    ]
    normalized.append((b"content-type", b"application/json"))
    if not any(name == b"accept" for name, _ in normalized):
        normalized.append((b"accept", b"application/json, text/event-stream"))
    return normalized
