"""Blob storage in the store of a plugin, chosen by the scheme of its address."""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

from muniment.documents.storage import READ_BYTES, Blob, Storage
from muniment.plugins.loading import installed
from muniment.plugins.values import BlobStore

Found = TypeVar("Found")


class StoreFault(OSError):  # noqa: N818 - a fault, as the rest of the storage says
    """The store of a plugin failed, or no plugin knows the scheme of its address."""


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
        self._guard(lambda: self._blobs.put(key, [chunks] if isinstance(chunks, bytes) else chunks))

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
        found = self._guard(lambda: iter(self._blobs.list(prefix)))
        while (each := self._guard(lambda: next(found, None))) is not None:
            yield Blob(each.key, each.size_bytes, each.stored_at)

    def top(self) -> Iterator[Blob]:
        return (blob for blob in self.blobs() if "/" not in blob.key)

    @staticmethod
    def is_away(error: Exception) -> bool:
        return isinstance(error, OSError) and not isinstance(error, FileNotFoundError)

    def _guard(self, ask: Callable[[], Found]) -> Found:
        try:
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
    others = f"; {', '.join(each.name for each in plugins.failed)} could not be loaded" if plugins.failed else ""
    message = f"no installed plugin knows stores of {scheme}://{others}; muniment plugins lists them"
    raise StoreFault(message)
