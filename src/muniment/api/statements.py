"""
Answer statements about the tables: as JSON, kept until the next edition, or as CSV, sent at the client's pace.

A statement is asked on the event loop, and waits for its process there: if the client goes away, it is ended.
"""

import asyncio
from collections.abc import Awaitable, Container
from typing import TYPE_CHECKING, TypeVar

import msgspec

from muniment.api.csv_files import CSV, CsvFiles, Written
from muniment.api.parameters import query_items, truncated
from muniment.api.responses import Answer, send_response
from muniment.kernel.asgi import Receive, Scope, Send, gone
from muniment.kernel.csv_text import CsvForm
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.store.tables.answering import MAX_CELL_CHARACTERS, Answered, Asked
from muniment.store.tables.statements import MAX_BYTES, MAX_CSV_BYTES, MAX_CSV_ROWS, MAX_ROWS, Statements, value_of

if TYPE_CHECKING:
    from muniment.store.reader import Reader

Parameters = dict[str, str | int | float | bool | None]
_T = TypeVar("_T")


def parameters_of(query: bytes, declared: Container[str]) -> Parameters:
    """
    Return the values of a statement's parameters, which are all parameters of the URL but the *declared* ones.

    Raises:
        BadRequest: one is not valid UTF-8, or is given twice.
    """
    found: Parameters = {}
    for name, value, raw in query_items(query):
        if name in declared:
            continue
        if value is None:
            raise BadRequest(f"{truncated(name)} is {truncated(raw)}, which is not valid UTF-8.", "Percent-encode it.")
        if name in found:
            raise BadRequest(f"{truncated(name)} is given more than once.", "Give each parameter one value.")
        found[name] = value_of(value)
    return found


async def asked_while_there(work: Awaitable[_T], receive: Receive) -> _T | None:
    """Return the result of *work*; end it, and return None, if the client goes away."""
    task, left = asyncio.ensure_future(work), asyncio.ensure_future(gone(receive))
    try:
        await asyncio.wait({task, left}, return_when=asyncio.FIRST_COMPLETED)
        return task.result() if task.done() else None
    finally:
        task.cancel()
        left.cancel()
        await asyncio.gather(task, left, return_exceptions=True)


def asked_as_json(sql: str, parameters: Parameters) -> Asked:
    return Asked(sql, parameters, MAX_ROWS, MAX_BYTES, is_named=True)


def asked_as_csv(sql: str, parameters: Parameters, form: CsvForm) -> Asked:
    return Asked(sql, parameters, MAX_CSV_ROWS, MAX_CSV_BYTES, is_csv=True, form=form)


async def answer_json(reader: "Reader", asked: Asked, client: str, lines: bytes) -> tuple[Answer, int | None]:
    """Return the answer to a statement as objects, and the version to keep it for; None if it must not be kept."""
    answered, tag, version = await reader.statements.answer(asked, client)
    body = msgspec.json.encode(
        {
            "data": answered.objects,
            "columns": answered.columns,
            "truncated": truncation(answered),
            "edition": answered.edition,
        }
    )
    modified_at = reader.modified_at if version is not None else ""
    return Answer(body, tag.encode(), modified_at, lines), version


def truncation(answered: Answered) -> JSONObject | None:
    """Return what cut an answer, and how to get the rest; None if it is whole."""
    if not answered.cut_by:
        return None
    hints = {
        "rows": f"There are more than {answered.count:,} rows: ORDER BY a key and continue after the last one, or get "
        f"up to {MAX_CSV_ROWS:,} with format=csv.",
        "bytes": f"The rows have more than {MAX_BYTES >> 20} MB: select fewer columns, leave out long texts, or use "
        "format=csv.",
        "cells": f"Texts are cut at {MAX_CELL_CHARACTERS:,} characters: substr(column, {MAX_CELL_CHARACTERS + 1:,}) "
        "has the rest, and format=csv the whole.",
    }
    hint = " ".join(hints[each] for each in answered.cut_by)
    return {"by": answered.cut_by, "rows": answered.count, "hint": hint.replace("10,001", "10001")}


async def answer_csv(  # noqa: PLR0917 - a statement and the parts of a request
    statements: Statements, files: CsvFiles, asked: Asked, scope: Scope, receive: Receive, send: Send
) -> None:
    """Send the answer to a statement as CSV."""
    client = str(scope.get("state", {}).get("client", ""))
    with files.open(client) as file:
        reply = await asked_while_there(statements.answer(asked, client, file), receive)
        if reply is None:
            return
        answer = Answer(b"", reply.tag.encode(), content_type=CSV)
        if answer.matches(dict(scope["headers"]).get(b"if-none-match", b"")):
            await send_response(send, answer.unchanged(b""), head_only=False)
            return
        written = Written(reply.answered.count, reply.answered.cut_by)
        await files.send(scope, send, answer, file, "query.csv", written)
