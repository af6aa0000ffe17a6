"""The framework tools of the owner-scoped server: those of the public one, with prices."""

import dataclasses
import inspect
from collections.abc import Awaitable, Callable, Iterator
from operator import attrgetter
from typing import Any, Final

import msgspec

from muniment.assessments.operations import costs_of
from muniment.kernel.problems import Unavailable
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools.output_schemas import INTEGER
from muniment.mcp.tools.public import framework_tools
from muniment.mcp.tools.public_lookups import PublicTools
from muniment.oauth.token_authentication import Bridge
from muniment.schema.objects import Schema
from muniment.store.reader import Reader

Handler = Callable[[Arguments, Caller], Marked | Awaitable[Marked]]
_COST: Final = "cost"


def readable(reader: Callable[[], Reader | None]) -> Reader:
    """Return the reader of the published file; raise Unavailable while it cannot be read."""
    found = reader()
    if found is None:
        raise Unavailable("The registry cannot be read at the moment.", "Try again in a few seconds.")
    return found


def owner_framework_tools(
    call: Bridge, reader: Callable[[], Reader | None], base_url: str, schema: Schema, scope: str
) -> Iterator[Tool]:
    """
    Yield the tools that find the framework of a run, with what a run costs.

    Args:
        call: runs an operation in a thread.
        reader: returns the reader of the published file, None while it cannot be read.
    """
    made: list[PublicTools] = []

    def tools_of(found: Reader) -> PublicTools:
        if not made or made[0].reader is not found:
            made[:] = [PublicTools(found, base_url, schema)]
        return made[0]

    def asking(handler_of: Callable[[PublicTools], Handler]) -> Callable[[Arguments, Caller], Awaitable[Marked]]:
        async def handler(arguments: Arguments, caller: Caller) -> Marked:
            found = readable(reader)
            fields = arguments.get("fields")
            public_arguments = arguments
            if fields is not None:
                public_arguments = {**arguments, "fields": [field for field in fields if field != _COST]}
            answer = handler_of(tools_of(found))(public_arguments, caller)
            shown = await answer if inspect.isawaitable(answer) else answer
            if fields is not None and _COST not in fields:
                return shown
            return await _with_costs(call, shown)

        return handler

    handlers = asking(attrgetter("list_frameworks")), asking(attrgetter("get_framework"))
    for tool in framework_tools(schema, *handlers, {_COST: INTEGER}):
        arguments = {name: each for name, each in tool.arguments.items() if name != "facets"}
        description = f"{tool.description} cost: credits of a run."
        yield dataclasses.replace(tool, arguments=arguments, description=description, scope=scope, instant=False)


async def _with_costs(call: Bridge, answer: Marked) -> Marked:
    """Return *answer* with the credits that a run of each of its open frameworks costs."""
    shown: dict[str, Any] = msgspec.json.decode(answer.content)
    items = shown["data"] if isinstance(shown["data"], list) else [shown["data"]]
    costs = await call(costs_of, [each["frameworkId"] for each in items if each.get("isOpen", True)])
    for each in items:
        if each["frameworkId"] in costs:
            each[_COST] = costs[each["frameworkId"]]
    return Marked(msgspec.json.encode(shown), answer.marks)
