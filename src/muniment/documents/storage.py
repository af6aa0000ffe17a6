"""
Blob storage: a local folder, an S3-compatible store, or the store of a plugin.

The same streaming code serves both, and a file is never entirely in memory. A blob is written once, under a unique
key, and becomes visible only when complete; names, types and digests are in the database. A stored blob survives a
power cut: obstore does not sync local files, so this module does.
"""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import obstore
from obstore.store import LocalStore, S3Store

from muniment.durable_files import sync, sync_with_folders
from muniment.kernel.ids import new_id
from muniment.kernel.json import JSONObject
from muniment.outbound.deadlines import Service
from muniment.plugins.loading import installed
from muniment.plugins.values import BlobStore
from muniment.store.database import patience

PART_BYTES: Final = 5 << 20
"""The smallest part that S3 accepts; an upload holds two of them in memory."""
_IN_PARTS: Final[dict[str, Any]] = {"use_multipart": True, "chunk_size": PART_BYTES, "max_concurrency": 2}
READ_BYTES: Final = 1 << 20
CONNECT_S: Final = 5
ANSWER_S: Final = 30
"""Seconds for the answer to one request, and for each piece of it: enough to send two parts at 350 KB/s."""
REQUEST_S: Final = 600
"""Seconds for one request in all: a download is read at its client's speed."""
RETRY_S: Final = 20
"""Seconds after which a failed request is not made again: a silent store is asked once."""
_STAGED: Final = re.compile(r"#\d+$")
"""The suffix of incomplete files in a local folder."""


@dataclass(frozen=True, slots=True)
class Blob:
    """A stored file."""

    key: str
    size_bytes: int
    stored_at: datetime


class StorageUnavailable(Exception):  # noqa: N818 - names the condition
    """The storage did not complete the request."""


