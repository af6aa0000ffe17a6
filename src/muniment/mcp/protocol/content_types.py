"""Check the content types of a request before it is read: JSON is sent, and JSON is accepted."""

from functools import lru_cache
from http import HTTPStatus
from typing import Final

from muniment.kernel.http.content_negotiation import MAX_REMEMBERED_BYTES
from muniment.kernel.problems import Problem


class UnsupportedType(Problem):
    """The body is not declared as JSON."""

    code = "bad_request"
    status = HTTPStatus.UNSUPPORTED_MEDIA_TYPE


class NotAcceptable(Problem):
    """The client does not accept JSON."""

    code = "bad_request"
    status = HTTPStatus.NOT_ACCEPTABLE


def check_types(headers: dict[bytes, bytes]) -> None:
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
        raise UnsupportedType(
            "The Content-Type of a request must be application/json.", "Send Content-Type: application/json."
        )
    accept = headers.get(b"accept", b"")
    if not (_remembered(accept) if len(accept) <= MAX_REMEMBERED_BYTES else _accepts_json(accept)):
        raise NotAcceptable(
            "Responses are JSON, which the Accept header excludes.",
            "Send Accept: application/json, text/event-stream.",
        )


def accepts_events(headers: dict[bytes, bytes]) -> bool:
    """Return whether the client names event streams among what it accepts."""
    return b"text/event-stream" in headers.get(b"accept", b"").lower()


def _accepts_json(accept: bytes) -> bool:
    types = {part.partition(b";")[0].strip().lower() for part in accept.split(b",")}
    return not accept.strip() or bool(types & {b"application/json", b"application/*", b"*/*"})


_remembered: Final = lru_cache(maxsize=1024)(_accepts_json)
