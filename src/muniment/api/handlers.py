"""The handlers of the REST routes: each queries the reader and returns a finished answer."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from muniment.api.parameters import LISTINGS, MAX_IDS, counted, list_query, of_collection, selected, truncated
from muniment.api.responses import Answer, declared_licence, link_line
from muniment.kernel.ids import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.schema.filters import Criterion, Listing
from muniment.store.cache import Dependency
from muniment.store.change_feed import FeedAheadError, FeedDivergedError, FeedGapError
from muniment.store.exports.exports import Exports
from muniment.store.exports.files import ExportFile, latest_name
from muniment.store.published_document import KINDS
from muniment.store.queries import CursorError, ListQuery
from muniment.store.reader import Found, ListPage, Reader
from muniment.store.search import everything
from muniment.store.search.everything import COLLECTIONS

V1: Final = "/api/v1"
SEARCH_LIMIT: Final = 8
"""Results of each kind, unless the request says how many."""


class Context(NamedTuple):
    """
    The dependencies of handlers: the reader, the exports, and the instance's public URL or an empty text.

    Args:
        listings: the lists by kind, with declared fields.
    """

    reader: Reader
    exports: Exports
    base_url: str
    listings: Mapping[str, Listing] = LISTINGS


class Result(NamedTuple):
    """An answer with the version of the file that it was read from and the documents that it depends on."""

    answer: Answer
    version: int
    depends: tuple[Dependency, ...]


Values = JSONObject
Handler = Callable[[Context, str, Values, bytes], Result]

_REQUIRED_MEMBERS = {"company": ("id", "name"), "person": ("name", "slug")}


def list_companies(context: Context, path: str, values: Values, headers: bytes) -> Result:
    return _list(context, "company", path, values, headers)


def list_people(context: Context, path: str, values: Values, headers: bytes) -> Result:
    return _list(context, "person", path, values, headers)


def _list(context: Context, kind: str, path: str, values: Values, headers: bytes) -> Result:
    query = list_query(context.listings[kind], path, values)
    names = counted(context.listings[kind], values)
    with _cursor_of(path):
        page = context.reader.page(kind, query)
    facets = {"facets": context.reader.facets(kind, query, names).to_wire()} if names else {}
    items = page.items
    if values["fields"] is not None:
        kept = frozenset((*_REQUIRED_MEMBERS[kind], *values["fields"]))
        items = [_sparse(item, kept) for item in items]
    pagination: dict[str, int | str] = {**page.to_wire()}
    if page.next_cursor is not None:
        pagination["nextCursor"] = page.next_cursor
    rest = msgspec.json.encode({"pagination": pagination, **page.guidance(), **facets})
    body = b'{"data":[%s],%s' % (b",".join(items), rest[1:])
    lines = _page_links(context.listings[kind], path, values, page) + headers
    return _result(body, page.modified_at, lines, page.version, (kind, "*"))


def get_facets(context: Context, path: str, values: Values, headers: bytes) -> Result:
    """Return how many of what a query finds have each value of each filter."""
    kind = of_collection(values["list"])
    listing = context.listings[kind]
    query = ListQuery(q=values["q"] or "", **selected(listing, path, values))
    names = listing.counted if values["facets"] is None else counted(listing, values)
    found = context.reader.facets(kind, query, names)
    body = msgspec.json.encode({"data": found.to_wire(), "total": found.total})
    return _result(body, found.modified_at, headers, found.version, (kind, "*"))


@contextmanager
def _cursor_of(path: str) -> Iterator[None]:
    """Turn an invalid cursor into a parameter error."""
    try:
        yield
    except CursorError as error:
        raise BadRequest(
            f"cursor {error}; it takes the pagination.nextCursor of an earlier page.",
            f"Start again without it: {path}?pageSize=25",
        ) from None


def _result(body: bytes, modified_at: str, headers: bytes, version: int, *depends: Dependency) -> Result:
    return Result(Answer(body, digest(body).encode(), modified_at, headers), version, depends)


def _sparse(item: bytes, kept: frozenset[str]) -> bytes:
    members = msgspec.json.decode(item, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in members.items() if name in kept})


def _page_links(listing: Listing, path: str, values: Values, page: ListPage) -> bytes:
    """Return the links to related pages, with all other parameters unchanged."""
    own = {"page", "pageSize", "cursor"}
    given = [(name, value) for name, value in values.items() if value is not None and name not in own]
    kept = [(name, text) for name, value in given for text in _query_texts(listing.criteria.get(name), value)]
    rest = urlencode([("pageSize", page.page_size), *kept], quote_via=quote)

    def address(place: int | str, name: str = "page") -> str:
        return f"{path}?{name}={place}&{rest}"  # a cursor is URL-safe base64

    relations = [("first", address(1))]
    if values["cursor"] is not None:
        if page.next_cursor is not None:
            relations.append(("next", address(page.next_cursor, "cursor")))
        return link_line(relations)
    if page.previous_page:
        relations.append(("prev", address(page.previous_page)))
    if page.next_page:
        relations.append(("next", address(page.next_page)))
    return link_line([*relations, ("last", address(page.page_count))])


def _query_texts(of: Criterion | None, value: Any) -> list[str]:
    """Return the values of a parameter as a client would give them: repeated, or separated by commas."""
    if of is not None:
        values = value if isinstance(value, tuple) else (value,)
        return [of.write(entry) for entry in values]
    if isinstance(value, tuple):
        return [",".join(part.replace(",", "\\,") for part in value)]
    return [str(value)]


def search(context: Context, _path: str, values: Values, headers: bytes) -> Result:
    """Return the results of a search over all kinds, or over one."""
    kinds = KINDS if values["kind"] is None else (values["kind"],)
    limit = values["limit"] or SEARCH_LIMIT
    found = everything.search(context.reader, values["q"], limit=limit, kinds=kinds)
    totals = {COLLECTIONS[kind]: total for kind, total in found.totals.items()}
    why = everything.why(context.reader, values["q"], found)
    data = [_search_result(context, result, matched) for result, matched in zip(found.results, why, strict=True)]
    body = msgspec.json.encode({"data": data, "totals": totals, **found.guidance()})
    return _result(body, found.modified_at, headers, found.version, *((kind, "*") for kind in kinds))


def _search_result(context: Context, result: everything.Result, matched: str) -> JSONObject:
    collection, key = result.path
    item = result.item
    shown = {name: item[name] for name in ("symbol", "type") if item.get(name)} if result.kind == "company" else {}
    logo = item.get("logo")
    hosted = logo.get("url") if isinstance(logo, dict) else None
    picture = hosted or item.get("icon") or item.get("picture")
    return {
        "kind": result.kind,
        "id": key,
        "name": result.name,
        "url": f"{context.base_url}/{collection}/{quote(key, safe='')}",
        "summary": result.summary,
        **({"matched": matched} if matched else {}),
        **shown,
        **({"picture": picture} if picture else {}),
    }


def _detail(kind: str, context: Context, key: str, _values: Values, headers: bytes) -> Result:
    found = context.reader.document(kind, key)
    if found is None:
        raise _unknown(context, kind, key)
    return _stored(found, headers, (kind, key))


get_company = partial(_detail, "company")
get_person = partial(_detail, "person")
get_framework = partial(_detail, "framework")


def _stored(found: Found, headers: bytes, *depends: Dependency) -> Result:
    return Result(Answer(found.body, found.etag.encode(), found.modified_at, headers), found.version, depends)


def _unknown(context: Context, kind: str, key: str) -> NotFound:
    """Return the error for an unknown key, with similar ones."""
    noun = "frameworkId" if kind == "framework" else "slug"
    member = "id" if kind == "company" else noun
    near = context.reader.nearest(kind, key[:MAX_IDS])
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return NotFound(
        f'There is no {kind} with the {noun} "{truncated(key)}".',
        f"GET {V1}/{COLLECTIONS[kind]} lists all; the {member} of each item is its {noun}.{meant}",
    )


def list_frameworks(context: Context, path: str, values: Values, headers: bytes) -> Result:
    """Return all frameworks, or those that match the search words and the filters."""
    query = ListQuery(q=values["q"] or "", **selected(context.listings["framework"], path, values))
    found, names = context.reader.frameworks(query), counted(context.listings["framework"], values)
    if not names:
        return _stored(found, headers, ("framework", "*"))
    facets = msgspec.json.encode({"facets": context.reader.facets("framework", query, names).to_wire()})
    return _result(found.body[:-1] + b"," + facets[1:], found.modified_at, headers, found.version, ("framework", "*"))


def get_stats(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    return _stored(context.reader.stats(), headers, ("company", "*"), ("person", "*"), ("framework", "*"))


def list_cap_table(context: Context, key: str, values: Values, headers: bytes) -> Result:
    """Return a page of a company's token holders."""
    found = context.reader.cap_table(key, values["page"] or 1, values["pageSize"] or 25)
    if found is None:
        raise _unknown(context, "company", key)
    next_page = msgspec.json.encode(found.next_page)
    body = b'{"data":[%s],"total":%d,"nextPage":%s}' % (b",".join(found.items), found.total, next_page)
    return _result(body, found.modified_at, headers, found.version, ("company", key))


