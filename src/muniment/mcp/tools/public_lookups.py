"""
The handlers of the public tools: each queries the reader that REST uses, and truncates the answer.

Source: tools, Public server; decisions, section 3.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final
from urllib.parse import quote, unquote

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp import provenance, whole_texts
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools import truncation
from muniment.schema.filters import MAX_VALUES, Criterion, Listing, ReversedRange
from muniment.schema.objects import Schema, registry_schema
from muniment.store.cache import Dependency
from muniment.store.published import KINDS
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader
from muniment.store.search import everything
from muniment.store.search.everything import COLLECTIONS, Everything

MAX_RESULTS: Final = 10
MAX_SHOWN: Final = 60
"""Characters of a value in an error."""
LISTINGS: Final = registry_schema("USD").listings  # the index supports only built-in fields


class PublicTools:
    """The handlers. Their answers link to the full data in the REST API."""

    def __init__(self, reader: Reader, base_url: str, schema: Schema) -> None:
        self.reader = self._reader = reader
        self._base_url = base_url
        self._api_url = f"{base_url}/api/v1"
        self._schema = schema

    def _url(self, path: str, key: object) -> str:
        return f"{self._api_url}/{path}/{quote(str(key), safe='')}"

    def _company_url(self, item: JSONMapping) -> str:
        return self._url("companies", item.get("id", ""))

    def _person_url(self, item: JSONMapping) -> str:
        return self._url("people", item.get("slug", ""))

    def _framework_url(self, item: JSONMapping) -> str:
        return self._url("frameworks", item.get("frameworkId", ""))

    def _page_url(self, kind: str, key: str) -> str:
        return f"{self._base_url}/{COLLECTIONS[kind]}/{quote(key, safe='')}"

    # ------------------------------------------------------------------ search and fetch

    def search(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return the best matches of all kinds; of a question that matches nothing, what is close.

        Raises:
            BadRequest: the query is blank.
        """
        query = everything.trimmed(arguments["query"])
        if not query:
            raise BadRequest("The query is blank.", "Call again with words of a name, a symbol, a domain or a topic.")

        def make() -> Marked:
            found = everything.search(self._reader, query, limit=MAX_RESULTS, listings=LISTINGS)
            results = found.results[:MAX_RESULTS]
            known = {(each.kind, each.key) for each in results}
            close = [pair for pair in found.closest if (pair[0], pair[1].id) not in known][: MAX_RESULTS - len(results)]
            listed = [
                *(self._result(each.kind, each.key, each.title, each.about) for each in results),
                *(self._result(kind, each.id, each.name, each.why) for kind, each in close),
            ]
            answer = {"results": listed, **({"hint": found.hint} if found.hint else {}), **_reading_of(found)}
            near = self._reader.documents([(kind, each.id) for kind, each in close])
            marks = [(each.kind, each.provenance) for each in results]
            marks += [(kind, document.provenance[0]) for (kind, _), document in near.items()]
            return provenance.of_several(msgspec.json.encode(answer), marks)

        # The same question may mean other days tomorrow.
        return self._cached(("mcp", "search", query, datetime.now(UTC).date()), KINDS, make, quick=False)

    def _result(self, kind: str, key: str, title: str, text: str) -> JSONMapping:
        return {"id": f"{kind}:{key}", "title": title, "url": self._page_url(kind, key), "text": text}

    def fetch(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return a document as a text.

        Raises:
            NotFound: there is no such document; the hint names the nearest ids.
        """
        kind, key = self._named(arguments["id"])

        def make() -> Marked:
            found = self._reader.document(kind, key)
            if found is None:
                raise self._unknown_id(kind, key)
            data = msgspec.json.decode(found.body)["data"]
            text = whole_texts.text_of(kind, data, self._schema)
            facts = data["company"] if kind == "company" else data
            answer = {
                "id": f"{kind}:{key}",
                "title": everything.title_of(facts),
                "text": text,
                "url": self._page_url(kind, key),
                "metadata": {"kind": kind, "updatedAt": facts["updatedAt"], "json": self._url(COLLECTIONS[kind], key)},
            }
            content = msgspec.json.encode(answer)
            while len(content) > truncation.BUDGET_BYTES:
                text = whole_texts.cut(text, len(text) * 3 // 4)
                content = msgspec.json.encode({**answer, "text": text})
            return provenance.of_published(content, kind, found.provenance)

        return self._cached(("mcp", "fetch", kind, key), (kind,), make, quick=False)

    def _named(self, text: str) -> tuple[str, str]:
        """Return the kind and the key that *text* names: as an id, the address of a page, or a slug alone."""
        text = text.strip()
        kind, mark, key = text.partition(":")
        if mark and kind in COLLECTIONS:
            return kind, key
        *_, collection, last = ("", *text.partition("?")[0].split("/"))
        for kind, name in COLLECTIONS.items():
            if collection == name:
                return kind, unquote(last)
        return next((kind for kind in KINDS if self._reader.document(kind, text)), KINDS[0]), text

    def _unknown_id(self, kind: str, key: str) -> NotFound:
        kinds = dict.fromkeys((kind, *KINDS))
        near = [f"{each}:{found}" for each in kinds for found in self._reader.nearest(each, key)][:3]
        meant = f"Did you mean {' or '.join(near)}? " if near else ""
        shown = f"{kind}:{key[:MAX_SLUG_CHARACTERS]}"
        return NotFound(f"There is no document {shown!r}.", f"{meant}Call search for valid ids.")

    # ------------------------------------------------------------------ lists

    def list_companies(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        full = arguments.get("detail") == "full"
        return self._list("company", arguments, self._company_url, drop=() if full else ("body",))

    def list_people(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        return self._list("person", arguments, self._person_url)

    def _list(
        self, kind: str, arguments: Arguments, url: Callable[[JSONMapping], str], drop: tuple[str, ...] = ()
    ) -> Marked | Awaitable[Marked]:
        query = query_of(LISTINGS[kind], arguments)
        names = tuple(arguments.get("facets", ()))

        def make() -> Marked:
            found = self._reader.page(kind, query)
            rest = {**truncation.paging(found), **found.guidance(), **self._facets(kind, query, names)}
            return provenance.of_list(truncation.items(found.items, rest, url, drop=drop), kind, found.provenance)

        quick = not names and self._reader.is_quick(query)
        return self._cached(("mcp", kind, query, drop, names), (kind,), make, quick=quick)

    def _facets(self, kind: str, query: ListQuery, names: tuple[str, ...]) -> JSONObject:
        return {"facets": self._reader.facets(kind, query, names).to_wire()} if names else {}

    def list_frameworks(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        query = query_of(LISTINGS["framework"], arguments)
        names = tuple(arguments.get("facets", ()))

        def make() -> Marked:
            found = self._reader.frameworks(query)
            body = found.body
            if names:
                body = body[:-1] + b"," + msgspec.json.encode(self._facets("framework", query, names))[1:]
            made = truncation.framework_items(body, self._framework_url, where=f"{self._api_url}/frameworks")
            return provenance.of_list(made, "framework", found.provenance)

        return self._cached(("mcp", "frameworks", query, names), ("framework",), make)

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
        self, key: tuple[object, ...], kinds: Iterable[str], make: Callable[[], Marked], *, quick: bool = True
    ) -> Marked | Awaitable[Marked]:
        """Return the cached answer about *kinds*, or make and cache it, off the event loop if that takes long."""
        cached: Marked | None = self._reader.answers.ready.get(key)
        if cached is not None:
            return cached

        def make_and_cache() -> Marked:
            version = self._reader.version
            made = make()
            self._cache(key, made, version, *((kind, "*") for kind in kinds))
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

    def _cache(self, key: tuple[object, ...], made: Marked, version: int, *shows: Dependency) -> None:
        size_bytes = len(made.content) + len(made.marks)
        self._reader.answers.put(key, made, size_bytes=size_bytes, version=version, depends=shows)


def query_of(listing: Listing, arguments: Arguments) -> ListQuery:
    """
    Return the query of a list tool's arguments.

    Raises:
        BadRequest: a value that the list does not know, a reversed range, or relevance without search words.
    """
    if arguments.get("sort") == "relevance" and not arguments.get("q"):
        raise BadRequest(
            'sort is "relevance" without q; relevance needs search words.',
            "Give q, or omit sort for the newest first.",
        )
    values = {name: _parsed(each, arguments[name]) for name, each in listing.criteria.items() if name in arguments}
    try:
        chosen = listing.select(values)
    except ReversedRange as error:
        raise BadRequest(f"{error}, so that nothing can be between them.", "Call again with both swapped.") from None
    return ListQuery(
        page=arguments.get("page", 1),
        page_size=arguments.get("pageSize", 25),
        q=arguments.get("q", ""),
        sort=arguments.get("sort"),
        **chosen._asdict(),
    )


def _parsed(of: Criterion, given: Any) -> Any:
    """Return the value of an argument, or a tuple of its values; None if there is none, which models give as ""."""
    texts = [_text(each) for each in (given if isinstance(given, list) else (given,))]
    values = []
    for text in filter(str.strip, texts):
        try:
            values.append(of.parse(text))
        except ValueError:
            message = f"The argument {of.name} takes {of.rule}, not {text[:MAX_SHOWN]!r}."
            raise BadRequest(message, f"Call again with {of.name} as {of.rule}.") from None
    if not values:
        return None
    if len(set(values)) > MAX_VALUES:
        raise BadRequest(f"The argument {of.name} has more than {MAX_VALUES} values.", "Ask for fewer, or in parts.")
    return tuple(sorted(set(values))) if of.several else values[0]


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.2f}"
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


def _reading_of(found: Everything) -> JSONObject:
    """Return the members that say as which filters a question was read, and which tool lists the rest."""
    if found.asked is None:
        return {}
    reading, total = found.asked
    filters = ", ".join(f"{name} {value!r}" for name, value in reading.parameters())
    tool = f"list_{COLLECTIONS[reading.kind]}"
    if total:
        hint = f"Read as a question: {tool} with {filters} lists all {total:,}."
    else:
        hint = f"Read as a question, {tool} with {filters} finds nothing. The results are those of the words."
    return {"reading": {**reading.to_wire(), "total": total}, "hint": hint}


class _Kind(msgspec.Struct):
    kind: str


class _Framework(msgspec.Struct):
    data: _Kind
