"""
Ask the statement of a page before the page is made.

A page is made in one of a few threads, where it could neither wait for a turn nor notice that its visitor has gone.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from muniment.api.parameters import query_items
from muniment.api.statements import asked_while_there, parameters_of
from muniment.kernel.asgi import Application, Message, Receive, Scope, Send
from muniment.kernel.problems import Problem
from muniment.registry_toml.queries import saved_query
from muniment.store.cache import size_of
from muniment.store.tables.answering import Asked
from muniment.store.tables.outcome import OF_PAGE, QUERY, SAVED, STATE, Outcome, Value
from muniment.store.tables.statements import MAX_BYTES, MAX_ROWS, parameters_in

if TYPE_CHECKING:
    from muniment.store.reader import Reader

_ENDINGS: Final = (".atom", "/embed")


class StatementPages:
    """Serves the pages, with the outcome of their statement in the state of the request."""

    def __init__(self, pages: Application, reader: "Callable[[], Reader | None]") -> None:
        self._pages = pages
        self._reader = reader

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path, reader = scope["path"].rstrip("/"), self._reader()
        is_asked = scope["method"] in {"GET", "HEAD"} and (path == QUERY or path.startswith(SAVED))
        sql = _sql_of(path, scope.get("query_string", b"")) if is_asked else ""
        if not sql.strip() or reader is None:
            await self._pages(scope, receive, send)
            return
        client = str(scope["state"]["client"])
        outcome = await asked_while_there(_outcome(reader, sql, scope.get("query_string", b""), client), receive)
        if outcome is None:
            return
        scope["state"][STATE] = outcome
        await self._pages(scope, _without_body, send)


async def _without_body() -> Message:
    """Return the body of a request to read, whose messages were read while its statement was asked."""
    return {"type": "http.request", "body": b"", "more_body": False}


def _sql_of(path: str, query: bytes) -> str:
    if path == QUERY:
        for name, value, _ in query_items(query):
            if name == "sql":
                return value or ""
        return ""
    slug = path.removeprefix(SAVED)
    for ending in _ENDINGS:
        slug = slug.removesuffix(ending)
    query_of_slug = saved_query(slug)
    return query_of_slug.sql if query_of_slug is not None else ""


async def _outcome(reader: "Reader", sql: str, query: bytes, client: str) -> Outcome:
    """Return what becomes of a statement; without an answer while parameters of it are missing."""
    parameters: dict[str, Value] = {}
    try:
        parameters = parameters_of(query, OF_PAGE)
        if any(name not in parameters for name in parameters_in(sql)):
            return Outcome(sql, parameters)
        key = ("page", "query", sql, msgspec.json.encode(parameters))
        kept: Outcome | None = reader.answers.ready.get(key)
        if kept is not None:
            return msgspec.structs.replace(kept, is_kept=True)
        reply = await reader.statements.answer(Asked(sql, parameters, MAX_ROWS, MAX_BYTES), client)
    except Problem as problem:
        return Outcome(sql, parameters, problem=problem)
    outcome = Outcome(sql, parameters, reply.answered)
    size_bytes = len(msgspec.json.encode(reply.answered.rows)) + size_of(key)
    reader.answers.put(key, outcome, size_bytes=size_bytes, version=reply.version, depends=(("*", "*"),))
    return outcome
