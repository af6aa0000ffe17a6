"""The owner-scoped tool server in this process, over the test's own database."""

import asyncio
import contextlib
import re
from collections.abc import Callable, Iterator
from typing import Any

from django.conf import settings

from muniment.mcp.protocol.http import Access, BearerAuthentication, OriginPolicy
from muniment.mcp.protocol.transport import ToolServer
from muniment.mcp.tools.owner.server import owner_declarations
from muniment.oauth.resources import manage_server
from muniment.oauth.token_authentication import TokenAuthenticator
from muniment.store.reader import Reader
from services.mcp import Answer, Asker, modern

BASE = "http://testserver"


async def straight(call: Any, *arguments: Any) -> Any:
    """
    Replace the bridge: run in the test's own transaction, which a thread pool would not see.

    During the call the thread has no running loop, as in the bridge: Django gives a loop another connection.
    """
    loop = asyncio.get_running_loop()
    asyncio._set_running_loop(None)
    try:
        return call(*arguments)
    finally:
        asyncio._set_running_loop(loop)


OPEN = {
    "notShown",
    "confirmation",
    "removes",
    "company",
    "distribution",
    "proposals",
    "positions",
    "capTable",
    "person",
    "diff",
    "limits",
    "error",
}
"""Members that hold open objects, or objects whose keys are data."""


def undeclared(schema: Any, value: Any, path: str = "") -> Iterator[str]:
    """Find members of an answer that its schema does not describe."""
    kind = {list: "array", dict: "object"}.get(type(value))
    shape = next((each for each in schema.get("anyOf", ()) if each.get("type") == kind), schema)
    if isinstance(value, list):
        for item in value:
            yield from undeclared(shape.get("items", {}), item, f"{path}[]")
    elif isinstance(value, dict):
        known = shape.get("properties", {})
        marks = re.compile("|".join(shape.get("patternProperties", {"$^": None})))
        for name, member in value.items():
            if name not in known and "additionalProperties" not in shape and not marks.search(name):
                yield f"{path}.{name}"
            elif name not in OPEN:
                yield from undeclared(known.get(name, {}), member, f"{path}.{name}")


class Manage:
    """Calls the owner-scoped server with a token."""

    def __init__(self, asker: Asker, doorkeeper: TokenAuthenticator) -> None:
        self.asker = asker
        self.doorkeeper = doorkeeper

    def ask(self, token: str | None, request: Any, **scope: Any) -> Answer:
        headers, body = request
        extra = [("authorization", f"Bearer {token}"), ("user-agent", "suite/1")] if token is not None else []
        return self.asker.ask([*headers, *extra], body, path="/api/manage/mcp", **scope)

    def call(self, token: str, name: str, **arguments: Any) -> Any:
        """Call a tool and return its structuredContent, after checking it against its outputSchema."""
        answer = self.ask(token, modern("tools/call", {"name": name, "arguments": arguments}))
        assert answer.status == 200, answer
        found = answer.result["structuredContent"]
        self.asker.validate(name, found)
        assert list(undeclared(self.asker.server.tools[name].tool.output_schema, found)) == []
        return found

    def data(self, token: str, name: str, **arguments: Any) -> Any:
        """Call a tool that succeeds and return ``data``."""
        found = self.call(token, name, **arguments)
        assert "data" in found, found
        return found["data"]

    def error(self, token: str, name: str, **arguments: Any) -> Any:
        """Call a tool that fails and return ``error``."""
        found = self.call(token, name, **arguments)
        assert set(found) == {"error"}, found
        return found["error"]


@contextlib.contextmanager
def manage(bridge: Callable[..., Any] = straight, reader: Reader | None = None) -> Iterator[Manage]:
    """Yield the server as the product assembles it, with another bridge, and *reader* for public documents."""
    doorkeeper = TokenAuthenticator(bridge, resource=manage_server(BASE))
    bearers = BearerAuthentication(doorkeeper, BASE)
    offer = owner_declarations(
        bridge, base_url=BASE, registry_name="Suite Registry", schema=settings.SCHEMA, reader=lambda: reader
    )
    access = Access(bearers.authenticate, bearers.missing)
    asker = Asker(ToolServer(offer, gate=OriginPolicy(BASE), access=access))
    try:
        yield Manage(asker, doorkeeper)
    finally:
        asker.close()