def list_scores(context: Context, key: str, values: Values, headers: bytes) -> Result:
    """Return a page of the published scores of a framework."""
    if context.reader.document("framework", key) is None:
        raise _unknown(context, "framework", key)
    found = context.reader.scores(key, values["page"] or 1, values["pageSize"] or 25)
    next_page = msgspec.json.encode(found.next_page)
    body = b'{"data":[%s],"total":%d,"nextPage":%s}' % (b",".join(found.items), found.total, next_page)
    return _result(body, found.modified_at, headers, found.version, ("framework", key), ("company", "*"))


def list_changes(context: Context, path: str, values: Values, headers: bytes) -> Result:
    """Return the changes after a sequence number."""
    try:
        found = context.reader.changes(values["after"] or 0, values["limit"] or 500, values["chain"])
    except FeedGapError:
        raise BadRequest(
            f"after is {values['after'] or 0}; the feed no longer goes back that far.",
            f"Download a full copy from {V1}/exports, then continue here after its edition: "
            f"{path}?after={context.reader.edition}",
        ) from None
    except FeedAheadError:
        raise BadRequest(
            f"after is {values['after']}, but the feed's latest change is {context.reader.edition}: the number belongs "
            "to another feed, for example before a restore.",
            f"Download a full copy from {V1}/exports, then continue here after its edition. feedId changes whenever "
            f"the numbers start over: {path}?after={context.reader.edition}",
        ) from None
    except FeedDivergedError:
        raise BadRequest(
            f"chain is not that of change {values['after'] or 0} here: the feed has another past since then, for "
            "example after a restore or a failover.",
            f"Download a full copy from {V1}/exports, then continue here after its edition, without chain: "
            f"{path}?after={context.reader.edition}",
        ) from None
    rows = []
    for row in found.rows:
        entry: JSONObject = {
            "sequence": row.sequence,
            "kind": row.kind,
            "id": row.key,
            "change": row.change,
            "at": row.at,
        }
        if row.fields is not None:
            entry["fields"] = row.fields
        entry["chain"] = row.chain
        rows.append(entry)
    body = msgspec.json.encode(
        {
            "data": rows,
            "nextAfter": found.next_after,
            "chain": found.chain,
            "feedId": found.feed_id,
            "head": found.edition,
        }
    )
    return _result(body, found.modified_at, headers, found.version, ("*", "*"))


