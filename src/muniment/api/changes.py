"""
The change feed: what is read of it, requests that wait for the next change, server-sent events, and subscriptions.

Listeners keep no copies of events. Each remembers how far it has read, and a listener whose client reads slowly falls
behind in the feed instead of filling memory. What one listener is sent next is made once for all that have read as far
and want the same.

Source: HTML Living Standard, Server-sent events.
"""

import asyncio
import logging
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Coroutine, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.api.parameters import V1
from muniment.api.responses import CORS, Response, send_response, status_line
from muniment.kernel.asgi import LASTING, LISTENS, Receive, Scope, Send, gone
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Problem, TooMany, Unavailable
from muniment.store.published import (
    ALL_CHANGES,
    ChangeRow,
    Changes,
    FeedAheadError,
    FeedDivergedError,
    FeedGapError,
    WantedChanges,
)
from muniment.store.reader import Reader

log = logging.getLogger(__name__)
HEARTBEAT_S: Final = 20.0
"""Proxies close connections that are silent for a minute, and clients then read again."""
AT_ONCE: Final = 200
"""Changes that are made into one piece for a listener."""
WOKEN_AT_ONCE: Final = 100
"""Listeners that are sent something before other requests have their turn: about 4 ms."""
MAX_LISTENERS: Final = 6_000
"""Listeners of a process: three quarters of its connections."""
MAX_LISTENERS_PER_ADDRESS: Final = 64
MAX_HELD_BYTES_PER_ADDRESS: Final = 512 << 10
"""
What the listeners and the waiting requests of an address hold together, beyond what each may have: the names of the
documents that they follow, and large heads. Twenty streams with a hundred documents each hold as much.
"""
MAX_HELD_BYTES: Final = 32 << 20
"""The same of all addresses: the memory of a process that anyone can fill for as long as they stay connected."""
BYTES_PER_NAME: Final = 200
"""What Python takes for the objects of a name, beside its characters."""
FREE_HEAD_BYTES: Final = 4 << 10
"""The head of an ordinary request, of which each listener may hold one."""
CATCH_UP_PAUSE_S: Final = 0.05
"""After each piece of an old part of the feed: who catches up takes a tenth of a thread, however fast they read."""
MAX_PIECES: Final = 16
"""Pieces that are kept for further listeners."""
MAX_DOCUMENT_BYTES: Final = 256 << 10
"""Larger documents are left out of changes: they are one request away."""
MAX_DOCUMENTS_BYTES: Final = 1 << 20
"""The documents of one piece together."""
RETRY_MS: Final = 3_000
POSITION: Final = re.compile(r"([0-9]{1,15})(?:-([0-9a-f]{64}))?")
_HEAD: Final = (
    status_line(200)
    + b"content-type: text/event-stream; charset=utf-8\r\ncache-control: no-store\r\nx-accel-buffering: no\r\n"
    + CORS
)


class Wanted(NamedTuple):
    """What a client wants of the feed: which changes, and whether with their documents."""

    changes: WantedChanges = ALL_CHANGES
    has_documents: bool = False


class Place(NamedTuple):
    """How far a client has read: the number of the last change, and the chain after it, where it is known."""

    after: int
    chain: str | None

    def __str__(self) -> str:
        return f"{self.after}-{self.chain}" if self.chain else str(self.after)


def place_of(text: str) -> Place:
    """
    Read the id of an event, which a browser sends again as ``Last-Event-ID``.

    Raises:
        BadRequest: it is not an id of this stream.
    """
    found = POSITION.fullmatch(text)
    if found is None:
        raise BadRequest(
            "Last-Event-ID is not an id of this stream.", "Leave it out to begin with the next change, or use `after`."
        )
    return Place(int(found[1]), found[2])


