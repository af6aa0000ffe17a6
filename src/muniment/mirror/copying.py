"""
Make and follow the copy of another registry: its exports first, then its changes with their documents.

The copy is a published file, as a node has one of PostgreSQL, with the numbers and the chain of the origin's feed. Each
page of changes is one transaction together with the number and the chain that it leads to: a copy that is killed at any
moment continues there. The origin is asked with that chain, so that it refuses to continue another history.
"""

import contextlib
import fcntl
import gzip
import os
import re
import secrets
import sqlite3
import time
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple
from urllib.parse import quote

import msgspec

from muniment import setting_sources
from muniment.durable_files import replacing
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict
from muniment.kernel.wire import parse_timestamp
from muniment.mirror.origin import File, Origin
from muniment.schema.objects import Schema
from muniment.store import public_log, published
from muniment.store.database import erasure, node_copy
from muniment.store.exports.files import NAMES
from muniment.store.public_log import Link
from muniment.store.published_document import Kind, PublishedDocument, PublishedEntry

CHANGES_AT_ONCE: Final = 1_000
WAIT_S: Final = 50
"""Seconds that the origin is asked to wait for the next change."""
LEAST_WAIT_S: Final = 1.0
"""Between two questions at the end of the feed, also of an origin that does not wait."""
MAX_LINE_BYTES: Final = 32 << 20
LONGEST_AWAY: Final = timedelta(days=29)
"""An erased person is named by the feed for 30 days; a copy that has seen none of these days is made again."""
DOWNLOADS: Final = ".mirror"
"""The folder of the export files while they are read."""
_KINDS: Final[dict[Kind, str]] = {"company": "companies", "person": "people", "framework": "frameworks"}
_CURRENCY: Final = re.compile(rb'"treasuryAmount"\s*:\s*\{[^{}]*"currency"\s*:\s*"([A-Z]{3})"')
_EXPECTED: Final = frozenset({400})
_NONE: Final = msgspec.Raw(b"null")

Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
Digest = Annotated[str, msgspec.Meta(pattern=r"^[0-9a-f]{64}$")]
Moment = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$")]


class _Export(msgspec.Struct, rename="camel"):
    name: Annotated[str, msgspec.Meta(pattern=r"^[a-z][a-z0-9_]*-\d{1,19}(-[0-9a-f]{8})?\.(jsonl|csv|sqlite)\.gz$")]
    rows: Number
    bytes: Number
    sha256: Digest
    edition: Number
    at: Moment


class _Exports(msgspec.Struct):
    data: Annotated[list[_Export], msgspec.Meta(max_length=500)]


class Entry(msgspec.Struct):
    """A change of the feed."""

    sequence: Annotated[int, msgspec.Meta(ge=1, lt=1 << 53)]
    kind: Kind
    id: Annotated[str, msgspec.Meta(min_length=1, max_length=300)]
    change: Literal["published", "updated", "unlisted"]
    at: Moment
    chain: Digest | None = None
    fields: Annotated[tuple[str, ...], msgspec.Meta(max_length=500)] | None = None
    document: msgspec.Raw = msgspec.Raw(b"")
    """The document as it is now; null if there is none, and empty if the origin leaves it out because it is large."""


class Page(msgspec.Struct, rename="camel"):
    """Changes of the feed, and how far they lead."""

    data: Annotated[list[Entry], msgspec.Meta(max_length=CHANGES_AT_ONCE)]
    next_after: Number
    feed_id: Annotated[str, msgspec.Meta(pattern=r"^[0-9A-Za-z-]{1,100}$")]
    head: Number
    chain: Digest | None = None


class _Detail(msgspec.Struct):
    data: msgspec.Raw


class Place(NamedTuple):
    """How far a copy has read: the feed, the number of the last change, and the chain after it, where it is known."""

    feed_id: str
    after: int
    chain: str | None


class Snapshot(NamedTuple):
    """The export files of one edition, fetched and verified, with the number of their rows, and their place."""

    place: Place
    at: str
    files: dict[Kind, Path]
    rows: dict[Kind, int]


class Progress(NamedTuple):
    """What a copy has: the edition, and the number of documents."""

    edition: int
    documents: int


