"""
Memory: the response cache, which pages use too, bounded by bytes; the size of its keys; freed memory.

Pages do not name what they depend on: a reader notes what is read from it while a page is rendered (:func:`noting`).
"""

import contextlib
import ctypes
import sys
import threading
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator
from contextvars import ContextVar
from operator import itemgetter
from typing import Any, Final

from cachetools import LRUCache

Dependency = tuple[str, str]
"""A document by kind and key; the key ``*`` means every document of the kind."""
EVERYTHING: Final[Dependency] = ("*", "*")
"""What every publication changes."""

ENTRY_OVERHEAD_BYTES = 760
"""Memory per entry besides its content: keys, objects and dictionary slots; with one document that it shows."""
MOST_NAMED = 500
"""Documents of a kind that an entry of a page names; one that shows more of them depends on all of the kind."""
DEPENDENCY_BYTES = 300
"""Memory per further document that an entry shows."""
MAX_REQUESTS_BYTES = 8_000_000
"""Memory of whole requests that are remembered: about 16,000 short ones."""
REQUEST_OVERHEAD_BYTES = 330
"""Memory per such request besides its bytes."""


noted_now: ContextVar[set[Dependency] | None] = ContextVar("noted", default=None)


@contextlib.contextmanager
def noting() -> Iterator[set[Dependency]]:
    """Collect what is read meanwhile, in this context; what collects around it gets that too."""
    outer = noted_now.get()
    noted: set[Dependency] = set()
    token = noted_now.set(noted)
    try:
        yield noted
    finally:
        noted_now.reset(token)
        if outer is not None:
            outer |= noted


def note(*dependencies: Dependency) -> None:
    """Note that what is made of the answer depends on these."""
    noted = noted_now.get()
    if noted is not None:
        noted.update(dependencies)


def least(dependencies: Iterable[Dependency]) -> tuple[Dependency, ...]:
    """Return *dependencies* in order, without those that others of them include; many of a kind are all of it."""
    every = set(dependencies)
    if EVERYTHING in every:
        return (EVERYTHING,)
    documents = Counter(kind for kind, _ in every)
    every |= {(kind, "*") for kind, count in documents.items() if count > MOST_NAMED}
    return tuple(sorted(each for each in every if each[1] == "*" or (each[0], "*") not in every))


Entry = tuple[Any, int, tuple[Dependency, ...]]
"""A value, its size in bytes and the documents it shows; a plain tuple for speed, created at every miss."""


class ResponseCache(LRUCache[Hashable, Entry]):
    """A byte-bounded cache that tracks the documents each entry shows; evicts the oldest entry first. Thread-safe."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(limit_bytes, getsizeof=itemgetter(1))
        self._dependents: dict[Dependency, set[Hashable]] = {}
        self._lock = threading.Lock()
        self.ready: dict[Hashable, Any] = {}
        """The values by key, for reading without a lock; only this class changes it."""
        self.by_request: dict[bytes, Any] = {}
        """Responses to whole requests from cached values, by the exact bytes of the request; used like ``ready``."""
        self._requests: dict[Hashable, list[bytes]] = {}
        self._request_bytes = 0
        self.version = 0

    def put(
        self, key: Hashable, value: object, *, size_bytes: int, version: int | None, depends: tuple[Dependency, ...]
    ) -> None:
        """
        Cache *value*, unless something was published since *version*, that of the file before it was read.

        None is no version: the value must not be kept.
        """
        size_bytes += ENTRY_OVERHEAD_BYTES + DEPENDENCY_BYTES * max(0, len(depends) - 1)
        with self._lock:
            if version != self.version or size_bytes > self.maxsize // 4:
                return
            if key in self.ready:
                del self[key]
            self._add(key, value, size_bytes, depends)

    def grow(self, key: Hashable, value: object, size_bytes: int) -> None:
        """Add *size_bytes* to the size of *value*, which has gained another encoding, if *key* still holds it."""
        with self._lock:
            if self.ready.get(key) is value:
                _, former_bytes, depends = self[key]
                del self[key]  # cachetools 6 would evict it itself to replace it by a larger one
                self._add(key, value, min(former_bytes + size_bytes, int(self.maxsize)), depends)

    def drop(self, key: Hashable) -> None:
        """Drop *key* if it is cached."""
        with self._lock:
            if key in self.ready:
                del self[key]

    def remember(self, request: bytes, key: Hashable, value: object, given: object) -> None:
        """Remember what *request* was *given* of *value*, for as long as *key* holds that value."""
        with self._lock:
            if self.ready.get(key) is not value or request in self.by_request:
                return
            self._request_bytes += len(request) + REQUEST_OVERHEAD_BYTES
            if self._request_bytes > MAX_REQUESTS_BYTES:  # repeated ones are soon remembered again
                self._forget_requests()
                self._request_bytes = len(request) + REQUEST_OVERHEAD_BYTES
            self.by_request[request] = given
            self._requests.setdefault(key, []).append(request)

    def drop_changed(self, version: int, changed: Iterable[Dependency] | None) -> None:
        """Advance to *version*: drop entries that show what has *changed*, or every entry if that is None (unknown)."""
        with self._lock:
            self.version = version
            if changed is None:
                self._clear()
                return
            for dependency in changed:
                for key in list(self._dependents.get(dependency, ())):
                    del self[key]

    def clear(self) -> None:
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        super().clear()
        self._dependents.clear()
        self.ready.clear()
        self._forget_requests()

    def _add(self, key: Hashable, value: object, size_bytes: int, depends: tuple[Dependency, ...]) -> None:
        self[key] = value, size_bytes, depends
        self.ready[key] = value
        for dependency in depends:
            self._dependents.setdefault(dependency, set()).add(key)

    def __delitem__(self, key: Hashable) -> None:
        """Drop *key*; also called on eviction."""
        _, _, depends = self[key]
        super().__delitem__(key)
        del self.ready[key]
        for request in self._requests.pop(key, ()):
            del self.by_request[request]
            self._request_bytes -= len(request) + REQUEST_OVERHEAD_BYTES
        for dependency in depends:
            keys = self._dependents[dependency]
            keys.discard(key)
            if not keys:
                del self._dependents[dependency]

    def _forget_requests(self) -> None:
        self.by_request.clear()
        self._requests.clear()
        self._request_bytes = 0


def release_free_memory() -> None:
    """Return freed memory, which the C library keeps, to the system."""
    with contextlib.suppress(OSError, AttributeError):
        ctypes.CDLL(None).malloc_trim(0)  # only in glibc


def size_of(key: object) -> int:
    """Return the size in bytes of a cache key with its nested tuples: a client may make it long."""
    return sys.getsizeof(key) + (sum(map(size_of, key)) if isinstance(key, tuple) else 0)
