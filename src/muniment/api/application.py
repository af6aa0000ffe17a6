"""
The ASGI application of the REST API: routing, request validation, caching.

The fast path reads its cache.
"""

import asyncio
import logging
from typing import Final, NamedTuple
from urllib.parse import quote

from muniment.api import contract
from muniment.api.changes import LiveChanges, Place, is_at_the_end, place_of
from muniment.api.csv_files import CSV, CsvFiles
from muniment.api.export_files import find_export, send_export, until_made
from muniment.api.parameters import V1, decode, read
from muniment.api.public_log import TILES, LogSource, PublicLog
from muniment.api.responses import (
    ALLOW,
    QUICK_BYTES,
    VARY_BY_FORMAT,
    Answer,
    Response,
    error_response,
    preflight,
    send_response,
)
from muniment.api.routes import (
    Context,
    Handler,
    Result,
    Route,
    Values,
    csv_form,
    list_changes,
    list_exports,
    routes_of,
    wanted_changes,
)
from muniment.api.statements import (
    answer_csv,
    answer_json,
    asked_as_csv,
    asked_as_json,
    asked_while_there,
    parameters_of,
)
from muniment.config import Config
from muniment.kernel.asgi import Receive, Scope, Send
from muniment.kernel.csv_text import CsvText
from muniment.kernel.http.representations import KEPT, prefers_csv
from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.problems import MethodNotAllowed, NotFound, Problem, Unavailable
from muniment.schema.objects import Schema
from muniment.store.cache import size_of
from muniment.store.database.faults import log_failure, unexpected
from muniment.store.exports.exports import Exports
from muniment.store.exports.files import FoundFile
from muniment.store.exports.shared import SharedExports
from muniment.store.published_document import KINDS
from muniment.store.reader import Reader
from muniment.store.search.everything import COLLECTIONS
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables

log = logging.getLogger(__name__)
STATEMENTS: Final = "query"
"""The route whose answers a process of its own gives."""
MAX_WAITING: Final = 64
"""Concurrent slow queries; beyond this limit clients must retry."""
MAX_CACHED_TARGET: Final = 1024
REREAD_S: Final = 1.0
SEGMENT: Final = 4
"""The index of the path segment that identifies a resource: ``/api/v1/companies/{slug}``."""


class DetailRoute(NamedTuple):
    """
    A route that answers one document.

    Its header lines are *before*, the percent-encoded key and *after*; without *after*, they are *before* alone.
    """

    prefix: bytes
    kind: str
    before: bytes
    after: bytes


