"""Mount both tool servers as soon as they can start; earlier requests wait."""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, Final

from muniment.declared_fields import instance_schema
from muniment.schema.objects import Schema
from muniment.server.app.app import MANAGE_PATH, PUBLIC_PATH, App
from muniment.server.app.registry_file import RegistryFile
from muniment.server.app.startup import Startup
from muniment.server.app.threads import Bridge

TOOL_PATHS: Final = (
    MANAGE_PATH,
    PUBLIC_PATH,
    "/api/mcp/server-card",
    "/api/mcp/icon.svg",
    "/.well-known/mcp.json",
    "/.well-known/mcp/server-card.json",
    "/.well-known/mcp/server.json",
    "/.well-known/mcp/manage/server.json",
    "/.well-known/ai-catalog.json",
)
log = logging.getLogger("muniment.server")


class ToolServers:
    """The public and the owner tool server of *app*; requests wait for *startup*."""

    def __init__(
        self, app: App, bridge: Bridge, *, file: Callable[[], RegistryFile], startup: Callable[[], Startup | None]
    ) -> None:
        self._app, self._bridge, self._file, self._startup = app, bridge, file, startup
        self._public = asyncio.Event()
        self._owner = asyncio.Event()
        self._mounting: asyncio.Task[None] | None = None
        self._schemas: dict[str, Schema] = {}
        """The schema of each server, once it is mounted; a server with other declared fields replaces it."""
        self._drains: deque[Callable[[], None]] = deque(maxlen=2)
        """The owner server that answers, and the one before, which may still answer calls that wait."""

    def begin(self) -> None:
        self._app.mounts.update(dict.fromkeys(TOOL_PATHS, self._wait))

    def drain(self) -> None:
        """Let calls that wait for something answer at once."""
        for drain in self._drains:
            drain()

    async def end(self) -> None:
        if self._mounting is not None:
            await self._mounting

    def mount(self, *, has_database: bool = False) -> None:
        """Mount the public server, and the owner server if *has_database*. Call it in the event loop."""
        if has_database:
            from muniment.registry.declared.current import refresh

            refresh()  # another process may have applied fields since start-up looked
        former = self._mounting

        async def mount() -> None:
            if former is not None:
                await former
            mounts = [self._mount_public]
            if has_database:
                mounts.append(self._mount_owner)
            # One that cannot start must not keep the other away.
            for mount_one in mounts:
                try:
                    await mount_one()
                except Exception:
                    log.exception("a tool server did not start")

        self._mounting = asyncio.ensure_future(mount())

    def renew(self) -> None:
        """Let pages and tools use the declared fields that the API has begun to use. Call it in the event loop."""
        startup = self._startup()
        if startup is None or not startup.has_database:
            return  # start-up uses them by itself
        self.mount(has_database=True)
        if startup.has_pages:
            from muniment.server.app.interfaces import describe_interfaces

            describe_interfaces(self._app.config, self._bridge)

    async def _wait(self, scope: Any, receive: Any, send: Any) -> None:
        path = scope["path"].rstrip("/")
        ready = self._owner if path == MANAGE_PATH else self._public
        startup = self._startup()
        if startup is not None:
            await startup.until(ready.is_set, "The tool server is still starting.")
        await self._app.mounts[path](scope, receive, send)

    async def _mount_public(self) -> None:
        from muniment.server.app.public_tools import mount_public

        reader = self._file().reader
        schema = instance_schema(self._app.config)
        if reader is None or self._app.api is None or schema == self._schemas.get(PUBLIC_PATH):
            return
        mount_public(self._app, reader, schema)
        self._schemas[PUBLIC_PATH] = schema
        self._public.set()

    async def _mount_owner(self) -> None:
        from muniment.mcp.tools.owner.server import owner_server
        from muniment.server.app.public_tools import shared_arguments
        from muniment.server.fastpath.tools import OwnerRefusals

        schema = instance_schema(self._app.config)
        if schema == self._schemas.get(MANAGE_PATH):
            return
        server = owner_server(
            self._bridge.call,
            reader=lambda: self._file().reader,
            fairness=self._app.fairness,
            **shared_arguments(self._app, schema),
        )
        self._drains.append(server.offer.drain)
        self._app.mounts[MANAGE_PATH] = server
        if server.access is not None:
            self._app.fast_path.tools[MANAGE_PATH.encode()] = OwnerRefusals(server, server.access)
        self._schemas[MANAGE_PATH] = schema
        self._owner.set()
