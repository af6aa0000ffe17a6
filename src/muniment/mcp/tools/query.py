"""
The tool `query`: one statement in SQL about the public tables.

Its description carries the tables, so that a model writes a statement without another call.
"""

from collections.abc import Callable
from typing import Any, Final

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.mcp.declarations import Arguments, Caller, Marked, Tool
from muniment.mcp.tools.answers import BUDGET_BYTES
from muniment.mcp.tools.output_schemas import INTEGER, STRING, list_of, object_of
from muniment.schema.company_parts import PROPOSAL_STATUSES, SOCIALS
from muniment.schema.objects import Schema
from muniment.store.cache import size_of
from muniment.store.reader import Reader
from muniment.store.tables.answering import MAX_CELL_CHARACTERS, MAX_SQL_BYTES, Answered, Asked
from muniment.store.tables.form import Form
from muniment.store.tables.statements import MAX_ROWS

DEFAULT_ROWS: Final = 100
ROWS_BYTES: Final = BUDGET_BYTES - 6_000
"""What the rows of an answer may take; names of columns and the hint have the rest."""
MAX_TABLES_CHARACTERS: Final = 1_250
"""What the tables may take of the description: with all other tools a model sees at most 9.5 KB."""
_BRIEF: Final = frozenset(
    {
        *("reviewed_at", "maintained_by_owner", "first_change", "dao_website", "document_id", "company_name"),
        *("verified_domain_method", "verified_domain_verified_at", "distribution_details", "distribution_schedule"),
        *("distribution_vesting_period", "address_2", "previous_score", "previous_assessed_at", "evaluator"),
        *("specification_version", "framework_name", "ordinal", "public", "url", "listed_month"),
    }
)
"""Columns that the description leaves out: the longest list of every column is behind PRAGMA table_info."""


_NO_ROWS: Final = (
    "No row fits. Texts are compared exactly: SELECT DISTINCT shows the values of a column, LIKE ignores case."
)


def tables_in_brief(schema: Schema) -> str:
    """Return the tables with the names of their columns, cut where declared fields would make them too long."""
    found = []
    for table in Form(schema).tables:
        names = [each.name for each in table.columns if each.name not in _BRIEF and not each.name.endswith("_minor")]
        found.append(f"{table.name}({' '.join(names)})")
    text = " ".join(found)
    if len(text) <= MAX_TABLES_CHARACTERS:
        return text
    return f"{text[:MAX_TABLES_CHARACTERS].rpartition(' ')[0]} …"


def query_tool(schema: Schema, reader: Callable[[], Reader]) -> Tool:
    async def query(arguments: Arguments, caller: Caller) -> Marked:
        parameters = {name: _value(value) for name, value in (arguments.get("params") or {}).items()}
        asked = Asked(arguments["sql"], parameters, arguments.get("limit", DEFAULT_ROWS), ROWS_BYTES)
        # As every other call, a statement is charged to the account, whose agent may share its address with others.
        holder = f"account {caller.actor.account_id}" if caller.actor.account_id is not None else caller.client
        return await answer(reader(), asked, holder)

    cut = object_of({"by": list_of(STRING), "hint": STRING})
    row = {"type": "array"}
    return Tool(
        name="query",
        title="Query in SQL",
        description="One SELECT in SQLite's SQL, for joins, sums, counts and all that no filter offers. "
        f"{tables_in_brief(schema)}. company, person and framework are slugs; dates are ISO text, true is 1, amounts "
        f"are in major units, countries two letters. proposals.status: {', '.join(PROPOSAL_STATUSES)}; "
        f"socials.network: {', '.join(each.name for each in SOCIALS.fields)}. PRAGMA table_info(companies) lists every "
        "column, SELECT DISTINCT type its values.",
        arguments={
            "sql": {"type": "string", "maxLength": MAX_SQL_BYTES},
            "params": {"type": "object", "description": "values of :names"},
            "limit": {
                "type": "integer",
                "minimum": 1,
                "maximum": MAX_ROWS,
                "default": DEFAULT_ROWS,
                "description": f"rows, default {DEFAULT_ROWS}",
            },
        },
        required=("sql",),
        promised=("columns", "rows"),
        answer={"columns": list_of(STRING), "rows": list_of(row), "edition": INTEGER, "hint": STRING, "truncated": cut},
        handler=query,
        waits=True,
        read_only=True,
        idempotent=True,
    )


def _value(value: Any) -> str | int | float | bool | None:
    """Return the value of a parameter; a list or an object as JSON, which json_each reads."""
    if isinstance(value, list | dict):
        return msgspec.json.encode(value).decode()
    found: str | int | float | bool | None = value
    return found


async def answer(reader: Reader, asked: Asked, client: str) -> Marked:
    """Return the answer to a statement, from the cache if it was asked since the last change."""
    key = ("mcp", "query", asked.sql, msgspec.json.encode(asked.parameters), asked.rows)
    kept: Marked | None = reader.answers.ready.get(key)
    if kept is not None:
        return kept
    reply = await reader.statements.answer(asked, client)
    # A text of a row may be any owner's, and no longer names its item.
    marks = {"rows": {"*": f"owner {reader.updated_at[:10]}"}}
    made = Marked(msgspec.json.encode(_shown(reply.answered)), msgspec.json.encode(marks))
    size_bytes = len(made.content) + size_of(key)
    reader.answers.put(key, made, size_bytes=size_bytes, version=reply.version, depends=(("*", "*"),))
    return made


def _shown(answered: Answered) -> JSONObject:
    shown: JSONObject = {"columns": answered.columns, "rows": answered.rows, "edition": answered.edition}
    if not answered.count:
        shown["hint"] = _NO_ROWS
    if answered.cut_by:
        shown["truncated"] = {"by": answered.cut_by, "hint": " ".join(_hints(answered))}
    return shown


def _hints(answered: Answered) -> list[str]:
    hints: JSONMapping = {
        "rows": f"There are more than {answered.count:,} rows: raise limit, up to {MAX_ROWS:,}, or add ORDER BY and "
        f"OFFSET {answered.count}.",
        "bytes": f"The rows have more than {ROWS_BYTES // 1_000} KB: select fewer columns, or continue with ORDER BY "
        f"and OFFSET {answered.count}.",
        "cells": f"Texts are cut at {MAX_CELL_CHARACTERS:,} characters: substr(column, {MAX_CELL_CHARACTERS + 1}) has "
        "the rest.",
    }
    return [hints[each] for each in answered.cut_by]
