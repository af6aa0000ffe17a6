"""How a connection refuses a request, and how its response is written."""

import asyncio
from http import HTTPStatus
from typing import Protocol

from muniment.kernel.problems import Problem, TooMany


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