class BehindTooFar(Exception):  # noqa: N818 - a state, and what follows is said by the caller
    """The feed cannot continue the copy, which has to be made again from exports."""


class Following(ABC):
    """
    What is read of the registry that *origin* asks: its exports, then its changes. A subclass keeps what they bring.

    Args:
        folder: the place of files that are being fetched.
        tells: receives what happens as a sentence.
    """

    def __init__(self, origin: Origin, folder: Path, *, tells: Callable[[str], None] = lambda _: None) -> None:
        self._origin, self.folder, self._tells = origin, folder, tells

    @abstractmethod
    def place(self) -> Place | None:
        """Return how far was read; None if nothing was, or it has to be read again."""

    @abstractmethod
    def build(self, snapshot: Snapshot, schema: Schema) -> None:
        """
        Keep what the exports hold.

        Raises:
            BadRequest: a file is truncated or holds something else than its list says.
        """

    @abstractmethod
    def apply(self, place: Place, page: Page, schema: Schema) -> None:
        """Keep what a page of changes after *place* brings, with the place after it."""

    @abstractmethod
    def other_history(self, place: Place) -> Phrase:
        """Return that the origin has another history than the one that was read until *place*."""

    def fetch(self) -> Snapshot:
        """
        Fetch the exports of the origin, which are continued where an earlier attempt ended.

        Raises:
            BadRequest: the origin has none, or their list or a file is not as it should be.
        """
        listed = self._origin.read("/api/v1/exports", _Exports).data
        newest = {kind: self._newest(listed, kind) for kind in NAMES}
        editions = {export.edition for export in newest.values()}
        if len(editions) != 1:
            raise self._foreign("its exports are of several editions")
        (edition,) = editions
        place = self._place_of(edition)
        folder = self.folder / DOWNLOADS
        folder.mkdir(mode=0o700, exist_ok=True)
        names = {export.name for export in newest.values()}
        for former in folder.iterdir():
            if former.name not in names:
                former.unlink()
        files: dict[Kind, Path] = {}
        for kind, export in newest.items():
            files[_kind(kind)] = folder / export.name
            file = File(f"/exports/{export.name}", export.bytes, export.sha256)
            self._origin.download(file, folder / export.name)
        rows = {_kind(kind): export.rows for kind, export in newest.items()}
        return Snapshot(place, max(export.at for export in newest.values()), files, rows)

    def _newest(self, listed: list[_Export], kind: str) -> _Export:
        begin = f"{NAMES[kind]}-"
        exports = []
        for export in listed:
            if export.name.startswith(begin) and export.name.endswith(".jsonl.gz"):
                exports.append(export)
        if not exports:
            raise self._foreign(f"it lists no export of {NAMES[kind]}")
        return max(exports, key=lambda export: export.edition)

    def _place_of(self, edition: int) -> Place:
        """Return the place of an edition in the feed."""
        before = max(edition - 1, 0)
        page = self._page(Place("", before, None), limit=1, has_documents=False)
        if page is not None and page.next_after == edition:
            return Place(page.feed_id, edition, page.chain)
        # The feed does not reach back to the change before, for example after an upgrade.
        page = self._page(Place("", edition, None), limit=1, has_documents=False)
        if page is None or page.head < edition:
            raise self._foreign("its exports are newer than its changes")
        chain = page.chain if page.next_after == edition else None
        return Place(page.feed_id, edition, chain)

    def follow(self, place: Place, schema: Schema, *, waits: bool) -> Place:
        """
        Apply what the origin has published since, and return the place after one page of changes.

        Args:
            waits: whether to wait for a change if there is none.

        Raises:
            BehindTooFar: the feed does not reach back to this place, so that the exports must be read again.
            Conflict: the origin has another history than the one that was read.
            BadRequest: what the origin sends is malformed. Nothing of that page is used.
        """
        began = time.monotonic()
        page = self._page(place, limit=CHANGES_AT_ONCE, has_documents=True, waits_s=WAIT_S if waits else 0)
        if page is None:
            raise self._refused(place)
        if page.feed_id != place.feed_id and place.chain is None:
            raise self._diverged(place)  # that it has the same past under another name is not proven
        numbers = [entry.sequence for entry in page.data]
        if numbers != list(range(place.after + 1, place.after + 1 + len(numbers))):
            raise self._foreign(f"its changes after {place.after} are not consecutive")
        if page.next_after != place.after + len(numbers):
            raise self._foreign(f"the page of changes after {place.after} does not end where it says")
        if not page.data and page.feed_id == place.feed_id:
            if waits and time.monotonic() - began < LEAST_WAIT_S:
                self._origin.pause(LEAST_WAIT_S)
            return place
        self.apply(place, page, schema)
        return Place(page.feed_id, page.next_after, page.chain)

    def is_level(self, place: Place) -> bool:
        """Return whether the origin has no later change."""
        page = self._page(place, limit=1, has_documents=False)
        return page is not None and page.head <= place.after

    def _page(self, place: Place, *, limit: int, has_documents: bool, waits_s: int = 0) -> Page | None:
        """Return a page of changes; None if the origin refuses the place."""
        path = f"/api/v1/changes?after={place.after}&limit={limit}"
        if place.chain:
            path += f"&chain={place.chain}"
        if has_documents:
            path += "&include=document"
        if waits_s:
            path += f"&waitSeconds={waits_s}"
        answer = self._origin.get(path, expected=_EXPECTED, waits_s=waits_s)
        return None if answer.status in _EXPECTED else self._origin.decoded(answer.body, Page)

    def _refused(self, place: Place) -> Exception:
        """Return why the origin refuses to continue the copy: it has another history, or does not reach back."""
        without_chain = place._replace(chain=None)
        if place.chain is not None and self._page(without_chain, limit=1, has_documents=False) is not None:
            return self._diverged(place)
        newest = self._origin.get("/api/v1/exports").edition
        if newest < place.after:
            return self._diverged(place)
        page = self._page(Place("", newest, None), limit=1, has_documents=False)
        if page is None or page.feed_id != place.feed_id:
            return self._diverged(place)
        return BehindTooFar(f"the changes of {self._origin.address} no longer go back to {place.after}")

    def data(self, entry: Entry) -> bytes | None:
        """Return the document of a change, also one that is too large for a page of them; None if there is none."""
        if bytes(entry.document) == bytes(_NONE):
            return None
        if bytes(entry.document):
            return bytes(entry.document)
        path = f"/api/v1/{_KINDS[entry.kind]}/{quote(entry.id, safe='')}"
        answer = self._origin.get(path, expected=frozenset({404}))
        return None if answer.status == 404 else bytes(self._origin.decoded(answer.body, _Detail).data)

    def _diverged(self, place: Place) -> Conflict:
        hint = "Ask its operator. To continue with the other history, add --restart."
        return Conflict(self.other_history(place), hint)

    def _foreign(self, reason: str) -> BadRequest:
        message = Phrase("{address} sends something wrong: {reason}.", address=self._origin.address, reason=reason)
        return BadRequest(message, "Nothing of it was used. Run the command again, or tell its operator.")


