"""ASGI types: what a server passes to an application, and receives from it."""

from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, Final

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
Header = tuple[bytes, bytes]

LISTENS: Final = "listens"
"""The state of a request that waits for something to happen: its connection makes room for another like an idle one."""


async def gone(receive: Receive) -> None:
    """Wait until the client of a request has gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
