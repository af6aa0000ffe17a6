"""The document store, as the nodes of an instance share exports in it."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from muniment.documents.storage import Storage


class ExportStore:
    """Reads and writes the S3 store at *url*; every fault is an OSError."""

    def __init__(self, url: str) -> None:
        self._url = url

    @cached_property
    def _storage(self) -> "Storage":
        from muniment.documents.plugged.storage import storage_at  # 4 MB: imported on first use

        return storage_at(Path("blobs"), self._url)

    def write(self, key: str, chunks: Iterable[bytes]) -> None:
        with _faults():
            self._storage.write(key, chunks)

    def read(self, key: str) -> Iterator[bytes]:
        with _faults():
            yield from self._storage.stream(key)

    def keys(self, prefix: str) -> list[str]:
        with _faults():
            return [blob.key for blob in self._storage.blobs(prefix)]

    def delete(self, key: str) -> None:
        with _faults():
            self._storage.delete(key)


@contextmanager
def _faults() -> Iterator[None]:
    from obstore.exceptions import BaseError

    try:
        yield
    except BaseError as error:
        raise OSError(str(error).partition("Debug source")[0].strip()) from error
