"""An ASGI application on a free loopback port, in a thread of this process."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from services.ports import free_port, wait_until


@contextmanager
def serving(app: Any) -> Iterator[int]:
    """Serve *app*; yield the port."""

    async def whole(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app({**scope, "state": {"client": "127.0.0.1", "request_id": "r-1"}}, receive, send)
            return
        await receive()
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await send({"type": "lifespan.shutdown.complete"})

    port = free_port()
    server = uvicorn.Server(
        uvicorn.Config(whole, host="127.0.0.1", port=port, http="httptools", log_level="warning", access_log=False)
    )
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, within_s=60, what="listening")
        yield port
    finally:
        server.should_exit = True
        thread.join(20)
        assert not thread.is_alive(), "the application did not stop"
