"""
What the handlers of the public tools have in common: the reader that REST uses, addresses, and the cache of answers.

Source: tools, Public server; decisions, section 3.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from urllib.parse import quote

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.problems import NotFound
from muniment.mcp.declarations import Marked, NotAtOnce
from muniment.schema.objects import Schema
from muniment.store.cache import Dependency
from muniment.store.reader import Reader
from muniment.store.search import names
from muniment.store.search.everything import COLLECTIONS
from muniment.store.search.names import Named


class PublicAnswers:
    """Makes and caches answers, which link to the full data in the REST API."""

    def __init__(self, reader: Reader, base_url: str, schema: Schema) -> None:
        self.reader = reader
        self._base_url = base_url
        self._api_url = f"{base_url}/api/v1"
        self._schema = schema
        self._listings = schema.listings

    def _url(self, kind: str, key: object) -> str:
        return f"{self._api_url}/{COLLECTIONS[kind]}/{quote(str(key), safe='')}"

    def _page_url(self, kind: str, key: str) -> str:
        return f"{self._base_url}/{COLLECTIONS[kind]}/{quote(key, safe='')}"

    def _named(self, kind: str, text: str) -> str | None:
        """Return the key of the only document with the name *text*."""
        with self.reader.snapshot() as (connection, _):
            found = names.named(connection, kind, text)
        return found[0].key if len(found) == 1 else None

    def _near(self, kind: str, text: str) -> list[Named]:
        """Return what *text*, which is no key, may mean."""
        with self.reader.snapshot() as (connection, _):
            return names.near(connection, kind, text)

    def _unknown(self, kind: str, text: str, where: str) -> NotFound:
        """Return the error for a *text* that names no document, or several; *where* finds others."""
        found = self._near(kind, text)
        meant = f"Did you mean {' or '.join(map(str, found))}? " if found else ""
        return NotFound(f"There is no {kind} {text[:MAX_SLUG_CHARACTERS]!r}.", f"{meant}{where}")

    def _cached(
        self,
        key: tuple[object, ...],
        kinds: Iterable[str],
        make: Callable[[], Marked],
        *,
        waits: bool = True,
        quick: bool = True,
    ) -> Marked | Awaitable[Marked]:
        """
        Return the cached answer about *kinds*, or make and cache it, off the event loop if that takes long.

        Raises:
            NotAtOnce: it takes long, and the caller does not wait.
        """
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
        if not waits:
            raise NotAtOnce
        return asyncio.get_running_loop().run_in_executor(self.reader.pool, make_and_cache)

    def _cache(self, key: tuple[object, ...], made: Marked, version: int, *shows: Dependency) -> None:
        size_bytes = len(made.content) + len(made.marks)
        self.reader.answers.put(key, made, size_bytes=size_bytes, version=version, depends=shows)
