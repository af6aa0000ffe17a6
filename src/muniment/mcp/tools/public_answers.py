"""
What the handlers of the public tools have in common: the reader that REST uses, addresses, and the cache of answers.

Source: tools, Public server; decisions, section 3.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import Final
from urllib.parse import quote

from muniment.mcp.declarations import Marked
from muniment.schema.objects import Schema, registry_schema
from muniment.store.cache import Dependency
from muniment.store.reader import Reader
from muniment.store.search.everything import COLLECTIONS

LISTINGS: Final = registry_schema("USD").listings  # the index supports only built-in fields


class PublicAnswers:
    """Makes and caches answers, which link to the full data in the REST API."""

    def __init__(self, reader: Reader, base_url: str, schema: Schema) -> None:
        self.reader = reader
        self._base_url = base_url
        self._api_url = f"{base_url}/api/v1"
        self._schema = schema

    def _url(self, kind: str, key: object) -> str:
        return f"{self._api_url}/{COLLECTIONS[kind]}/{quote(str(key), safe='')}"

    def _page_url(self, kind: str, key: str) -> str:
        return f"{self._base_url}/{COLLECTIONS[kind]}/{quote(key, safe='')}"

    def _cached(
        self, key: tuple[object, ...], kinds: Iterable[str], make: Callable[[], Marked], *, quick: bool = True
    ) -> Marked | Awaitable[Marked]:
        """Return the cached answer about *kinds*, or make and cache it, off the event loop if that takes long."""
        cached: Marked | None = self.reader.answers.ready.get(key)
        if cached is not None:
            return cached

        def make_and_cache() -> Marked:
            version = self.reader.version
            made = make()
            self._cache(key, made, version, *((kind, "*") for kind in kinds))
            return made

        if quick:
            return make_and_cache()
        return asyncio.get_running_loop().run_in_executor(self.reader.pool, make_and_cache)

    def _cache(self, key: tuple[object, ...], made: Marked, version: int, *shows: Dependency) -> None:
        size_bytes = len(made.content) + len(made.marks)
        self.reader.answers.put(key, made, size_bytes=size_bytes, version=version, depends=shows)
