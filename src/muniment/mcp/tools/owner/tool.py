"""Declare an owner tool, with the arguments that several of them take."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp import confirmation
from muniment.mcp.declarations import Answer, Arguments, Caller, JsonSchema, Tool
from muniment.mcp.tools.addresses import MAX_CHARACTERS
from muniment.oauth.token_authentication import Bridge

SLUG: Final = {"type": "string", "maxLength": MAX_CHARACTERS, "description": "id of a list_my_companies item"}
ID: Final = {"type": "string", "maxLength": 100}
RUN_ID: Final = {**ID, "description": "runId of a list_my_runs item"}
_KINDS: Final = {"slug": "company", "companySlug": "company", "frameworkId": "framework"}
PAGE: Final[dict[str, JSONMapping]] = {
    "page": {"type": "integer", "minimum": 1, "maximum": 10**9, "default": 1},
    "pageSize": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25},
}

DRY_RUN: Final[JSONObject] = confirmation.ARGUMENTS["dryRun"]
DRY: Final[dict[str, JSONMapping]] = {"dryRun": {"type": "boolean"}, "confirmation": {"type": "object"}}
"""The members of a dry run's answer, all optional."""
EXPECTED_VERSION: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "fail if another version is stored",
}
CHANGES: Final[dict[str, Any]] = {
    "validated_later": ("changes", "positions", "expectedTotals"),
    "destructive": True,
    "idempotent": True,
}
"""How tools with a change are declared."""


def page_of(arguments: Arguments) -> JSONObject:
    return {"page": arguments.get("page", 1), "page_size": arguments.get("pageSize", 25)}


def owner_tool(
    handler: Callable[[Arguments, Caller], Answer],
    title: str,
    description: str,
    scope: str,
    answer: Mapping[str, JsonSchema],
    *,
    call: Bridge,
    arguments: Mapping[str, JsonSchema] = MappingProxyType({}),
    in_time: Callable[[Arguments, Caller], Awaitable[Answer]] | None = None,
    **rest: Any,
) -> Tool:
    """
    Return the tool with the name of *handler*, which *call* runs in a thread; a read scope changes nothing.

    Args:
        in_time: answers instead of *handler*, and may wait.
    """
    reads = scope.endswith(":read")
    return Tool(
        name=handler.__name__,
        title=title,
        description=description,
        scope=scope,
        answer=answer,
        handler=in_time or (lambda arguments, caller: call(handler, arguments, caller)),
        waits=in_time is not None,
        read_only=reads,
        arguments=arguments,
        keys={name: kind for name, kind in _KINDS.items() if name in arguments},
        **{"idempotent": reads, **rest},
    )
