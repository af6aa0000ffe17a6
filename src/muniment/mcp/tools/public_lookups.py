"""
The handlers of the public tools: each queries the reader that REST uses, and truncates the answer.

`PublicAnswers` is what they share: the reader, addresses and the cache of answers. `ChangeTools` answers
`changes_since` from the change feed: what was published, updated or unlisted, of every kind.

Source: tools, Public server; decisions, sections 2 and 3.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, Final
from urllib.parse import quote

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp.declarations import Arguments, Caller, Marked, NotAtOnce
from muniment.mcp.tools import answers
from muniment.mcp.tools.answers import FULL, Form, Shape
from muniment.schema.filters import MAX_VALUES, Chosen, Criterion, Listing, ReversedRange, parse_moment, values_at
from muniment.schema.objects import Schema
from muniment.schema.person import PERSON
from muniment.store.cache import Dependency
from muniment.store.published import ChangeRow, FeedAheadError, FeedGapError, change_rows, number_before
from muniment.store.queries import ListQuery
from muniment.store.reader import Found, Reader
from muniment.store.search import names
from muniment.store.search.everything import COLLECTIONS
from muniment.store.search.names import Named, names_of
from muniment.store.search.values import same_names, singular
from muniment.store.snapshot_state import changes_after

MAX_IDS: Final = 100
MAX_SHOWN: Final = 60
"""Characters of a value in an error."""
MAX_POSITIONS: Final = 5
"""Positions of a person in a list."""
POSITION_FILTERS: Final = {by.name: by for field in PERSON.fields if field.name == "positions" for by in field.filters}
_KEYS: Final = {"company": "id", "person": "slug", "framework": "frameworkId"}
_FINDING: Final = {
    "company": "Call list_companies with q (the id of an item is its slug).",
    "person": "Call list_people with q.",
    "framework": "Call list_frameworks for valid ones.",
}
"""Hints for finding a document, by its kind."""


class Shapes:
    """The shape in which the public tools show each kind."""

    def __init__(self, schema: Schema) -> None:
        self.bundle = Shape(schema.company, parts=answers.SHOWN_PARTS)
        self.person = Shape(schema.person, without=("companyCount",))
        self.framework = Shape(schema.framework)
        self.of_list = {
            "company": Shape(schema.company),
            "person": Shape(schema.person),
            "framework": Shape(schema.framework, without=("companyDescription", "topScores")),
        }


class _Kind(msgspec.Struct):
    kind: str


class _Framework(msgspec.Struct):
    data: _Kind


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


class PublicTools(PublicAnswers):
    """The handlers."""

    def __init__(self, reader: Reader, base_url: str, schema: Schema) -> None:
        super().__init__(reader, base_url, schema)
        self._shapes = Shapes(schema)

    # ------------------------------------------------------------------ lists

    def list_companies(self, arguments: Arguments, caller: Caller) -> Marked | Awaitable[Marked]:
        return self._list("company", arguments, caller)

    def list_people(self, arguments: Arguments, caller: Caller) -> Marked | Awaitable[Marked]:
        return self._list("person", arguments, caller)

    def _list(self, kind: str, arguments: Arguments, caller: Caller) -> Marked | Awaitable[Marked]:
        query, form = query_of(self._listings[kind], arguments), answers.form_of(arguments)
        counted, shape = tuple(arguments.get("facets", ())), self._shapes.of_list[kind]

        def make() -> Marked:
            found = self.reader.page(kind, self._with_keys(kind, query))
            read: list[JSONObject] = [msgspec.json.decode(item) for item in found.items]
            if kind == "person":
                self._show_positions(read, query, form)
            items = shape.listed(read, form)
            rest = {**answers.paging(found), **found.guidance(), **self._facets(kind, query, counted)}
            content = answers.page(items, rest, self._item_url(kind), named=True)
            return answers.marked_list(content, kind, found.provenance)

        quick = not counted and self.reader.is_quick(query) and "positions" not in (form.fields or ())
        return self._cached(("mcp", kind, query, form, counted), (kind,), make, waits=caller.waits, quick=quick)

    def _with_keys(self, kind: str, query: ListQuery) -> ListQuery:
        """Return *query* with the keys of documents in place of their exact names."""
        if query.ids is None:
            return query
        with self.reader.snapshot() as (connection, _):
            known = names.names_of(connection, ((kind, each) for each in query.ids))
        found = {each: self._named(kind, each) or each for each in query.ids if (kind, each) not in known}
        ids = tuple(dict.fromkeys(found.get(each, each) for each in query.ids))
        return msgspec.structs.replace(query, ids=ids)

    def _show_positions(self, people: list[JSONObject], query: ListQuery, form: Form) -> None:
        """
        Add to each of *people* the positions that the filters chose, some of them; all, if the call names the field.

        Those come first that all filters chose.
        """
        filters = [condition for condition in query.filters if condition.name in POSITION_FILTERS]
        is_wanted = bool(filters) if form.fields is None else "positions" in form.fields
        if not is_wanted:
            return
        profiles = self.reader.documents([("person", person["slug"]) for person in people])
        for person in people:
            positions = _positions_of(profiles.get(("person", person["slug"])))
            if filters:
                positions = _chosen_positions(positions, filters)
            person["positions"] = positions[:MAX_POSITIONS]
            if len(positions) > MAX_POSITIONS:
                person["positionsTotal"] = len(positions)

    def _item_url(self, kind: str) -> Callable[[JSONMapping], str]:
        return lambda item: self._url(kind, item.get(_KEYS[kind], ""))

    def _facets(self, kind: str, query: ListQuery, names: tuple[str, ...]) -> JSONObject:
        return {"facets": self.reader.facets(kind, query, names).to_wire()} if names else {}

    def list_frameworks(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        return self._frameworks(arguments)

    def _frameworks(self, arguments: Arguments, none: str = "") -> Marked | Awaitable[Marked]:
        """
        Return a list of frameworks.

        Args:
            none: the hint of an empty list, for a tool without all filters of the list.
        """
        query, form = query_of(self._listings["framework"], arguments), answers.form_of(arguments)
        counted, shape = tuple(arguments.get("facets", ())), self._shapes.of_list["framework"]

        def make() -> Marked:
            found = self.reader.frameworks(query)
            rest: JSONObject = {"nextPage": None, **msgspec.json.decode(found.body)}
            items = shape.listed(rest.pop("data"), form)
            rest = {"total": len(items), **rest}
            if none and not items:
                rest["hint"] = none
            rest |= self._facets("framework", query, counted)
            where = f"{self._api_url}/frameworks"
            made = answers.framework_items(items, rest, self._item_url("framework"), where=where)
            return answers.marked_list(made, "framework", found.provenance)

        return self._cached(("mcp", "frameworks", query, form, counted, none), ("framework",), make)

    # ------------------------------------------------------------------ details

    def get_company(self, arguments: Arguments, _: Caller) -> Marked:
        parts, form = arguments.get("parts"), answers.form_of(arguments)
        window = arguments.get("offset", 0), arguments.get("limit", answers.MAX_LISTED)
        return self.company(arguments["slug"], form, None if parts is None else frozenset(parts), *window)

    def company(
        self,
        slug: str,
        form: Form = FULL,
        parts: frozenset[str] | None = None,
        offset: int = 0,
        limit: int = answers.MAX_LISTED,
    ) -> Marked:
        def fit(data: JSONObject, url: str) -> bytes:
            shown = self._shapes.bundle.bundle(data, form, parts, of=answers.PARTS)
            return answers.bundle(shown, url, offset=offset, limit=limit)

        return self._detail("company", slug, fit, (form, parts, offset, limit))

    def get_person(self, arguments: Arguments, _: Caller) -> Marked:
        return self.person(arguments["slug"], answers.form_of(arguments))

    def person(self, slug: str, form: Form = FULL) -> Marked:
        def fit(data: JSONObject, url: str) -> bytes:
            return answers.record(self._shapes.person.whole(data, form), url, "positions")

        return self._detail("person", slug, fit, form)

    def get_framework(self, arguments: Arguments, _: Caller) -> Marked:
        return self.framework(arguments["frameworkId"], answers.form_of(arguments))

    def framework(self, framework_id: str, form: Form = FULL) -> Marked:
        def fit(data: JSONObject, url: str) -> bytes:
            return answers.record(self._shapes.framework.whole(data, form), url)

        return self._detail("framework", framework_id, fit, form)

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
        name = "program" if kind == "program" else "scoring framework"

        def handler(arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
            none = f"There is no {name}."
            if arguments.get("isOpen") is not None:
                state = "open" if arguments["isOpen"] else "closed"
                none = f"No {name} is {state}. Leave out isOpen for all."
            return self._frameworks({**arguments, "kind": kind}, none)

        return handler

    def get_registry_stats(self, _: Arguments, __: Caller) -> bytes:
        return self.reader.stats().body

    def slugs(self, kind: str) -> Callable[[str, int], list[str]]:
        return lambda prefix, limit: self.reader.keys(kind, prefix, limit)

    # ------------------------------------------------------------------ shared

    def _detail(self, kind: str, key: str, fit: Callable[[JSONObject, str], bytes], form: tuple[object, ...]) -> Marked:
        """Return a document by its key, or by the exact name that it alone has; the error suggests similar ones."""
        cached: Marked | None = self.reader.answers.ready.get(("mcp", kind, key, form))
        if cached is not None:
            return cached
        found = self.reader.document(kind, key)
        if found is None:
            meant = self._named(kind, key)
            if meant is None or meant == key:
                raise self._unknown(kind, key, _FINDING[kind])
            return self._detail(kind, meant, fit, form)
        data = msgspec.json.decode(found.body)["data"]
        made = answers.marked_published(fit(data, self._url(kind, key)), kind, found.provenance)
        self._cache(("mcp", kind, key, form), made, found.version, (kind, key))
        return made


def places(positions: list[JSONObject], by: Chosen) -> list[int]:
    """Return the places of the *positions* for which a filter finds their person."""
    declared = POSITION_FILTERS[by.name]
    if declared.key:
        keyed = {*by.values}
        found = [n for n, row in enumerate(positions) if not keyed.isdisjoint(values_at(row, declared.key))]
        if found:
            return found
    asked = [f" {form} " for each in by.values for form in same_names(by.name, each)]

    def is_meant(value: str) -> bool:
        text = f" {singular(value)} "
        if by.in_text:
            return any(name in text for name in asked)
        return text in asked

    return [n for n, row in enumerate(positions) if any(map(is_meant, values_at(row, declared.member)))]


def _positions_of(profile: Found | None) -> list[JSONObject]:
    if profile is None:
        return []
    return msgspec.json.decode(profile.body)["data"].get("positions") or []


def _chosen_positions(positions: list[JSONObject], filters: list[Chosen]) -> list[JSONObject]:
    """Return the positions that a filter chose; those that most of the filters did come first."""
    hits: Counter[int] = Counter()
    for condition in filters:
        hits.update(places(positions, condition))
    order = sorted(hits, key=lambda place: (-hits[place], place))
    return [positions[place] for place in order]


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
    ids = arguments.get("ids")
    return ListQuery(
        page=arguments.get("page", 1),
        page_size=arguments.get("pageSize", 25 if ids is None else MAX_IDS),
        ids=None if ids is None else tuple(dict.fromkeys(ids)),
        q=arguments.get("q", ""),
        sort=arguments.get("sort"),
        **chosen._asdict(),
    )


def _parsed(of: Criterion, given: Any) -> Any:
    """Return the value of an argument, or a tuple of its values; None if there is none, which models give as ""."""
    entries = given if isinstance(given, list) else (given,)
    texts = [_text(entry) for entry in entries]
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
        raise BadRequest(
            f"The argument {of.name} has more than {MAX_VALUES} values.",
            f"Call again with at most {MAX_VALUES} of them, then with the others.",
        )
    return tuple(sorted(set(values))) if of.several else values[0]


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


MAX_ENTRIES: Final = 100
_MAX_SHOWN: Final = 60
_MAX_DIGITS: Final = 15
_PUBLISHED: Final = "published"
_UPDATED: Final = "updated"


class ChangeTools(PublicAnswers):
    """The handler."""

    def changes_since(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return the changes since a time, or since an earlier answer: each document once, with all that changed of it.

        Raises:
            BadRequest: `since` is neither, or the feed no longer goes back that far.
        """
        since: str = arguments["since"].strip()
        is_number = since.isdecimal() and len(since) <= _MAX_DIGITS
        number = int(since) if is_number else None
        at = "" if number is not None else _moment(since)

        def make() -> Marked:
            with self.reader.snapshot() as (connection, state):
                after = number_before(connection, at) if number is None else number
                try:
                    found = changes_after(connection, state, after, MAX_ENTRIES, None, is_level=True)
                except (FeedGapError, FeedAheadError):
                    raise BadRequest(
                        f"since is {since}, which is no nextSince of this feed, or one that is too old.",
                        f"Call again with a date or time; the latest nextSince is {state.edition}.",
                    ) from None
                oldest = change_rows(connection, "ORDER BY sequence LIMIT 1") if at else []
                summed = _sum_of_changes(found.rows)
                known = names_of(connection, summed)
            rows = [_shown_change(row, known.get((row.kind, row.key))) for row in summed.values()]
            left = found.edition - found.next_after
            answer: JSONObject = {"data": rows, "nextSince": str(found.next_after), "left": left}
            if oldest and oldest[0].at >= at and oldest[0].sequence > 1:
                answer["hint"] = f"Earlier changes than those of {oldest[0].at} are no longer recorded."
            named = self.reader.documents([name for name in summed if name in known])
            marks = [(kind, document.provenance[0]) for (kind, _), document in named.items()]
            return answers.marked_several(msgspec.json.encode(answer), marks)

        return self._cached(("mcp", "changes", since), ("*",), make)


