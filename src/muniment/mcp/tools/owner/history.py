"""The entries of a history as owner tools show them, and the arguments with which one is undone."""

from collections.abc import Iterable
from typing import Final

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import timestamp
from muniment.mcp.declarations import JsonSchema
from muniment.mcp.tools.output_schemas import INTEGER, MOMENT, STRING, cuttable, list_of, object_of, strings
from muniment.registry.models import HistoryEntry

ROWS: Final = 500
ENTRY: Final = cuttable(
    object_of(
        {"id": INTEGER, "at": MOMENT, **strings("action", "via"), "fields": list_of(STRING), "note": STRING},
        optional=("note",),
    )
)


def shown(entries: Iterable[HistoryEntry]) -> list[JSONObject]:
    return [
        {
            "id": entry.pk,
            "at": timestamp(entry.at),
            "action": entry.action,
            "fields": entry.changed,
            "via": entry.credential or entry.via,
            **({"note": entry.note} if entry.note else {}),
        }
        for entry in entries
    ]


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
            "description": f"or undo the entry with this id of {where}",
        },
        "overwrite": {
            "type": "boolean",
            "default": False,
            "description": "even if later changes touched the same fields",
        },
    }