class LiveChanges:
    """
    The listeners of a process, and the requests that wait.

    All methods are called in the event loop.
    """

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self.next_move = asyncio.Event()
        """Set when the reader shows another edition than now."""
        self._listeners: dict[str, set[_Listener]] = {}
        self._followers: Counter[str] = Counter()
        """Open subscriptions of each address."""
        self._held_bytes: Counter[str] = Counter()
        """What the listeners and the waiting requests of each address hold."""
        self._beating: asyncio.Task[None] | None = None
        self._pieces: dict[tuple[Wanted, Place], tuple[bytes, Place]] = {}
        """What follows each place, until the next edition."""
        self._rows: dict[Place, tuple[Sequence[ChangeRow], Place]] = {}
        """The same for subscriptions."""
        self._catching_up = asyncio.Lock()
        self._is_ending = False

    def __len__(self) -> int:
        return sum(map(len, self._listeners.values())) + self._followers.total()

    def moved(self) -> None:
        """Wake everyone who waits: the reader shows another edition."""
        self.next_move.set()
        self.next_move = asyncio.Event()
        self._pieces.clear()
        self._rows.clear()
        if self._listeners:
            self._wake()

    def end(self) -> None:
        """End all streams, whose clients then connect to another process or again, and answer those who wait."""
        self._is_ending = True
        self.next_move.set()
        for listener in self._all():
            listener.end()

    async def until(self, move: asyncio.Event, wanted: Wanted, scope: Scope, receive: Receive, seconds: float) -> bool:
        """
        Wait for a *move*; return False if the time is over, the client has gone or the process ends.

        Raises:
            TooMany: what waits for this address holds too much memory.
            Unavailable: what waits for all does.
        """
        client = _client(scope)
        held_bytes = self._check_held(client, scope, wanted.changes.keys)
        self._hold(client, held_bytes)
        scope.setdefault("state", {})[LISTENS] = True
        moving, leaving = asyncio.ensure_future(move.wait()), asyncio.ensure_future(gone(receive))
        try:
            await asyncio.wait((moving, leaving), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            return moving.done() and not leaving.done() and not self._is_ending
        finally:
            scope["state"][LISTENS] = False
            self._hold(client, -held_bytes)
            moving.cancel()
            leaving.cancel()
            await asyncio.gather(moving, leaving, return_exceptions=True)

    async def stream(self, wanted: Wanted, begin: Place | None, scope: Scope, send: Send) -> None:
        """
        Begin to send the changes after a place as they come; None begins with the next change.

        The server waits until the client leaves (`LASTING`).

        Raises:
            BadRequest: the feed does not have that place.
            TooMany: the address has too many streams.
            Unavailable: the process has too many.
        """
        reader = self._reader
        if begin is None:
            edition = reader.edition
            begin = Place(edition, reader.chain_after(edition))
        else:
            loop = asyncio.get_running_loop()  # a replica may have to ask its source first
            await loop.run_in_executor(reader.pool, read_changes, reader, begin, 1, wanted.changes)
        client, held_bytes = self._admit(scope, wanted.changes.keys)
        if scope["method"] == "HEAD":
            await send_response(send, Response(200, _HEAD, b""), head_only=True)
            return
        listener = _Listener(self, client, wanted, begin, send)
        listener.held_bytes = held_bytes
        self._hold(client, held_bytes)
        scope["state"][LISTENS] = True
        self._listeners.setdefault(client, set()).add(listener)
        if self._beating is None:
            self._beating = asyncio.create_task(self._beat())
        try:
            await listener.start()
        except BaseException:
            self.leave(listener)
            raise
        scope["state"][LASTING] = listener

    def leave(self, listener: "_Listener") -> None:
        """Send nothing more to a listener, and stop counting it."""
        listener.close()
        self._hold(listener.client, -listener.held_bytes)
        held = self._listeners[listener.client]
        held.discard(listener)
        if not held:
            del self._listeners[listener.client]

    def _admit(self, scope: Scope, names: Collection[str]) -> tuple[str, int]:
        """Return the address of a client that may have one more stream, and the bytes that the stream holds."""
        client = _client(scope)
        if len(self._listeners.get(client, ())) + self._followers[client] >= MAX_LISTENERS_PER_ADDRESS:
            raise TooMany(
                f"This address has {MAX_LISTENERS_PER_ADDRESS} streams open.",
                "Close one, or share one stream among your clients.",
                retry_after_s=10,
            )
        if self._is_ending or len(self) >= MAX_LISTENERS:
            raise Unavailable("There is no room for another stream.", "Try again later, or ask GET /api/v1/changes.")
        return client, self._check_held(client, scope, names)

    def _check_held(self, client: str, scope: Scope, names: Collection[str]) -> int:
        """Return the bytes that a listener holds; raise TooMany or Unavailable if that is too much."""
        head_bytes = len(scope.get("query_string", b"")) + sum(
            len(name) + len(value) for name, value in scope["headers"]
        )
        held_bytes = max(0, head_bytes - FREE_HEAD_BYTES) + sum(BYTES_PER_NAME + len(name) for name in names)
        if held_bytes and self._held_bytes[client] + held_bytes > MAX_HELD_BYTES_PER_ADDRESS:
            raise TooMany(
                f"With this request, the streams and waiting requests of this address would hold more than "
                f"{MAX_HELD_BYTES_PER_ADDRESS >> 10} KB of document names and headers.",
                "Name fewer documents, share one stream among your clients, or listen to all changes.",
                retry_after_s=10,
            )
        if held_bytes and self._held_bytes.total() + held_bytes > MAX_HELD_BYTES:
            raise Unavailable(
                "There is no room for another stream that names documents.",
                "Try again later, or listen to all changes.",
            )
        return held_bytes

    def _hold(self, client: str, count: int) -> None:
        """Count bytes for an address, or stop counting them."""
        self._held_bytes[client] += count
        if not self._held_bytes[client]:
            del self._held_bytes[client]

    async def follow(
        self, names: Collection[str], scope: Scope, receive: Receive
    ) -> AsyncGenerator[Sequence[ChangeRow], None]:
        """
        Yield the changes that are published from now on; end when the client leaves or the process does.

        Yields no changes at once, when the stream is admitted, and every `HEARTBEAT_S`. If the feed no longer has the
        changes that follow, or has another past, the stream ends.

        Args:
            names: what the client holds in memory as long as it listens: the documents that it named.

        Raises:
            TooMany: the address has too many streams, or they hold too much.
            Unavailable: the process has too many, or they do.
        """
        client, held_bytes = self._admit(scope, names)
        self._hold(client, held_bytes)
        edition = self._reader.edition
        place = Place(edition, self._reader.chain_after(edition))
        self._followers[client] += 1
        scope.setdefault("state", {})[LISTENS] = True
        leaving = asyncio.ensure_future(gone(receive))
        try:
            yield ()
            while not (self._is_ending or leaving.done()):
                move = self.next_move
                rows, place = await self._rows_after(place)
                if rows:
                    yield rows
                    continue
                moving = asyncio.ensure_future(move.wait())
                await asyncio.wait((moving, leaving), timeout=HEARTBEAT_S, return_when=asyncio.FIRST_COMPLETED)
                has_moved = moving.done()
                moving.cancel()
                if not (has_moved or leaving.done()):
                    yield ()
        except LookupError:  # of the feed: a client that subscribes again reads its documents again
            return
        finally:
            leaving.cancel()
            self._hold(client, -held_bytes)
            self._followers[client] -= 1
            if not self._followers[client]:
                del self._followers[client]

    async def _rows_after(self, place: Place) -> tuple[Sequence[ChangeRow], Place]:
        """Return the changes after *place*, at most `AT_ONCE`, and the place after them: the same to all there."""
        known = self._rows.get(place)
        if known is not None:
            return known
        move = self.next_move
        if self._reader.edition - place.after <= AT_ONCE:
            found = self._read_rows(place)
        else:
            async with self._catching_up:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._reader.pool, self._read_rows, place)
                await asyncio.sleep(CATCH_UP_PAUSE_S)
        if move is self.next_move:
            if len(self._rows) >= MAX_PIECES:
                self._rows.clear()
            self._rows[place] = found
        return found

    def _read_rows(self, place: Place) -> tuple[Sequence[ChangeRow], Place]:
        if not self._reader.has_past(place.after, place.chain):
            raise FeedDivergedError(place.after)
        changes = self._reader.changes(place.after, AT_ONCE, place.chain)
        return changes.rows, Place(changes.next_after, changes.chain)

    def _all(self) -> "list[_Listener]":
        everyone: list[_Listener] = []
        for listeners in self._listeners.values():
            everyone += listeners
        return everyone

    async def _beat(self) -> None:
        """Let each listener say its place now and then, so that no proxy takes its connection for a dead one."""
        while self._listeners:
            await asyncio.sleep(HEARTBEAT_S)
            await self._each(lambda listener: listener.wake(is_silent=False))
        self._beating = None

    def _wake(self) -> None:
        _run(self._each(lambda listener: listener.wake(is_silent=True)))

    async def _each(self, work: "Callable[[_Listener], None]") -> None:
        for number, listener in enumerate(self._all(), 1):
            work(listener)
            if not number % WOKEN_AT_ONCE:
                await asyncio.sleep(0)

    async def next(self, wanted: Wanted, place: Place) -> tuple[bytes, Place]:
        """Return the events after *place* and the place after them; the same place at the end of the feed."""
        move = self.next_move
        found = self._pieces.get((wanted, place))
        if found is None and self._reader.edition - place.after <= AT_ONCE:
            found = self._read(wanted, place)
        elif found is None:
            # One after another, and in a thread: the event loop has others to serve.
            async with self._catching_up:
                loop = asyncio.get_running_loop()
                found = await loop.run_in_executor(self._reader.pool, self._read, wanted, place)
                await asyncio.sleep(CATCH_UP_PAUSE_S)
        if move is self.next_move:  # otherwise more may follow by now
            if len(self._pieces) >= MAX_PIECES:
                self._pieces.clear()
            self._pieces[wanted, place] = found
        return found

    def _read(self, wanted: Wanted, place: Place) -> tuple[bytes, Place]:
        if not self._reader.has_past(place.after, place.chain):
            raise FeedDivergedError(place.after)  # without asking the source of a replica, which would take time
        changes = self._reader.changes(place.after, AT_ONCE, place.chain, wanted.changes)
        entries, last = entries_of(self._reader, changes, has_documents=wanted.has_documents)
        return b"".join(_event(entry) for entry in entries), last


