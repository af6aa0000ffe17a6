"""
The handlers of the public tools: each queries the reader that REST uses, and truncates the answer.

Source: tools, Public server; decisions, section 3.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar
from urllib.parse import quote

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp import provenance
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools import truncation
from muniment.store.cache import Dependency
from muniment.store.queries import CompanyQuery, PeopleQuery
from muniment.store.reader import Reader

Query = TypeVar("Query", CompanyQuery, PeopleQuery)


class PublicTools:
    """The handlers. Their answers link to the full data in the REST API."""

    def __init__(self, reader: Reader, base_url: str) -> None:
        self._reader = reader
        self._api_url = f"{base_url}/api/v1"

    def _url(self, path: str, key: object) -> str:
        return f"{self._api_url}/{path}/{quote(str(key), safe='')}"

    def _company_url(self, item: JSONMapping) -> str:
        return self._url("companies", item.get("id", ""))

    def _person_url(self, item: JSONMapping) -> str:
        return self._url("people", item.get("slug", ""))

    def _framework_url(self, item: JSONMapping) -> str:
        return self._url("frameworks", item.get("frameworkId", ""))

    # ------------------------------------------------------------------ lists

    def list_companies(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return a page of companies.

        Raises:
            BadRequest: sorted by relevance without search words, as in REST.
        """
        if arguments.get("sort") == "relevance" and not arguments.get("q"):
            raise BadRequest(
                'sort is "relevance" without q; relevance needs search words.',
                "Give q, or omit sort for the newest first.",
            )
        query = _query(arguments, CompanyQuery)
        full = arguments.get("detail") == "full"

        def make() -> Marked:
            found = self._reader.companies(query)
            drop = () if full else ("body",)
            made = truncation.items(
                found.items, {**truncation.paging(found), **found.guidance()}, self._company_url, drop=drop
            )
            return provenance.of_list(made, "company", found.provenance)

        return self._cached(("mcp", query, full), "company", make, quick=self._reader.is_quick(query))

    def list_people(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        query = _query(arguments, PeopleQuery)

        def make() -> Marked:
            found = self._reader.people(query)
            made = truncation.items(found.items, {**truncation.paging(found), **found.guidance()}, self._person_url)
            return provenance.of_list(made, "person", found.provenance)

        return self._cached(("mcp", query), "person", make, quick=self._reader.is_quick(query))

    def list_frameworks(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        kind = arguments.get("kind")

        def make() -> Marked:
            found = self._reader.frameworks(kind)
            made = truncation.framework_items(found.body, self._framework_url, where=f"{self._api_url}/frameworks")
            return provenance.of_list(made, "framework", found.provenance)

        return self._cached(("mcp", "frameworks", kind), "framework", make)

    # ------------------------------------------------------------------ details

    def get_company(self, arguments: Arguments, _: Caller) -> Marked:
        parts = arguments.get("parts")
        return self.company(arguments["slug"], None if parts is None else frozenset(parts))

    def company(self, slug: str, parts: frozenset[str] | None = None) -> Marked:
        def fit(body: bytes) -> bytes:
            return truncation.bundle(body, self._url("companies", slug), parts)

        where = "list_companies (the id of an item is its slug)"
        return self._detail("company", slug, fit, where, parts)

    def get_person(self, arguments: Arguments, _: Caller) -> Marked:
        return self.person(arguments["slug"])

    def person(self, slug: str) -> Marked:
        def fit(body: bytes) -> bytes:
            return truncation.record(body, self._url("people", slug), "positions")

        return self._detail("person", slug, fit, "list_people")

    def get_framework(self, arguments: Arguments, _: Caller) -> Marked:
        return self.framework(arguments["frameworkId"])

    def framework(self, framework_id: str) -> Marked:
        def fit(body: bytes) -> bytes:
            return truncation.record(body, self._url("frameworks", framework_id))

        return self._detail("framework", framework_id, fit, "list_frameworks")

    def get_framework_of(self, kind: str) -> Callable[[Arguments, Caller], Marked]:
        other, tool = ("program", "program") if kind == "score" else ("scoring framework", "scoring")

        def handler(arguments: Arguments, caller: Caller) -> Marked:
            found = self.get_framework(arguments, caller)
            if msgspec.json.decode(found.content, type=_Framework).data.kind != kind:
                framework_id = arguments["frameworkId"]
                hint = f"Call get_{tool}_framework with frameworkId {framework_id}, or get_framework."
                raise NotFound(f"{framework_id} is a {other}.", hint)
            return found

        return handler

    def list_frameworks_of(self, kind: str) -> Callable[[Arguments, Caller], Marked | Awaitable[Marked]]:
        return lambda _, caller: self.list_frameworks({"kind": kind}, caller)

    def get_registry_stats(self, _: Arguments, __: Caller) -> bytes:
        return self._reader.stats().body

    def slugs(self, kind: str) -> Callable[[str, int], list[str]]:
        return lambda prefix, limit: self._reader.keys(kind, prefix, limit)

    # ------------------------------------------------------------------ shared

    def _cached(
        self, key: tuple[object, ...], kind: str, make: Callable[[], Marked], *, quick: bool = True
    ) -> Marked | Awaitable[Marked]:
        """Return the cached list, or create and cache it, off the event loop if that takes long."""
        cached: Marked | None = self._reader.answers.ready.get(key)
        if cached is not None:
            return cached

        def make_and_cache() -> Marked:
            version = self._reader.version
            made = make()
            self._cache(key, made, version, (kind, "*"))
            return made

        if quick:
            return make_and_cache()
        return asyncio.get_running_loop().run_in_executor(self._reader.pool, make_and_cache)

    def _detail(
        self, kind: str, key: str, fit: Callable[[bytes], bytes], where: str, form: frozenset[str] | None = None
    ) -> Marked:
        """Return a document; the error for an unknown key suggests similar ones."""
        cached: Marked | None = self._reader.answers.ready.get(("mcp", kind, key, form))
        if cached is not None:
            return cached
        found = self._reader.document(kind, key)
        if found is None:
            near = self._reader.nearest(kind, key)
            meant = f"Did you mean {' or '.join(near)}? " if near else ""
            raise NotFound(f"There is no {kind} {key[:MAX_SLUG_CHARACTERS]!r}.", f"{meant}Call {where} for valid ones.")
        made = provenance.of_published(fit(found.body), kind, found.provenance)
        self._cache(("mcp", kind, key, form), made, found.version, (kind, key))
        return made

    def _cache(self, key: tuple[object, ...], made: Marked, version: int, shows: Dependency) -> None:
        size_bytes = len(made.content) + len(made.marks)
        self._reader.answers.put(key, made, size_bytes=size_bytes, version=version, depends=(shows,))


def _query(arguments: Arguments, kind: type[Query]) -> Query:
    """Return the query of a list; its fields are the arguments, in snake case."""
    names = {"pageSize": "page_size", "hasToken": "has_token"}
    return msgspec.convert({names.get(name, name): value for name, value in arguments.items()}, kind)


class _Kind(msgspec.Struct):
    kind: str


class _Framework(msgspec.Struct):
    data: _Kind
