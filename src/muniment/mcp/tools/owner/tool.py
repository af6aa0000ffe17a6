"""Declare an owner tool, with the arguments that several of them take."""

from collections.abc import Awaitable, Callable, Mapping
from types import MappingProxyType
from typing import Any, Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.declarations import Answer, Arguments, Caller, JsonSchema, Tool
from muniment.mcp.tools.addresses import MAX_CHARACTERS
from muniment.oauth.token_authentication import Bridge
from muniment.registry.names.asked import company_slug, framework_slug

SLUG: Final = {"type": "string", "maxLength": MAX_CHARACTERS, "description": "slug, address or exact name"}
ID: Final = {"type": "string", "maxLength": 100}
RUN_ID: Final = {**ID, "description": "of list_my_runs"}
_KINDS: Final = {"slug": "company", "companySlug": "company", "frameworkId": "framework"}
PAGE: Final[dict[str, JSONMapping]] = {
    "page": {"type": "integer", "minimum": 1, "maximum": 10**9, "default": 1},
    "pageSize": {"type": "integer", "minimum": 1, "maximum": 100, "default": 25, "description": "default 25"},
}

EXPECTED_VERSION: Final = {
    "type": "integer",
    "minimum": 1,
    "maximum": 2**31 - 1,
    "description": "fail if it is another",
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
    keys = {name: kind for name, kind in _KINDS.items() if name in arguments}
    named = _by_name(handler, keys) if keys else handler
    return Tool(
        name=handler.__name__,
        title=title,
        description=description,
        scope=scope,
        answer=answer,
        handler=in_time or (lambda arguments, caller: call(named, arguments, caller)),
        waits=in_time is not None,
        read_only=reads,
        arguments=arguments,
        keys=keys,
        **{"idempotent": reads, **rest},
    )


def _by_name(
    handler: Callable[[Arguments, Caller], Answer], keys: Mapping[str, str]
) -> Callable[[Arguments, Caller], Answer]:
    """Return *handler* for calls that may give an exact name in place of a slug."""

    def handle(arguments: Arguments, caller: Caller) -> Answer:
        for name, kind in keys.items():
            if (text := arguments.get(name)) is not None:
                slug = company_slug(caller.owner, text) if kind == "company" else framework_slug(text)
                if slug != text:
                    arguments = {**arguments, name: slug}
        return handler(arguments, caller)

    return handle