def _sum_of_changes(rows: Iterable[ChangeRow]) -> dict[tuple[str, str], ChangeRow]:
    """
    Return one entry for each document: its latest, with the members that any of its entries changed.

    A document that was published meanwhile is new to the reader, whatever was changed afterwards. Where an update does
    not say what it changed, the sum is unknown too.
    """
    found: dict[tuple[str, str], ChangeRow] = {}
    for row in rows:
        former = found.get((row.kind, row.key))
        if former is not None and row.change == _UPDATED:
            if former.change == _PUBLISHED:
                row = row._replace(change=_PUBLISHED, fields=None)  # noqa: PLW2901 - the sum takes its place
            elif former.change == _UPDATED:
                fields = _both(former.fields, row.fields)
                row = row._replace(fields=fields)  # noqa: PLW2901 - as above
        found[row.kind, row.key] = row
    return found


def _shown_change(row: ChangeRow, name: str | None) -> JSONObject:
    change: JSONObject = {"kind": row.kind, "id": row.key}
    if name is not None:
        change["name"] = name
    change["change"] = row.change
    change["at"] = row.at
    if row.fields is not None:
        change["fields"] = row.fields
    return change


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the members of two changes, in the order in which they were changed first; None if one is unknown."""
    if one is None or other is None:
        return None
    return tuple(dict.fromkeys((*one, *other)))


def _moment(since: str) -> str:
    try:
        return parse_moment(since)
    except ValueError:
        raise BadRequest(
            f"since takes a date, an RFC 3339 time or the nextSince of an earlier answer, not {since[:_MAX_SHOWN]!r}.",
            "Call again with since as 2026-01-31, for example.",
        ) from None