def _client(scope: Scope) -> str:
    return str(scope.get("state", {}).get("client", ""))


_running: Final[set[asyncio.Task[None]]] = set()
"""Tasks that no caller waits for: the event loop alone would not keep them."""


def _run(work: Coroutine[Any, Any, None]) -> None:
    task = asyncio.create_task(work)
    _running.add(task)
    task.add_done_callback(_running.discard)


class _Listener:
    """
    One stream.

    Args:
        live: knows what follows a place.
        client: the address whose stream it is.
    """

    __slots__ = ("_is_due", "_is_over", "_live", "_place", "_send", "_sending", "_wanted", "client", "held_bytes")

    def __init__(self, live: LiveChanges, client: str, wanted: Wanted, place: Place, send: Send) -> None:
        self._live, self.client, self._wanted, self._send = live, client, wanted, send
        self._place = place
        self.held_bytes = 0
        self._is_due = self._is_over = False
        self._sending: asyncio.Task[None] | None = None

    async def start(self) -> None:
        await self._send(
            {"type": "http.response.start", "status": 200, "headers": [*Response(200, _HEAD, b"").headers]}
        )
        await self._body(b"retry: %d\n%s" % (RETRY_MS, self._position()))
        self.wake(is_silent=True)

    async def until_left(self, receive: Receive) -> None:
        try:
            while (await receive())["type"] != "http.disconnect":
                pass  # as `gone`, whose frame would be one more of each listener
        finally:
            self._live.leave(self)

    def wake(self, *, is_silent: bool) -> None:
        """
        Send what has been published since; a client that still reads the last piece gets it afterwards.

        Args:
            is_silent: nothing is sent if nothing was published that this client wants.
        """
        self._is_due = True
        if self._sending is None:
            self._sending = asyncio.create_task(self._push(is_silent=is_silent))
            self._sending.add_done_callback(self._pushed)

    def end(self) -> None:
        """Complete the response."""
        self.close()
        _run(self._complete())

    async def _complete(self) -> None:
        await self._send({"type": "http.response.body", "body": b"", "more_body": False})

    def close(self) -> None:
        self._is_over = True
        if self._sending is not None:
            self._sending.cancel()

    def _pushed(self, task: asyncio.Task[None]) -> None:
        self._sending = None
        if self._is_over or task.cancelled():
            return
        error = task.exception()
        if error is not None:
            # The feed no longer has this place, or a document is damaged: a client that connects again is told.
            if not isinstance(error, LookupError | Problem):
                log.error("a stream of changes failed", exc_info=error)
            self.end()
        elif self._is_due:
            self.wake(is_silent=True)

    async def _push(self, *, is_silent: bool) -> None:
        while True:
            self._is_due = False
            events, place = await self._live.next(self._wanted, self._place)
            if place == self._place:
                break
            self._place = place
            if events:
                await self._body(events)
        if not is_silent:
            await self._body(self._position())

    def _position(self) -> bytes:
        """Return an event without data: clients remember its id, and do nothing else."""
        return b"id: %s\n\n" % str(self._place).encode()

    async def _body(self, body: bytes) -> None:
        await self._send({"type": "http.response.body", "body": body, "more_body": True})


