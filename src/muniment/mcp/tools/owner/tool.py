"""
Declare an owner tool, with what several of them share: arguments, dry runs, entries of a history and their undoing.

A dry run does the call in a transaction that is rolled back, so its answer is that of the real call, with every check.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any, Final

from django.db import transaction

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest
from muniment.kernel.wire import timestamp
from muniment.mcp.arguments import MAX_ADDRESS_CHARACTERS
from muniment.mcp.declarations import Answer, Arguments, Caller, JsonSchema, Tool
from muniment.mcp.tools.output_schemas import INTEGER, MOMENT, STRING, cuttable, list_of, object_of, strings
from muniment.mcp.web_pages import PICTURES
from muniment.oauth.token_authentication import Bridge
from muniment.registry.company.access import company_slug, framework_slug
from muniment.registry.models import HistoryEntry

SLUG: Final = {"type": "string", "maxLength": MAX_ADDRESS_CHARACTERS}
ID: Final = {"type": "string", "maxLength": 100}
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
"""The declaration shared by tools that take a change."""


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
            text = arguments.get(name)
            if text is not None:
                slug = company_slug(caller.actor, text) if kind == "company" else framework_slug(text)
                if slug != text:
                    arguments = {**arguments, name: slug}
        return handler(arguments, caller)

    return handle


HISTORY_ROWS: Final = 500
ENTRY: Final = cuttable(
    object_of(
        {"id": INTEGER, "at": MOMENT, **strings("action", "via"), "fields": list_of(STRING), "note": STRING},
        optional=("note",),
    )
)


def shown_entries(entries: Iterable[HistoryEntry]) -> list[JSONObject]:
    rows = []
    for entry in entries:
        row: JSONObject = {
            "id": entry.pk,
            "at": timestamp(entry.at),
            "action": entry.action,
            "fields": entry.changed,
            "via": entry.credential or entry.via,
        }
        if entry.note:
            row["note"] = entry.note
        rows.append(row)
    return rows


UNDO: Final = object_of(
    {"tool": STRING, "arguments": object_of({"slug": STRING, "revert": INTEGER}, optional=("slug",))}
)


def undo(tool: str, entry_id: int, **arguments: str) -> JSONObject:
    """Return the call that undoes an entry."""
    return {"tool": tool, "arguments": {**arguments, "revert": entry_id}}


def revert_arguments(where: str) -> dict[str, JsonSchema]:
    """Return the arguments that undo an entry; *where* lists the entries."""
    return {
        "revert": {
            "type": "integer",
            "minimum": 1,
            "maximum": 10**15,
            "description": f"or undo this entry of {where}",
        },
        "overwrite": {
            "type": "boolean",
            "default": False,
            "description": "even if later changes touched the same fields",
        },
    }


DRY_RUN: Final[JSONObject] = {"type": "boolean", "default": False}
"""The argument."""
DRY: Final[dict[str, JSONMapping]] = {"dryRun": {"type": "boolean"}}
"""The member of a dry run's answer, which is optional."""


@contextmanager
def rehearsal(arguments: Arguments) -> Iterator[None]:
    """Undo what the block does if the call is dry."""
    if not arguments.get("dryRun", False):
        yield
        return
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def lead_from_pictures(refusal: BadRequest, arguments: Arguments, page: str) -> None:
    """Let the *refusal* of changes that have a picture name the *page* on which it is changed."""
    if not PICTURES.isdisjoint(arguments.get("changes") or {}):
        refusal.hint = f"The picture is changed in the web app: {page}. {refusal.hint}"
