"""ASGI types: what a server passes to an application, and receives from it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final, Protocol

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

LISTENS: Final = "listens"
"""The state of a request that waits for something to happen: its connection makes room for another like an idle one."""

LASTING: Final = "lasting"
"""
The state of a request whose response lasts: a :class:`Lasting`, which the server waits for.

The parts that began the response have returned by then. Their frames, and what they know of the request, would take
3 KB of each of thousands of listeners.
"""


class Lasting(Protocol):
    """A response that has begun, and is continued by another part."""

    async def until_left(self, receive: Receive) -> None:
        """Wait until the client has gone or the response is complete, and clean up."""


async def gone(receive: Receive) -> None:
    """Wait until the client of a request has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