def read_changes(reader: Reader, place: Place, limit: int, wanted: WantedChanges) -> Changes:
    """
    Return the changes after a place.

    Raises:
        BadRequest: the feed does not have that place; the hint says how to start again.
    """
    again = f"Download a full copy from {V1}/exports, then continue here after its edition"
    address = f"{V1}/changes?after={reader.edition}"
    try:
        return reader.changes(place.after, limit, place.chain, wanted)
    except FeedGapError:
        message = f"after is {place.after}; the feed no longer goes back that far."
        raise BadRequest(message, f"{again}: {address}") from None
    except FeedAheadError:
        raise BadRequest(
            f"after is {place.after}, but the feed's latest change is {reader.edition}: the number belongs "
            "to another feed, for example before a restore.",
            f"{again}. feedId changes whenever the numbers start over: {address}",
        ) from None
    except FeedDivergedError:
        raise BadRequest(
            f"chain is not that of change {place.after} here: the feed has another past since then, for "
            "example after a restore or a failover.",
            f"{again}, without chain: {address}",
        ) from None


def entries_of(reader: Reader, changes: Changes, *, has_documents: bool) -> tuple[list[JSONObject], Place]:
    """
    Return changes as they are sent, and the place after them.

    With documents, there may be fewer than were read: their documents have at most :data:`MAX_DOCUMENTS_BYTES`
    together. A document is the one that is published now, null if there is none, and left out if it is large.
    """
    entries: list[JSONObject] = []
    place = Place(changes.next_after, changes.chain)
    size_bytes = 0
    for row in changes.rows:
        entry: JSONObject = {
            "sequence": row.sequence,
            "kind": row.kind,
            "id": row.key,
            "change": row.change,
            "at": row.at,
        }
        if row.fields is not None:
            entry["fields"] = row.fields
        entry["chain"] = row.chain
        if has_documents:
            body = _document(reader, row)
            size_bytes += len(body or b"")
            if entries and size_bytes > MAX_DOCUMENTS_BYTES:
                return entries, place
            if body is not None:
                entry["document"] = msgspec.Raw(body)
            place = Place(row.sequence, row.chain)
        entries.append(entry)
    return entries, Place(changes.next_after, changes.chain)


class _Page(msgspec.Struct, rename="camel"):
    data: list[msgspec.Raw]
    next_after: int
    head: int


def is_at_the_end(body: bytes) -> bool:
    """Return whether a page of changes has none, and none that was not looked at."""
    page = msgspec.json.decode(body, type=_Page)
    return not page.data and page.next_after >= page.head


def _document(reader: Reader, row: ChangeRow) -> bytes | None:
    """Return the document of a change as JSON; None if it is left out."""
    found = reader.document(row.kind, row.key)
    if found is None:
        return b"null"
    if len(found.body) > MAX_DOCUMENT_BYTES:
        return None
    return bytes(msgspec.json.decode(found.body, type=_Detail).data)


class _Detail(msgspec.Struct):
    data: msgspec.Raw


def _event(entry: JSONObject) -> bytes:
    place = Place(entry["sequence"], entry["chain"])
    return b"id: %s\nevent: change\ndata: %s\n\n" % (str(place).encode(), msgspec.json.encode(entry))
