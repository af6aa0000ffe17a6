"""ASGI types: what a server passes to an application, and receives from it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]


async def gone(receive: Receive) -> None:
    """Wait until the client of a request has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