def list_exports(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    version = context.reader.version
    files = context.exports.files()
    licence = declared_licence()
    body = msgspec.json.encode(
        {"data": [_export(context, file) for file in files], **({"license": licence} if licence else {})}
    )
    at = max((file.at for file in files), default="")
    # Files appear without a new edition, so the response is not cached.
    return _result(body, at, headers, version)


def _export(context: Context, file: ExportFile) -> JSONObject:
    return {
        "name": file.name,
        "url": f"{context.base_url}/exports/{file.name}",
        "latestUrl": f"{context.base_url}/exports/{latest_name(file.name)}",
        "rows": file.rows,
        "bytes": file.size_bytes,
        "sha256": file.sha256,
        "edition": file.edition,
        "at": file.at,
    }


def companies_quick(context: Context, values: Values) -> bool:
    return not values["facets"] and context.reader.is_quick(
        list_query(context.listings["company"], f"{V1}/companies", values)
    )


def changes_quick(context: Context, values: Values) -> bool:
    """Return whether the feed has that past; a replica asks its source otherwise."""
    return context.reader.has_past(values["after"] or 0, values["chain"])


def people_quick(context: Context, values: Values) -> bool:
    return not values["facets"] and context.reader.is_quick(
        list_query(context.listings["person"], f"{V1}/people", values)
    )