class Api:
    """
    Serves ``/api/v1``, ``/openapi.json``, ``/llms.txt`` and ``/exports``.

    Args:
        config: the settings, for the public URL and the folder of exports.
        schema: the schema of the registry's objects.
        shared: the exports that all nodes of the instance list.
    """

    def __init__(self, reader: Reader, config: Config, schema: Schema, *, shared: SharedExports | None = None) -> None:
        self.exports = Exports(
            config.data / "exports",
            reader.path,
            schema,
            base_url=config.base_url,
            interval_s=config.exports_interval_s,
            edition=lambda: reader.edition,
            oldest=reader.erased,
            chain_after=reader.chain_after,
            shared=shared,
        )
        tables_file = reader.path.with_name(FILE_NAME)
        self.tables = Tables(tables_file, reader, schema)
        self.reader = reader
        self.live = LiveChanges(reader)
        self.cache = reader.answers
        self.csv_files = CsvFiles(reader.path.parent)
        self._config = config
        self.hits = self.misses = 0
        """Cache hits and misses: plain numbers, because every read counts one."""
        self._log = self._log_of(None)
        self._waiting: dict[object, asyncio.Future[Result]] = {}
        self.use(schema)

    def use(self, schema: Schema) -> None:
        """Answer with the fields of *schema* from now on."""
        self.schema = schema
        self.exports.use(schema)
        self.tables.use(schema)
        self.reader.statements.use(self.tables.form)
        self.cache.clear()  # of answers with the fields of before
        self.context = Context(self.reader, self.exports, self.tables, self._config.base_url, schema, self._log)
        routes = routes_of(schema)
        self._fixed = {route.path: route for route in routes if not route.missing}
        self._nested = {(route.segment[0], route.segment[2]): route for route in routes if route.missing}
        self._tiles = self._nested.get((TILES, ""))
        self._lines = {route.operation_id: route.header_lines() for route in routes}
        self._pages = contract.build(self._config, schema)

    def open_log(self, source: LogSource) -> None:
        """Answer the routes of the public log from now on."""
        self._log = self._log_of(source)
        self.context = self.context._replace(log=self._log)

    def _log_of(self, source: LogSource | None) -> PublicLog:
        config = self._config
        keys = [witness.key for witness in config.witnesses]
        return PublicLog(config.base_url, source=source, origin=config.mirrored, witnesses=keys)

    def start(self) -> None:
        """Start creating exports, and following with the tables, in the background."""
        self.exports.start()
        self.tables.start()

    def close(self) -> None:
        """Stop the background work."""
        self.exports.close()
        self.tables.close()

    def owns(self, path: str) -> bool:
        """Return whether this application serves *path*."""
        return path.startswith(("/api/", "/exports/")) or path.rstrip("/") in {"/api", *self._pages}

    def names(self, collection: str, key: str) -> bool:
        """Return whether *key* identifies a member of ``companies``, ``people`` or ``frameworks``."""
        for kind, name in COLLECTIONS.items():
            if name == collection:
                return self.reader.document(kind, key) is not None
        return False

    def details(self) -> list["DetailRoute"]:
        """Return the routes that answer one document."""
        routes = []
        for kind in KINDS:
            lines = self._lines.get(f"get{kind.title()}", b"")
            before, after = self._log.proof_links.get(kind, (b"", b""))
            routes.append(DetailRoute(f"{V1}/{COLLECTIONS[kind]}/".encode(), kind, lines + before, after))
        return routes

    def encode(self, key: object, answer: Answer, encoding: bytes, *, at_once: bool) -> Response | None:
        """Return *answer* in *encoding*; with *at_once*, None if compressing would take long."""
        made = answer.forms.get(encoding)
        if made is None:
            if at_once and encoding and len(answer.body) > QUICK_BYTES:
                return None
            made = answer.make(encoding)
            if encoding:
                self.cache.grow(key, answer, len(made.body))
        return made

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        try:
            response = await self._respond(scope, receive, send)
        except Problem as problem:
            response = error_response(problem, self._lines_of(scope))
        except Exception as error:  # noqa: BLE001 - it is logged
            request_id = str(scope.get("state", {}).get("request_id", "none"))
            log_failure(log, error, "request %s failed", request_id)
            response = error_response(unexpected(error, request_id), self._lines_of(scope))
        if response is not None:
            await send_response(send, response, head_only=scope["method"] == "HEAD")

    async def _respond(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        method: str = scope["method"]
        raw_path = _raw_path(scope)
        path = _decoded(raw_path)
        shown = path
        if len(path) > 1:
            shown = path.removesuffix("/")
        file = await self._file(shown)
        page = self._pages.get(shown)
        route, segment = None, ""
        if page is None:
            route, segment = self._route(raw_path)
        if file is None and page is None and route is None:
            raise self._nothing(path, raw_path)
        if method == "OPTIONS":
            return preflight()
        if method not in {"GET", "HEAD"}:
            raise MethodNotAllowed(method, ALLOW)
        if file is not None:
            await send_export(file, scope, receive, send)
            return None
        if page is not None:
            keyed: _Keyed | None = (shown, page.answer(self.context), True)
        elif route is not None:
            keyed = await self._answer_route(route, segment, scope, receive, send)
        if keyed is None:
            return None
        return await self._finished(keyed, scope)

    async def _finished(self, keyed: "_Keyed", scope: Scope) -> Response | None:
        """Return the response with an answer, or a 304 if the client has it."""
        key, answer, is_kept = keyed
        headers = dict(scope["headers"])
        encoding = answer.encoding(headers.get(b"accept-encoding", b""))
        # If-Modified-Since counts only without If-None-Match (RFC 9110, section 13.1.3).
        if_none_match = headers.get(b"if-none-match", b"")
        if if_none_match:
            is_known = answer.matches(if_none_match)
        else:
            is_known = answer.is_unmodified(headers.get(b"if-modified-since", b""))
        if is_known:
            if is_kept:
                scope.setdefault("state", {})[KEPT] = True
            return answer.unchanged(encoding)
        return await self._encoded(key, answer, encoding)

    def _nothing(self, path: str, raw_path: bytes) -> NotFound:
        """Return the error for a path that leads nowhere, named so that it is not taken for one that does."""
        lower = raw_path.lower()
        if b"%2f" in lower:
            path = raw_path.decode("latin-1")  # decoded, it might be another path
        hint = "GET /openapi.json describes all endpoints; /docs shows them."
        if lower != raw_path and self._route(lower)[0] is not None:
            hint = f"Paths are in lower case: GET {lower.decode('latin-1')[:200]}."
        return NotFound(f"There is nothing at {path[:200]}.", hint)

    async def _encoded(self, key: object, answer: Answer, encoding: bytes) -> Response | None:
        """Return an answer in *encoding*, compressed in the thread pool if that takes long."""
        made = self.encode(key, answer, encoding, at_once=True)
        if made is None:
            loop = asyncio.get_running_loop()
            made = await loop.run_in_executor(
                self.reader.pool, lambda: self.encode(key, answer, encoding, at_once=False)
            )
        return made

    def _route(self, raw_path: bytes) -> tuple[Route | None, str]:
        parts = [decode(part) or "" for part in raw_path.removesuffix(b"/").split(b"/")]
        if any("/" in part for part in parts):
            return None, ""
        path = "/".join(parts)
        if path.startswith(TILES):
            return self._tiles, path.removeprefix(TILES)
        route = self._fixed.get(path)
        if route is not None or len(parts) <= SEGMENT:
            return route, ""
        prefix, suffix = "/".join((*parts[:SEGMENT], "")), "/".join(("", *parts[SEGMENT + 1 :]))
        return self._nested.get((prefix, suffix)), parts[SEGMENT]

    def _lines_of(self, scope: Scope) -> bytes:
        """Return the header lines that a route adds to errors too; none without a route."""
        route, _ = self._route(_raw_path(scope))
        return self._lines[route.operation_id] if route else b""

    async def _answer(self, route: Route, handler: Handler, segment: str, raw_path: bytes, query: bytes) -> "_Keyed":
        path = _path_of(route, segment)
        values, is_plain = read(route.by_name, query, path)
        target = raw_path
        if query:
            target += b"?" + query
        canonical_key = (route.operation_id, segment, *values.values())
        # `ready` finds the raw target without parsing; unknown parameters must not fill the cache with copies of one
        # answer.
        key: object = canonical_key
        if is_plain and len(target) <= MAX_CACHED_TARGET:
            key = target
        cached: Answer | None = self.cache.ready.get(key)
        if cached is not None:
            self.hits += 1
            is_kept = True
        else:
            self.misses += 1
            is_kept = False
            made = await self._read(route, handler, segment or path, values, canonical_key)
            cached = made.answer
            if route.rows is not None:
                cached.vary = VARY_BY_FORMAT
            if made.depends:
                size_bytes = len(cached.body) + size_of(key)
                self.cache.put(key, cached, size_bytes=size_bytes, version=made.version, depends=made.depends)
        return key, cached, is_kept

    async def _answer_route(
        self, route: Route, segment: str, scope: Scope, receive: Receive, send: Send
    ) -> "_Keyed | None":
        """Return the answer of a route; None if it has been sent, or the client has gone."""
        query: bytes = scope.get("query_string", b"")
        if route.answer is None:
            if route.operation_id == STATEMENTS:
                return await self._answer_statement(route, scope, receive, send)
            await self._stream_changes(route, scope, send)
            return None
        if route.answer is list_changes:
            return await self._list_changes(route, route.answer, scope, receive)
        if _wants_csv(route, dict(scope["headers"]), query):
            await self._answer_rows(route, segment, scope, receive, send)
            return None
        return await self._answer(route, route.answer, segment, _raw_path(scope), query)

    async def _answer_rows(self, route: Route, segment: str, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the whole result of a list as CSV."""
        assert route.rows is not None  # noqa: S101 - the caller has checked
        path = _path_of(route, segment)
        values, _ = read(route.by_name, scope.get("query_string", b""), path)
        client = str(scope.get("state", {}).get("client", ""))
        pool, lines = self.reader.pool, self._lines[route.operation_id]
        source = await asyncio.get_running_loop().run_in_executor(
            pool, route.rows, self.context, segment or path, values
        )
        if_none_match = dict(scope["headers"]).get(b"if-none-match", b"")
        known = Answer(b"", source.tag().encode(), "", lines, CSV, vary=VARY_BY_FORMAT)
        if known.matches(if_none_match):
            await send_response(send, known.unchanged(b""), head_only=False)
            return
        with self.csv_files.open(client) as file:
            text = CsvText(csv_form(values))
            written = await asked_while_there(self.csv_files.write(source, file, text, pool, client), receive)
            if written is not None:
                answer = Answer(b"", source.tag().encode(), "", lines, CSV, vary=VARY_BY_FORMAT)
                await self.csv_files.send(scope, send, answer, file, source.name, written)

    async def _answer_statement(self, route: Route, scope: Scope, receive: Receive, send: Send) -> "_Keyed | None":
        """Return the answer to a statement, as :meth:`_answer`; None if it has been sent, or the client has gone."""
        raw_path, query = _raw_path(scope), scope.get("query_string", b"")
        values, _ = read(route.by_name, query, route.path)
        parameters = parameters_of(query, route.by_name)
        if values["format"] == "csv":
            asked = asked_as_csv(values["sql"], parameters, csv_form(values))
            await answer_csv(self.reader.statements, self.csv_files, asked, scope, receive, send)
            return None
        key = raw_path + b"?" + query
        cached: Answer | None = self.cache.ready.get(key)
        if cached is not None:
            self.hits += 1
            return key, cached, True
        self.misses += 1
        client, lines = str(scope.get("state", {}).get("client", "")), self._lines[route.operation_id]
        asked = asked_as_json(values["sql"], parameters)
        made = await asked_while_there(answer_json(self.reader, asked, client, lines), receive)
        if made is None:
            return None
        answer, version = made
        size_bytes = len(answer.body) + size_of(key)
        self.cache.put(key, answer, size_bytes=size_bytes, version=version, depends=(("*", "*"),))
        return key, answer, False

    async def _stream_changes(self, route: Route, scope: Scope, send: Send) -> None:
        values, _ = read(route.by_name, scope.get("query_string", b""), route.path)
        last_id = dict(scope["headers"]).get(b"last-event-id")
        if last_id:
            begin: Place | None = place_of(last_id.decode("latin-1"))
        elif values["after"] is not None:
            begin = Place(values["after"], values["chain"])
        else:
            begin = None
        await self.live.stream(wanted_changes(values), begin, scope, send)

    async def _list_changes(self, route: Route, handler: Handler, scope: Scope, receive: Receive) -> "_Keyed":
        """Return the changes as :meth:`_answer`, after waiting for one if the client wants that."""
        raw_path, query = _raw_path(scope), scope.get("query_string", b"")
        values, _ = read(route.by_name, query, route.path)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + (values["waitSeconds"] or 0)
        pause_s = 0.0
        while True:
            move = self.live.next_move  # before reading, so that none is missed
            found = await self._answer(route, handler, "", raw_path, query)
            left_s = deadline - loop.time()
            if left_s <= 0 or not is_at_the_end(found[1].body):
                return found
            if not await self.live.until(move, wanted_changes(values), scope, receive, left_s):
                return found
            # A client that wants few of many changes reads the feed again at most once a second.
            await asyncio.sleep(pause_s)
            pause_s = REREAD_S

    async def _read(self, route: Route, handler: Handler, segment: str, values: Values, canonical: object) -> Result:
        """Run the route: on the loop if it is quick, otherwise in the pool; equal concurrent queries run once."""
        lines = self._lines[route.operation_id]
        if handler is list_exports:
            await until_made(self.exports)
        if route.quick(self.context, values):
            return handler(self.context, segment, values, lines)
        waiting = self._waiting.get(canonical)
        if waiting is None:
            if len(self._waiting) >= MAX_WAITING:
                raise Unavailable("Too many searches are running.", "Try again in a few seconds.")
            loop = asyncio.get_running_loop()
            waiting = loop.run_in_executor(self.reader.pool, handler, self.context, segment, values, lines)
            self._waiting[canonical] = waiting
            waiting.add_done_callback(lambda _: self._waiting.pop(canonical, None))
        return await asyncio.shield(waiting)

    async def _file(self, path: str) -> FoundFile | None:
        """Return the export at *path*; None for any other path."""
        if not path.startswith("/exports/") or path.count("/") != 2:
            return None
        return await find_export(self.exports, path.removeprefix("/exports/"), self.reader.pool)


def _wants_csv(route: Route, headers: dict[bytes, bytes], query: bytes) -> bool:
    """Return whether a list is asked for as CSV: by the parameter, or else by the header."""
    if route.rows is None:
        return False
    if b"format" not in query:
        return prefers_csv(headers.get(b"accept", b""))
    values, _ = read(route.by_name, query, route.path)
    return bool(values["format"] == "csv")


def _path_of(route: Route, segment: str) -> str:
    """
    Return the path of a request.

    Raises:
        NotFound: its segment is no identifier.
    """
    prefix, name, suffix = route.segment
    if name and not 0 < len(segment) <= MAX_SLUG_CHARACTERS:
        raise NotFound(
            f"The {route.missing} identifier is not valid.",
            f"It has 1 to {MAX_SLUG_CHARACTERS} characters; GET {prefix[:-1]} lists them.",
        )
    return f"{prefix}{quote(segment)}{suffix}" if segment else route.path


_Keyed = tuple[object, Answer, bool]
"""The key of an answer, the answer, and whether it was cached."""


def _raw_path(scope: Scope) -> bytes:
    raw_path: bytes = scope.get("raw_path") or quote(scope["path"]).encode()
    return raw_path


def _decoded(raw_path: bytes) -> str:
    path = decode(raw_path)
    if path is None:
        raise NotFound("The path is not valid percent-encoded UTF-8.", f"For example: {V1}/companies")
    return path
