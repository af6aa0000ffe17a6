"""
The handlers of the public tools: each queries the reader that REST uses, and truncates the answer.

Source: tools, Public server; decisions, section 3.
"""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.mcp import provenance
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools import lean, truncation
from muniment.mcp.tools.lean import FULL, Form, Shape
from muniment.mcp.tools.public_answers import LISTINGS, PublicAnswers
from muniment.schema.filters import MAX_VALUES, Criterion, Listing, ReversedRange
from muniment.schema.objects import Schema
from muniment.store.queries import ListQuery
from muniment.store.reader import Reader

MAX_IDS: Final = 100
MAX_SHOWN: Final = 60
"""Characters of a value in an error."""
_KEYS: Final = {"company": "id", "person": "slug", "framework": "frameworkId"}


class Shapes:
    """How the public tools show each kind."""

    def __init__(self, schema: Schema) -> None:
        self.bundle = Shape(schema.company, parts=truncation.SHOWN_PARTS)
        self.person = Shape(schema.person, without=("companyCount",))
        self.framework = Shape(schema.framework)
        self.of_list = {
            "company": Shape(schema.company),
            "person": Shape(schema.person, without=("positions",)),
            "framework": Shape(schema.framework, without=("companyDescription",)),
        }


class PublicTools(PublicAnswers):
    """The handlers."""

    def __init__(self, reader: Reader, base_url: str, schema: Schema) -> None:
        super().__init__(reader, base_url, schema)
        self._shapes = Shapes(schema)

    # ------------------------------------------------------------------ lists

    def list_companies(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        return self._list("company", arguments)

    def list_people(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        return self._list("person", arguments)

    def _list(self, kind: str, arguments: Arguments) -> Marked | Awaitable[Marked]:
        query, form = query_of(LISTINGS[kind], arguments), lean.form_of(arguments)
        names, shape = tuple(arguments.get("facets", ())), self._shapes.of_list[kind]

        def make() -> Marked:
            found = self.reader.page(kind, query)
            items = shape.listed([msgspec.json.decode(item) for item in found.items], form)
            rest = {**truncation.paging(found), **found.guidance(), **self._facets(kind, query, names)}
            content = truncation.page(items, rest, self._item_url(kind), named=True)
            return provenance.of_list(content, kind, found.provenance)

        quick = not names and self.reader.is_quick(query)
        return self._cached(("mcp", kind, query, form, names), (kind,), make, quick=quick)

    def _item_url(self, kind: str) -> Callable[[JSONMapping], str]:
        return lambda item: self._url(kind, item.get(_KEYS[kind], ""))

    def _facets(self, kind: str, query: ListQuery, names: tuple[str, ...]) -> JSONObject:
        return {"facets": self.reader.facets(kind, query, names).to_wire()} if names else {}

    def list_frameworks(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        query, form = query_of(LISTINGS["framework"], arguments), lean.form_of(arguments)
        names, shape = tuple(arguments.get("facets", ())), self._shapes.of_list["framework"]

        def make() -> Marked:
            found = self.reader.frameworks(query)
            rest: JSONObject = {"nextPage": None, **msgspec.json.decode(found.body)}
            items = shape.listed(rest.pop("data"), form)
            rest |= self._facets("framework", query, names)
            where = f"{self._api_url}/frameworks"
            made = truncation.framework_items(items, rest, self._item_url("framework"), where=where)
            return provenance.of_list(made, "framework", found.provenance)

        return self._cached(("mcp", "frameworks", query, form, names), ("framework",), make)

    # ------------------------------------------------------------------ details

    def get_company(self, arguments: Arguments, _: Caller) -> Marked:
        parts, form = arguments.get("parts"), lean.form_of(arguments)
        return self.company(
            arguments["slug"], form, None if parts is None else frozenset(parts), arguments.get("offset", 0)
        )

    def company(self, slug: str, form: Form = FULL, parts: frozenset[str] | None = None, offset: int = 0) -> Marked:
        def fit(data: JSONObject) -> bytes:
            shown = self._shapes.bundle.bundle(data, form, parts, of=truncation.PARTS)
            return truncation.bundle(shown, self._url("company", slug), offset=offset)

        where = "list_companies (the id of an item is its slug)"
        return self._detail("company", slug, fit, where, (form, parts, offset))

    def get_person(self, arguments: Arguments, _: Caller) -> Marked:
        return self.person(arguments["slug"], lean.form_of(arguments))

    def person(self, slug: str, form: Form = FULL) -> Marked:
        def fit(data: JSONObject) -> bytes:
            return truncation.record(self._shapes.person.whole(data, form), self._url("person", slug), "positions")

        return self._detail("person", slug, fit, "list_people", form)

    def get_framework(self, arguments: Arguments, _: Caller) -> Marked:
        return self.framework(arguments["frameworkId"], lean.form_of(arguments))

    def framework(self, framework_id: str, form: Form = FULL) -> Marked:
        def fit(data: JSONObject) -> bytes:
            return truncation.record(self._shapes.framework.whole(data, form), self._url("framework", framework_id))

        return self._detail("framework", framework_id, fit, "list_frameworks", form)

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
        return lambda arguments, caller: self.list_frameworks({**arguments, "kind": kind}, caller)

    def get_registry_stats(self, _: Arguments, __: Caller) -> bytes:
        return self.reader.stats().body

    def slugs(self, kind: str) -> Callable[[str, int], list[str]]:
        return lambda prefix, limit: self.reader.keys(kind, prefix, limit)

    # ------------------------------------------------------------------ shared

    def _detail(
        self, kind: str, key: str, fit: Callable[[JSONObject], bytes], where: str, form: tuple[object, ...]
    ) -> Marked:
        """Return a document; the error for an unknown key suggests similar ones."""
        cached: Marked | None = self.reader.answers.ready.get(("mcp", kind, key, form))
        if cached is not None:
            return cached
        found = self.reader.document(kind, key)
        if found is None:
            near = self.reader.nearest(kind, key)
            meant = f"Did you mean {' or '.join(near)}? " if near else ""
            raise NotFound(f"There is no {kind} {key[:MAX_SLUG_CHARACTERS]!r}.", f"{meant}Call {where} for valid ones.")
        made = provenance.of_published(fit(msgspec.json.decode(found.body)["data"]), kind, found.provenance)
        self._cache(("mcp", kind, key, form), made, found.version, (kind, key))
        return made


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


class _Kind(msgspec.Struct):
    kind: str


class _Framework(msgspec.Struct):
    data: _Kind
