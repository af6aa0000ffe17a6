"""Refused requests of a connection, and the bytes of its responses."""

import asyncio
import re
from http import HTTPStatus
from typing import Final, Protocol

from muniment.kernel.problems import BadRequest, MethodNotAllowed, Problem, TooMany


class TargetTooLong(Problem):
    """The request target is too long."""

    status = HTTPStatus.REQUEST_URI_TOO_LONG


class HeadersTooLarge(Problem):
    """The request has too many headers, or too long ones."""

    status = HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE


def crowded(what: str) -> TooMany:
    """Return the error for an address that holds too much at once."""
    return TooMany(
        f"Too many {what} from this address.", "Finish or close some of them, then try again.", retry_after_s=1
    )


INVALID: Final = BadRequest("The request is not valid HTTP/1.1 (RFC 9112).", "Check the client.")


def unknown_method(data: bytes) -> MethodNotAllowed | None:
    """Return the error for a request whose method the parser does not know; None if it is not valid either."""
    line = _REQUEST_LINE.match(data)
    if line is None:
        return None
    path = line[2].partition(b"?")[0].rstrip(b"/")
    return MethodNotAllowed(line[1].decode("ascii"), _ALLOWED.get(path, "GET, HEAD, OPTIONS"))


_REQUEST_LINE: Final = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,32}) (/[!-~]*) HTTP/1\.[01]\r\n")
_ALLOWED: Final = {b"/api/mcp": "POST, OPTIONS", b"/api/manage/mcp": "POST, OPTIONS"}


class Ending(Protocol):
    """A connection that a response may end."""

    transport: asyncio.Transport

    def end(self) -> None:
        """Close the connection, once the client has had time to read the response."""


class Wire:
    """The transport of a response: nothing is written for a client that has gone, and unread input delays the end."""

    __slots__ = ("_connection",)

    def __init__(self, connection: Ending) -> None:
        self._connection = connection

    def write(self, data: bytes) -> None:
        transport = self._connection.transport
        if not transport.is_closing():
            transport.write(data)

    def is_closing(self) -> bool:
        return self._connection.transport.is_closing()

    def close(self) -> None:
        self._connection.end()
