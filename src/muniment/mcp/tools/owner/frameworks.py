"""The framework tools of the owner-scoped server: those of the public one, so that a client needs no other."""

import dataclasses
from collections.abc import Awaitable, Callable, Iterator
from operator import attrgetter

from muniment.kernel.problems import Unavailable
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools.public import framework_tools
from muniment.mcp.tools.public_lookups import PublicTools
from muniment.schema.objects import Schema
from muniment.store.reader import Reader

Handler = Callable[[Arguments, Caller], Marked | Awaitable[Marked]]


def owner_framework_tools(
    reader: Callable[[], Reader | None], base_url: str, schema: Schema, scope: str
) -> Iterator[Tool]:
    """
    Yield the tools that find the framework of a run.

    Args:
        reader: returns the reader of the published file, None while it cannot be read.
    """
    made: list[PublicTools] = []

    def tools_of(found: Reader) -> PublicTools:
        if not made or made[0].reader is not found:
            made[:] = [PublicTools(found, base_url, schema)]
        return made[0]

    def asking(handler_of: Callable[[PublicTools], Handler]) -> Handler:
        def handler(arguments: Arguments, caller: Caller) -> Marked | Awaitable[Marked]:
            found = reader()
            if found is None:
                raise Unavailable("The registry cannot be read at the moment.", "Try again in a few seconds.")
            return handler_of(tools_of(found))(arguments, caller)

        return handler

    for tool in framework_tools(schema, asking(attrgetter("list_frameworks")), asking(attrgetter("get_framework"))):
        arguments = {name: each for name, each in tool.arguments.items() if name != "facets"}
        yield dataclasses.replace(tool, arguments=arguments, scope=scope, instant=False)
