"""Finished answers, kept while what they were made from stands."""

import threading
from collections import OrderedDict
from collections.abc import Hashable, Iterable
from typing import Any

Dependency = tuple[str, str]
"""A document by kind and key; the key ``*`` stands for every document of the kind."""

ENTRY_OVERHEAD_BYTES = 700
"""What an entry costs beside its content: keys, objects and their places in the dictionaries."""


class ResponseCache:
    """
    A cache bounded by bytes, the oldest leaving first, that knows what each entry depends on.

    Args:
        limit_bytes: how much content it keeps.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._limit_bytes = limit_bytes
        # Ordered: the first of a plain dictionary is found by walking over all that left before it.
        self._entries: OrderedDict[Hashable, tuple[Any, int, tuple[Dependency, ...]]] = OrderedDict()
        self._dependents: dict[Dependency, set[Hashable]] = {}
        self._lock = threading.Lock()
        self.ready: dict[Hashable, Any] = {}
        """The values by key, for reading without a lock; only this class changes it."""
        self.size_bytes = 0
        self.edition = 0

    def get(self, key: Hashable) -> Any:
        """Give what is kept under *key*, or None."""
        return self.ready.get(key)

    def put(
        self, key: Hashable, value: object, *, size_bytes: int, edition: int, depends: tuple[Dependency, ...]
    ) -> None:
        """
        Keep *value*, unless the registry has moved on since it was read.

        Args:
            edition: where the registry stood before the value was read.
            depends: the documents that it shows.
        """
        size_bytes += ENTRY_OVERHEAD_BYTES
        with self._lock:
            if edition != self.edition or size_bytes > self._limit_bytes // 4:
                return
            if key in self._entries:
                self._take_out(key)
            self._entries[key] = (value, size_bytes, depends)
            self.ready[key] = value
            self.size_bytes += size_bytes
            for dependency in depends:
                self._dependents.setdefault(dependency, set()).add(key)
            self._make_room()

    def grow(self, key: Hashable, value: object, size_bytes: int) -> None:
        """Count *size_bytes* more for *value*, which has got a further form, if it is still kept under *key*."""
        with self._lock:
            entry = self._entries.get(key)
            if entry is not None and entry[0] is value:
                self._entries[key] = (value, entry[1] + size_bytes, entry[2])
                self.size_bytes += size_bytes
                self._make_room()

    def move(self, edition: int, touched: Iterable[Dependency] | None) -> None:
        """Go on to *edition*: drop what was made from the *touched* documents, or everything when None."""
        with self._lock:
            self.edition = edition
            if touched is None:
                self._entries.clear()
                self._dependents.clear()
                self.ready.clear()
                self.size_bytes = 0
                return
            for dependency in touched:
                for key in list(self._dependents.get(dependency, ())):
                    self._take_out(key)

    def _make_room(self) -> None:
        while self.size_bytes > self._limit_bytes:
            self._take_out(next(iter(self._entries)))

    def _take_out(self, key: Hashable) -> None:
        _, size_bytes, depends = self._entries.pop(key)
        del self.ready[key]
        self.size_bytes -= size_bytes
        for dependency in depends:
            keys = self._dependents[dependency]
            keys.discard(key)
            if not keys:
                del self._dependents[dependency]