class Mirror(Following):
    """The copy in a folder of the registry that *origin* asks: a published file."""

    def __init__(self, origin: Origin, folder: Path, *, tells: Callable[[str], None] = lambda _: None) -> None:
        super().__init__(origin, folder, tells=tells)
        self._path = folder / "published.sqlite3"

    def place(self) -> Place | None:
        """Return how far the copy has read; None if there is none, or another version has made it."""
        if not self._path.exists():
            return None
        with self._opened() as file:
            edition, epoch, _ = published.head(file)
            if epoch == published.UNBUILT or not published.is_current(file):
                return None
            link = public_log.latest_link(file)
            chain = None
            if link is not None and link.sequence == edition:
                chain = bytes(link.chain).hex()
            return Place(published.feed_of(epoch), edition, chain)

    def build(self, snapshot: Snapshot, schema: Schema) -> None:
        """
        Put a copy of the exported documents in the place of the one that there may be, which is served until then.

        Raises:
            BadRequest: a file is truncated or holds something else than its list says.
        """

        def fill(file: sqlite3.Connection) -> None:
            file.execute("BEGIN IMMEDIATE")
            place = snapshot.place
            published.clear(file, epoch=_epoch(place.feed_id), edition=place.after)
            published.load(file, self._documents(snapshot, schema), at=snapshot.at)
            if place.chain is not None:
                public_log.copy_links(file, [Link(place.after, bytes.fromhex(place.chain))])
            file.execute("COMMIT")

        node_copy.replace(self._path, node_copy.identity(self._path), fill)
        for path in snapshot.files.values():
            path.unlink(missing_ok=True)

    def _documents(self, snapshot: Snapshot, schema: Schema) -> Iterator[PublishedDocument]:
        from muniment.registry.publishing.public_form import read_public  # Django must be set up before

        for kind, path in snapshot.files.items():
            keys: set[str] = set()
            for line in lines_of(path):
                # Exports are in the order of publication, so the place in the file orders the documents.
                document = read_public(kind, data_of(kind, line, path.name), len(keys) + 1, schema)
                if document.key in keys:
                    raise self._foreign(f"{path.name} has {document.key} twice")
                keys.add(document.key)
                yield document
            if len(keys) != snapshot.rows[kind]:
                raise self._foreign(f"{path.name} has {len(keys)} rows, and its list says {snapshot.rows[kind]}")

    def keep_former(self) -> Path | None:
        """Keep the present copy under another name, before one of another history takes its place."""
        if not self._path.exists():
            return None
        with self._opened() as file:
            file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
            edition, _, _ = published.head(file)
        kept = self._path.with_name(f"published-until-{edition}-{secrets.token_hex(4)}.sqlite3")
        os.link(self._path, kept)
        return kept

    def progress(self) -> Progress:
        with self._opened() as file:
            (documents,) = file.execute("SELECT count(*) FROM published_document").fetchone()
            return Progress(published.head(file)[0], documents)

    def apply(self, place: Place, page: Page, schema: Schema) -> None:
        """Write a page of changes, in one transaction."""
        has_erasure = any(entry.id.startswith(erasure.ERASED_KEY_PREFIX) for entry in page.data)
        with self._opened() as file:
            if has_erasure:
                self._require_recent(page)
            entries = self._read_entries(file, page, schema)
            erased = self._erased_before(file, place) if has_erasure else []
            file.execute("BEGIN IMMEDIATE")
            try:
                _require_edition(file, place.after)
                published.apply(file, entries, is_copy=True)
                links = [Link(each.sequence, bytes.fromhex(each.chain)) for each in page.data if each.chain]
                public_log.copy_links(file, links)
                if page.feed_id != place.feed_id:
                    published.set_epoch(file, _epoch(page.feed_id))
                if has_erasure:
                    erasure.redact(file, erased)
            except BaseException:
                file.execute("ROLLBACK")
                raise
            file.execute("COMMIT")
            if has_erasure:
                erasure.compact(file)

    def _require_recent(self, page: Page) -> None:
        """Raise BehindTooFar if the feed may have named a person for 30 days who was erased, and no longer does."""
        for entry in page.data:
            if (
                entry.id.startswith(erasure.ERASED_KEY_PREFIX)
                and parse_timestamp(entry.at) < datetime.now(UTC) - LONGEST_AWAY
            ):
                raise BehindTooFar(f"{self._origin.address} has erased someone more than a month ago")

    def _erased_before(self, file: sqlite3.Connection, place: Place) -> list[tuple[int, str]]:
        """Return the changes of the copy which the origin keeps under a random id, because their person was erased."""
        (oldest,) = file.execute("SELECT min(sequence) FROM published_change").fetchone()
        after = place.after if oldest is None else oldest - 1
        erased: list[tuple[int, str]] = []
        while after < place.after:
            page = self._page(Place("", after, None), limit=CHANGES_AT_ONCE, has_documents=False)
            if page is None or not page.data or page.next_after <= after:
                raise BehindTooFar(f"the changes of {self._origin.address} no longer go back to {after}")
            erased += [
                (entry.sequence, entry.id) for entry in page.data if entry.id.startswith(erasure.ERASED_KEY_PREFIX)
            ]
            after = page.next_after
        return [(sequence, key) for sequence, key in erased if sequence <= place.after]

    def _read_entries(self, file: sqlite3.Connection, page: Page, schema: Schema) -> list[PublishedEntry]:
        """Return the changes of a page; the last one of each document brings it."""
        from muniment.registry.publishing.public_form import read_public

        last = {(entry.kind, entry.id): entry.sequence for entry in page.data}
        first = {(entry.kind, entry.id): entry.sequence for entry in reversed(page.data)}
        entries = []
        for entry in page.data:
            identity = entry.kind, entry.id
            document = None
            if entry.change != "unlisted" and last[identity] == entry.sequence:
                data = self.data(entry)
                if data is not None:
                    number = _number(file, *identity) or first[identity]
                    document = read_public(entry.kind, data, number, schema)
                    if document.key != entry.id:
                        raise self._foreign(f"change {entry.sequence} is of {entry.id}, its document of {document.key}")
            entries.append(
                PublishedEntry(
                    sequence=entry.sequence,
                    kind=entry.kind,
                    key=entry.id,
                    change=entry.change,
                    at=entry.at,
                    document=document,
                    fields=entry.fields,
                )
            )
        return entries

    @contextmanager
    def _opened(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(node_copy.open_copy(self._path)) as file:
            yield file

    def other_history(self, place: Place) -> Phrase:
        return Phrase(
            "{address} has another history than the one that this mirror has read until change {number}: it was"
            " restored, or its history was rewritten. The mirror keeps what it has, and serves it. With --restart, the"
            " copy of this one is kept beside it.",
            address=self._origin.address,
            number=place.after,
        )


def currency_of(snapshot: Snapshot) -> str:
    """Return the currency of a registry's amounts; empty if it has none."""
    for path in snapshot.files.values():
        for line in lines_of(path):
            found = _CURRENCY.search(line)
            if found is not None:
                return found[1].decode()
    return ""


def note_mirrored(folder: Path, address: str, currency: str) -> None:
    """Write what makes a folder a mirror of the registry at *address*."""
    with replacing(folder / setting_sources.MIRROR) as file:
        file.write(msgspec.json.encode({"origin": address, "currency": currency}) + b"\n")


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep other commands from changing the mirror in *folder*; raise Conflict if one does."""
    descriptor = os.open(folder / ".mirror.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = Phrase("Another muniment mirror is running in {folder}.", folder=folder)
            raise Conflict(message, "Let it run, or end it first.") from None
        yield
    finally:
        os.close(descriptor)


def _kind(name: str) -> Kind:
    return next(kind for kind in _KINDS if kind == name)


def _epoch(feed_id: str) -> str:
    """Return an epoch of a copy, of its own, so that readers keep nothing of a former one."""
    return f"{secrets.token_hex(4)}:{published.SCHEMA_VERSION}:{feed_id}"


def _require_edition(file: sqlite3.Connection, edition: int) -> None:
    if published.head(file)[0] != edition:
        raise Conflict("Another process has changed the mirror.", "Run one muniment mirror at a time.")


def _number(file: sqlite3.Connection, kind: str, key: str) -> int | None:
    """Return the number of a stored document in the order of publication."""
    row = file.execute(
        "SELECT position & ? FROM published_document WHERE kind = ? AND key = ?", ((1 << 40) - 1, kind, key)
    ).fetchone()
    return None if row is None else int(row[0])


def data_of(kind: str, line: bytes, name: str) -> bytes:
    """Return the document in a line of an export; that of a framework is a member of its line."""
    if kind != "framework":
        return line
    try:
        return bytes(msgspec.json.decode(line, type=dict[str, msgspec.Raw])["framework"])
    except (msgspec.MsgspecError, KeyError):
        raise BadRequest(Phrase("A line of {name} is no framework.", name=name), "Nothing of it was used.") from None


def lines_of(path: Path) -> Iterator[bytes]:
    """Yield the lines of an export in bounded memory, whatever it unpacks to."""
    with gzip.open(path) as file:
        while True:
            try:
                line = file.readline(MAX_LINE_BYTES + 1)
            except (EOFError, OSError, zlib.error) as error:
                message = Phrase("{name} cannot be read: {error}.", name=path.name, error=str(error))
                raise BadRequest(message, "Nothing of it was used.") from None
            if not line:
                return
            if len(line) > MAX_LINE_BYTES or not line.endswith(b"\n"):
                message = Phrase("{name} has a line that does not end.", name=path.name)
                raise BadRequest(message, "Nothing of it was used.")
            yield line.rstrip(b"\n")