class Storage:
    """
    Stores blobs.

    Args:
        folder: the local folder, if *url* is empty.
        url: ``s3://bucket/prefix``, with the key pair as user and password or from the machine's own
            configuration; ``?region=`` and ``?endpoint=http://…`` for stores other than Amazon's.
    """

    def __init__(self, folder: Path, url: str = "") -> None:
        self.folder = None if url else folder
        self._copies = folder.with_name("reading")
        self._store: Any = _s3(url) if url else _local(folder)
        self._service = Service("the document store", silent_after_s=CONNECT_S)

    def __repr__(self) -> str:
        return f"Storage({self.folder or 's3'})"

    async def write_stream(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        """Store *chunks*. If the iterator raises, nothing is stored and the error propagates."""
        await obstore.put_async(self._store, key, chunks, **_IN_PARTS)
        if self.folder is not None:
            await asyncio.to_thread(sync_with_folders, self.folder / key, self.folder)

    def write(self, key: str, chunks: bytes | Iterable[bytes]) -> None:
        """Store *chunks*. If the iterator raises, nothing is stored and the error propagates."""
        if isinstance(chunks, bytes):
            self._ask(obstore.put, key, chunks, use_multipart=False)
        else:
            self._ask(obstore.put, key, iter(chunks), **_IN_PARTS)
        if self.folder is not None:
            sync_with_folders(self.folder / key, self.folder)

    def delete(self, key: str) -> None:
        """Remove a blob; a missing one is not an error."""
        with suppress(FileNotFoundError):
            self._ask(obstore.delete, key)

    def stream(self, key: str) -> Iterator[bytes]:
        """Return a blob's bytes in pieces; raise FileNotFoundError at once, not with the first piece."""
        pieces = iter(self._ask(obstore.get, key).stream(min_chunk_size=READ_BYTES))

        def rest() -> Iterator[bytes]:
            while (piece := self._ask(lambda _: next(pieces, None))) is not None:
                yield bytes(piece)

        return rest()

    def size_bytes(self, key: str) -> int | None:
        """Return a blob's size, or None if it does not exist."""
        try:
            return int(self._ask(obstore.head, key)["size"])
        except FileNotFoundError:
            return None

    async def read_stream(self, key: str) -> AsyncIterator[bytes]:
        """Return a blob's bytes like :meth:`stream`, asynchronously."""
        found = await obstore.get_async(self._store, key)

        async def pieces() -> AsyncIterator[bytes]:
            async for piece in found.stream(min_chunk_size=READ_BYTES):
                yield bytes(piece)

        return pieces()

    def _ask(self, request: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """Make one request. While an S3 store is silent, one caller at a time does; the others fail at once."""
        if self.folder is not None:
            return request(self._store, *arguments, **options)
        with patience.elsewhere(), self._service.asked():
            return request(self._store, *arguments, **options)

    @contextmanager
    def local(self, key: str) -> Iterator[Path]:
        """
        Provide a blob as a local file for the duration of the context, or raise FileNotFoundError.

        From S3 it is copied with a single request: reading ranges takes many, and some compatible stores do not support
        ranges.
        """
        if self.folder is not None:
            file = self.folder / key
            if not file.is_file():
                raise FileNotFoundError(key)
            yield file
            return
        self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=self._copies) as copy:
            for piece in self.stream(key):
                copy.write(piece)
            copy.flush()
            yield Path(copy.name)

    def blobs(self, prefix: str = "") -> Iterator[Blob]:
        for page in obstore.list(self._store, prefix or None, chunk_size=500):
            for found in page:
                yield Blob(found["path"], found["size"], found["last_modified"])

    def top(self) -> Iterator[Blob]:
        """Yield the files at the top, without those in folders."""
        for found in obstore.list_with_delimiter(self._store)["objects"]:
            yield Blob(found["path"], found["size"], found["last_modified"])

    def unfinished(self) -> Iterator[str]:
        """List the keys of incomplete files in a local folder; an S3 store removes them by its lifecycle rule."""
        if self.folder is None:
            return
        for file in self.folder.rglob("*"):
            if _STAGED.search(file.name) and file.is_file():
                yield _STAGED.sub("", str(file.relative_to(self.folder)))

    def remove_unfinished(self, key: str) -> None:
        """Remove incomplete files of an upload to *key*."""
        if self.folder is None:
            return
        target = self.folder / key
        for file in target.parent.glob("*"):
            if _STAGED.sub("", file.name) == target.name and file.name != target.name:
                file.unlink(missing_ok=True)

    @staticmethod
    def is_away(error: Exception) -> bool:
        """Return whether an error of a read says that the store does not answer, and not that a blob is missing."""
        is_fault = isinstance(error, obstore.exceptions.BaseError | ConnectionError | TimeoutError)
        return is_fault and not isinstance(error, FileNotFoundError)

    def probe(self) -> None:
        """Write, read and delete a small blob; raise StorageUnavailable, which says what failed and why."""
        key = f"probe/{new_id()}"
        content = b"Muniment was here."
        step = "write"
        try:
            self.write(key, content)
            step = "read"
            if b"".join(self.stream(key)) != content:
                raise StorageUnavailable("the storage returned different bytes than were written")
            step = "delete"
            self.delete(key)
        except (OSError, obstore.exceptions.BaseError) as error:
            message = f"cannot {step}: {str(error).partition('Debug source')[0].strip()}"
            raise StorageUnavailable(message) from error


def _local(folder: Path) -> LocalStore:
    if not folder.exists():
        folder.mkdir(mode=0o700, exist_ok=True)  # not the data folder: it may be a volume that is not mounted
        sync(folder.parent)
    return LocalStore(folder, automatic_cleanup=False)


def _s3(url: str) -> S3Store:
    parts = urlsplit(url)
    options = dict(parse_qsl(parts.query))
    config: JSONObject = {"region": options.get("region", "us-east-1")}
    client: Any = {
        "timeout": timedelta(seconds=REQUEST_S),
        "connect_timeout": timedelta(seconds=CONNECT_S),
        "read_timeout": timedelta(seconds=ANSWER_S),
    }
    endpoint = options.get("endpoint", "")
    if endpoint:
        config["endpoint"] = endpoint
        config["virtual_hosted_style_request"] = False
        client["allow_http"] = endpoint.startswith("http://")
    if parts.username:
        config["access_key_id"] = unquote(parts.username)
        config["secret_access_key"] = unquote(parts.password or "")
    return S3Store(
        parts.hostname or "",
        prefix=parts.path.strip("/") or None,
        client_options=client,
        retry_config={"max_retries": 3, "retry_timeout": timedelta(seconds=RETRY_S)},
        **config,
    )


Found = TypeVar("Found")


class StoreFault(OSError):  # noqa: N818 - a fault, as the rest of the storage says
    """The store of a plugin failed, or no plugin knows the scheme of its address."""

    is_store_fault = True


class PluggedStorage(Storage):
    """
    Stores blobs in the store of a plugin, whose faults it raises as OSError.

    Args:
        folder: beside it, files are staged: a plugin receives a file when it is complete.
    """

    def __init__(self, folder: Path, store: BlobStore, scheme: str) -> None:
        self.folder = None
        self._copies = folder.with_name("reading")
        self._blobs = store
        self._scheme = scheme

    def __repr__(self) -> str:
        return f"Storage({self._scheme})"

    async def write_stream(self, key: str, chunks: AsyncIterator[bytes]) -> None:
        self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=self._copies) as staged:
            async for chunk in chunks:
                await asyncio.to_thread(staged.write, chunk)
            staged.seek(0)
            await asyncio.to_thread(self.write, key, iter(lambda: staged.read(READ_BYTES), b""))

    def write(self, key: str, chunks: bytes | Iterable[bytes]) -> None:
        pieces = [chunks] if isinstance(chunks, bytes) else chunks
        self._guard(lambda: self._blobs.put(key, pieces))

    def delete(self, key: str) -> None:
        with suppress(FileNotFoundError):
            self._guard(lambda: self._blobs.delete(key))

    def stream(self, key: str) -> Iterator[bytes]:
        pieces = self._guard(lambda: iter(self._blobs.get(key)))
        first = self._guard(lambda: next(pieces, b""))

        def rest() -> Iterator[bytes]:
            piece = first
            while piece:
                yield bytes(piece)
                piece = self._guard(lambda: next(pieces, b""))

        return rest()

    def size_bytes(self, key: str) -> int | None:
        try:
            return int(self._guard(lambda: self._blobs.size_bytes(key)))
        except FileNotFoundError:
            return None

    async def read_stream(self, key: str) -> AsyncIterator[bytes]:
        found = await asyncio.to_thread(self.stream, key)

        async def pieces() -> AsyncIterator[bytes]:
            while piece := await asyncio.to_thread(next, found, b""):
                yield piece

        return pieces()

    def blobs(self, prefix: str = "") -> Iterator[Blob]:
        listed = self._guard(lambda: iter(self._blobs.list(prefix)))
        while (stored := self._guard(lambda: next(listed, None))) is not None:
            yield Blob(stored.key, stored.size_bytes, stored.stored_at)

    def top(self) -> Iterator[Blob]:
        return (blob for blob in self.blobs() if "/" not in blob.key)

    @staticmethod
    def is_away(error: Exception) -> bool:
        return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)

    def _guard(self, ask: Callable[[], Found]) -> Found:
        try:
            with patience.elsewhere():
                return ask()
        except OSError:
            raise
        except Exception as error:
            message = f"the store of {self._scheme}:// failed: {type(error).__name__}: {error}"
            raise StoreFault(message) from error


def storage_at(folder: Path, url: str) -> Storage:
    """
    Return the storage in the local *folder*, or at *url* if it is given: S3, or the store of a plugin.

    Raises:
        StoreFault: no plugin that works knows the scheme of *url*.
    """
    scheme = urlsplit(url).scheme
    if not url or scheme == "s3":
        return Storage(folder, url)
    plugins = installed()
    for call in plugins.calls("blob_store"):
        try:
            store = call(scheme=scheme, url=url)
        except Exception as error:
            message = f"plugin {call.plugin} cannot open its store: {type(error).__name__}: {error}"
            raise StoreFault(message) from error
        if store is not None:
            return PluggedStorage(folder, store, scheme)
    others = ""
    if plugins.failed:
        others = f"; {', '.join(plugin.name for plugin in plugins.failed)} could not be loaded"
    message = f"no installed plugin knows stores of {scheme}://{others}; muniment plugins lists them"
    raise StoreFault(message)
