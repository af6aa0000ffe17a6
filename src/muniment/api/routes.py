"""
The REST routes: their handlers, parameters and descriptions, and their deprecation with the minimum notice.

A handler queries the reader and returns a finished answer.

Source: service document, Versioning, 4; RFC 9745; RFC 8594.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property, partial
from typing import Any, Final, NamedTuple, TypeVar
from urllib.parse import quote, urlencode

import msgspec

from muniment.api.changes import (
    MAX_DOCUMENT_BYTES,
    MAX_LISTENERS_PER_ADDRESS,
    Place,
    Wanted,
    entries_of,
    read_changes,
)
from muniment.api.csv_files import Source
from muniment.api.parameters import (
    LISTINGS,
    MAX_IDS,
    V1,
    Parameter,
    counted,
    criterion,
    hexadecimal,
    list_query,
    of_collection,
    one_of,
    selected,
    some_of,
    sort,
    text,
    truncated,
    whole_number,
    words,
)
from muniment.api.public_log import LOG, MAX_COSIGNATURES, MAX_LEAVES, TILES, PublicLog
from muniment.api.responses import Answer, declared_licence, link_line
from muniment.kernel import csv_text
from muniment.kernel.csv_text import CsvForm
from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, NotFound
from muniment.schema.company import with_qualifiers
from muniment.schema.company_parts import CAP_TABLE, SCORE
from muniment.schema.filters import Criterion, Listing
from muniment.schema.objects import Schema, registry_schema
from muniment.store import sheets
from muniment.store.cache import Dependency
from muniment.store.exports.exports import Exports
from muniment.store.exports.files import ExportFile, latest_name
from muniment.store.published import WantedChanges
from muniment.store.published_document import KINDS
from muniment.store.queries import CursorError, ListQuery
from muniment.store.reader import Found, ListPage, Reader
from muniment.store.search import everything
from muniment.store.search.everything import COLLECTIONS
from muniment.store.tables.following import Tables
from muniment.store.tables.statements import MAX_CSV_ROWS, MAX_ROWS, TablesMissing

HOLDER_COLUMNS: Final = CAP_TABLE.row.csv
SCORE_COLUMNS: Final = tuple(field.name for field in SCORE)
SEARCH_LIMIT: Final = 8
"""Results of each kind, unless the request says how many."""


class Context(NamedTuple):
    """The dependencies of handlers: the reader, the exports, the tables, the public URL or "", and the fields."""

    reader: Reader
    exports: Exports
    tables: Tables
    base_url: str
    schema: Schema = registry_schema("USD")
    log: PublicLog = PublicLog("")

    @property
    def listings(self) -> Mapping[str, Listing]:
        return self.schema.listings


class Result(NamedTuple):
    """An answer with the version of the file that it was read from and the documents that it depends on."""

    answer: Answer
    version: int
    depends: tuple[Dependency, ...]


Values = JSONObject
Handler = Callable[[Context, str, Values, bytes], Result]

_REQUIRED_MEMBERS = {"company": ("id", "name"), "person": ("name", "slug")}


NOTICE: Final = timedelta(days=90)
_Handler = TypeVar("_Handler", bound=Callable[..., object])


@dataclass(frozen=True, slots=True)
class Deprecation:
    """
    When a route was deprecated, when it will be removed, and where that is documented.

    Raises:
        ValueError: less than 90 days lie between the two.
    """

    since: date
    sunset: date
    explained_at: str

    def __post_init__(self) -> None:
        if self.sunset - self.since < NOTICE:
            message = f"sunset {self.sunset} is less than {NOTICE.days} days after deprecation {self.since}"
            raise ValueError(message)

    def header_lines(self) -> bytes:
        deprecated = int(_midnight(self.since).timestamp())
        sunset = format_datetime(_midnight(self.sunset), usegmt=True)
        return (
            f"deprecation: @{deprecated}\r\nsunset: {sunset}\r\n"
            f'link: <{self.explained_at}>; rel="deprecation"; type="text/html"\r\n'
        ).encode()


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


_marks: dict[Callable[..., object], Deprecation] = {}


def deprecated(*, since: date, sunset: date, explained_at: str) -> Callable[[_Handler], _Handler]:
    """
    Mark a route's handler as deprecated; importing it fails if the notice is too short.

    Raises:
        ValueError: less than 90 days lie between *since* and *sunset*.
    """
    mark = Deprecation(since, sunset, explained_at)

    def remember(handler: _Handler) -> _Handler:
        _marks[handler] = mark
        return handler

    return remember


def deprecation_of(handler: Callable[..., object]) -> Deprecation | None:
    """Return the deprecation of a route's handler, or None."""
    return _marks.get(handler)


def list_companies(context: Context, path: str, values: Values, headers: bytes) -> Result:
    return _list(context, "company", path, values, headers)


def company_rows(context: Context, path: str, values: Values) -> Source:
    return _rows(context, "company", path, values)


def list_people(context: Context, path: str, values: Values, headers: bytes) -> Result:
    return _list(context, "person", path, values, headers)


def people_rows(context: Context, path: str, values: Values) -> Source:
    return _rows(context, "person", path, values)


def _rows(context: Context, kind: str, path: str, values: Values) -> Source:
    """Return the whole result of a list, for CSV: its pages and facets do not count."""
    listing = context.listings[kind]
    query = ListQuery(
        q=values["q"] or "", sort=values.get("sort"), ids=values.get("ids"), **selected(listing, path, values)
    )
    found = context.reader.ordered(kind, query, csv_text.MAX_ROWS)
    columns = sheets.columns_of(context.schema, kind)
    if values.get("fields") is not None:
        kept = {*_REQUIRED_MEMBERS[kind], *with_qualifiers(values["fields"])}
        columns = tuple(each for each in columns if each.partition(".")[0] in kept)

    def steps() -> Iterator[Sequence[Sequence[Any]]]:
        for start in range(0, len(found.positions), ROWS_OF_A_STEP):
            yield context.reader.sheet_rows(kind, found.positions[start : start + ROWS_OF_A_STEP], columns)

    def tag() -> str:
        # What was published while the rows were read may be in them: such a file is no version of an edition.
        return digest(msgspec.json.encode([kind, values, found.place, context.reader.place]))

    return Source(f"{COLLECTIONS[kind]}.csv", columns, steps(), found.is_cut, tag)


def _list(context: Context, kind: str, path: str, values: Values, headers: bytes) -> Result:
    query = list_query(context.listings[kind], path, values)
    names = counted(context.listings[kind], values)
    with _cursor_of(path):
        page = context.reader.page(kind, query)
    items = page.items
    if values["fields"] is not None:
        kept = frozenset((*_REQUIRED_MEMBERS[kind], *with_qualifiers(values["fields"])))
        items = [_sparse(item, kept) for item in items]
    pagination: dict[str, int | str] = {**page.to_wire()}
    if page.next_cursor is not None:
        pagination["nextCursor"] = page.next_cursor
    rest: JSONObject = {"pagination": pagination, **page.guidance()}
    if names:
        rest["facets"] = context.reader.facets(kind, query, names).to_wire()
    # The items are finished JSON: only what follows them is encoded.
    body = b'{"data":[%s],%s' % (b",".join(items), msgspec.json.encode(rest)[1:])
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
    parameters: list[tuple[str, int | str]] = [("pageSize", page.page_size)]
    for name, value in values.items():
        if value is not None and name not in {"page", "pageSize", "cursor"}:
            texts = _query_texts(listing.criteria.get(name), value)
            parameters += [(name, written) for written in texts]
    rest = urlencode(parameters, quote_via=quote)

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
    found = everything.search(context.reader, values["q"], limit=limit, listings=context.schema.listings, kinds=kinds)
    totals = {COLLECTIONS[kind]: total for kind, total in found.totals.items()}
    why = everything.why(context.reader, values["q"], found)
    data = [_search_result(context, result, matched) for result, matched in zip(found.results, why, strict=True)]
    body = msgspec.json.encode({"data": data, "totals": totals, **found.guidance()})
    return _result(body, found.modified_at, headers, found.version, *((kind, "*") for kind in kinds))


def _search_result(context: Context, result: everything.Result, matched: str) -> JSONObject:
    collection, key = result.path
    item = result.item
    entry: JSONObject = {
        "kind": result.kind,
        "id": key,
        "name": result.name,
        "url": f"{context.base_url}/{collection}/{quote(key, safe='')}",
        "summary": result.summary,
    }
    if matched:
        entry["matched"] = matched
    if result.kind == "company":
        entry |= {name: item[name] for name in ("symbol", "type") if item.get(name)}
    logo = item.get("logo")
    hosted = logo.get("url") if isinstance(logo, dict) else None
    picture = hosted or item.get("icon") or item.get("picture")
    if picture:
        entry["picture"] = picture
    return entry


def _detail(kind: str, context: Context, key: str, _values: Values, headers: bytes) -> Result:
    found = context.reader.document(kind, key)
    if found is None:
        raise _unknown(context, kind, key)
    if kind in context.log.proof_links:
        before, after = context.log.proof_links[kind]
        headers += before + quote(key, safe="").encode() + after
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


def framework_rows(context: Context, path: str, values: Values) -> Source:
    return _rows(context, "framework", path, values)


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


def holder_rows(context: Context, key: str, _values: Values) -> Source:
    found = context.reader.cap_table(key, 1, csv_text.MAX_ROWS)
    if found is None:
        raise _unknown(context, "company", key)
    return _entries(found, f"{key}-cap-table.csv", HOLDER_COLUMNS)


def score_rows(context: Context, key: str, _values: Values) -> Source:
    if context.reader.document("framework", key) is None:
        raise _unknown(context, "framework", key)
    found = context.reader.scores(key, 1, csv_text.MAX_ROWS)
    return _entries(found, f"{key}-scores.csv", ("rank", "company.id", "company.name", *SCORE_COLUMNS))


def _entries(found: ListPage, name: str, columns: tuple[str, ...]) -> Source:
    """Return the entries of a list within documents, for CSV."""

    def steps() -> Iterator[Sequence[Sequence[Any]]]:
        for start in range(0, len(found.items), ROWS_OF_A_STEP):
            entries = [msgspec.json.decode(each) for each in found.items[start : start + ROWS_OF_A_STEP]]
            yield sheets.entry_rows(entries, columns)

    tag = digest(b"\n".join(found.items))
    return Source(name, columns, steps(), found.total > len(found.items), lambda: tag)


def list_scores(context: Context, key: str, values: Values, headers: bytes) -> Result:
    """Return a page of the published scores of a framework."""
    if context.reader.document("framework", key) is None:
        raise _unknown(context, "framework", key)
    found = context.reader.scores(key, values["page"] or 1, values["pageSize"] or 25)
    next_page = msgspec.json.encode(found.next_page)
    body = b'{"data":[%s],"total":%d,"nextPage":%s}' % (b",".join(found.items), found.total, next_page)
    return _result(body, found.modified_at, headers, found.version, ("framework", key), ("company", "*"))


def list_changes(context: Context, _path: str, values: Values, headers: bytes) -> Result:
    """Return the changes after a sequence number."""
    place = Place(values["after"] or 0, values["chain"])
    wanted = wanted_changes(values)
    found = read_changes(context.reader, place, values["limit"] or 500, wanted.changes)
    rows, last = entries_of(context.reader, found, has_documents=wanted.has_documents)
    body = msgspec.json.encode(
        {
            "data": rows,
            "nextAfter": last.after,
            "chain": last.chain,
            "feedId": found.feed_id,
            "head": found.edition,
        }
    )
    # What was waited for is asked again when the registry has changed.
    depends = () if values["waitSeconds"] else (("*", "*"),)
    return _result(body, found.modified_at, headers, found.version, *depends)


def wanted_changes(values: Values) -> Wanted:
    """Return which changes the parameters ask for."""
    changes = WantedChanges(values["kind"] or (), values["ids"] or ())
    return Wanted(changes, has_documents=values["include"] is not None)


def get_log(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    return _of_log(context.log.describe(), headers)


def get_checkpoint(context: Context, _path: str, values: Values, headers: bytes) -> Result:
    return _of_log(context.log.checkpoint(values), headers)


def list_cosigned(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    return _of_log(context.log.cosigned(), headers)


def get_tile(context: Context, path: str, _values: Values, headers: bytes) -> Result:
    return _of_log(context.log.tile(path), headers)


def get_proof(context: Context, _path: str, values: Values, headers: bytes) -> Result:
    return _of_log(context.log.proof(values), headers)


def list_leaves(context: Context, _path: str, values: Values, headers: bytes) -> Result:
    return _of_log(context.log.leaves(values), headers)


def _of_log(answer: Answer, headers: bytes) -> Result:
    answer.lines = headers
    return Result(answer, 0, ())  # what is read of the log is not kept


def list_exports(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    version = context.reader.version
    files = context.exports.files()
    listed: JSONObject = {"data": [_export(context, file) for file in files]}
    licence = declared_licence()
    if licence:
        listed["license"] = licence
    body = msgspec.json.encode(listed)
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


def list_tables(context: Context, _path: str, _values: Values, headers: bytes) -> Result:
    """Return the tables with their columns and the number of their rows."""
    version, place = context.reader.version, context.reader.place
    form = context.tables.form
    followed = context.tables.counts()
    if followed is None:
        raise TablesMissing
    held, counts = followed
    data = []
    for table in form.tables:
        columns = [{"name": each.name, "type": each.type, "help": str(each.help)} for each in table.columns]
        data.append(
            {"name": table.name, "help": str(table.help), "rows": counts.get(table.name, 0), "columns": columns}
        )
    body = msgspec.json.encode({"data": data, "edition": held.edition})
    # Of tables of a former form, some have no rows yet, so the answer is not kept.
    depends = []
    if held[:3] == (*place, form.id):
        depends.append(("*", "*"))
    return _result(body, context.reader.modified_at, headers, version, *depends)


def companies_quick(context: Context, values: Values) -> bool:
    return not values["facets"] and context.reader.is_quick(
        list_query(context.listings["company"], f"{V1}/companies", values)
    )


def changes_quick(context: Context, values: Values) -> bool:
    """Return whether the feed has that past; a replica asks its source otherwise. Many documents take long to read."""
    return values["include"] is None and context.reader.has_past(values["after"] or 0, values["chain"])


def in_a_thread(_context: Context, _values: Values) -> bool:
    return False


def people_quick(context: Context, values: Values) -> bool:
    return not values["facets"] and context.reader.is_quick(
        list_query(context.listings["person"], f"{V1}/people", values)
    )


ROWS_OF_A_STEP: Final = 100
"""Rows of a CSV that are read at once, in about 10 ms."""
MAX_FIELDS: Final = 50
MAX_PAGE_SIZE: Final = 100
MAX_CHANGES: Final = 1000
MAX_WAIT_S: Final = 55
"""Proxies give a response up after a minute."""


@dataclass(frozen=True)
class Route:
    """
    A route.

    Args:
        answer: the handler; gets the context, the segment, the parameter values and additional header lines. None for
            the statements and the live feed, which :class:`muniment.api.application.Api` answers on the event loop.
        quick: whether it takes microseconds, so that the event loop can run it.
        schema: the name of the success schema in the contract.
        rows: returns the whole result for CSV; None of what is no list.
        missing: what the segment identifies, for the 404; empty without a segment.
    """

    path: str
    operation_id: str
    tag: str
    summary: str
    description: str
    schema: str
    answer: Handler | None
    parameters: tuple[Parameter, ...] = ()
    rows: "Callable[[Context, str, Values], Source] | None" = None
    quick: Callable[[Context, Values], bool] = lambda _context, _values: True
    missing: str = ""

    @cached_property
    def by_name(self) -> dict[str, Parameter]:
        return {parameter.name: parameter for parameter in self.parameters}

    @cached_property
    def segment(self) -> tuple[str, str, str]:
        """Return what precedes the segment in the path, the segment's name, and what follows it."""
        prefix, _, rest = self.path.partition("{")
        name, _, suffix = rest.partition("}")
        return prefix, name, suffix

    @property
    def deprecation(self) -> Deprecation | None:
        return deprecation_of(self.answer) if self.answer else None

    def header_lines(self) -> bytes:
        """Return the lines that every response of the route carries."""
        return self.deprecation.header_lines() if self.deprecation else b""


PAGE = whole_number("page", "The page number, from 1. Beyond the last page `data` is empty.", minimum=1, default=1)
PAGE_SIZE = whole_number("pageSize", "The number of items per page.", minimum=1, maximum=MAX_PAGE_SIZE, default=25)
Q = text(
    "q",
    "Search words: all must match, the last one also as a prefix. Case and accents are ignored. "
    "Names rank highest, then symbols and slugs, then descriptions and themes, then bodies.",
    example="water",
    blank=False,
)
FIELDS = words(
    "fields",
    "Only these members of each item, separated by commas; required members are always included.",
    maximum=MAX_FIELDS,
    example="name,updatedAt",
)
CURSOR = text(
    "cursor",
    "Continue after an earlier page: its `pagination.nextCursor`. Stays consistent while the registry changes. "
    "Repeat the other parameters unchanged; cannot be combined with `page`.",
    example="",
    maximum=4096,
    blank=True,
)
IDS = words(
    "ids",
    f"Only these slugs, at most {MAX_IDS}, separated by commas; `unknownIds` names those that do not exist. "
    "pageSize then defaults to 100. Write a comma in a slug as `\\,`.",
    maximum=MAX_IDS,
    example="blue-river-trust,harbour-dao",
)
AFTER = whole_number("after", "The last sequence number that you have; 0 to start.", minimum=0, default=0)
LIMIT = whole_number("limit", "The maximum number of changes.", minimum=1, maximum=MAX_CHANGES, default=500)
PROVEN_KIND: Final = one_of("kind", "The kind of the document to prove.", KINDS)
PROVEN_ID: Final = text(
    "id", "The slug or frameworkId of the document to prove.", example="blue-river-trust", blank=False
)
PROVEN_INDEX: Final = whole_number("index", "The leaf to prove, from 0.", minimum=0, default=0)
PROVEN_SIZE: Final = whole_number(
    "size", "The size of the log to prove it for; the present one by default.", minimum=0, default=1
)
COSIGNATURES: Final = whole_number(
    "cosignatures",
    "The newest checkpoint that at least so many witnesses have cosigned, instead of the newest of all.",
    minimum=0,
    maximum=MAX_COSIGNATURES,
    default=0,
)
FORMER_SIZE: Final = whole_number(
    "formerSize", "The size of a former log that this one continues.", minimum=0, default=0
)
AFTER_LEAF: Final = whole_number(
    "after", "List the leaves after this index; -1 begins with the first.", minimum=-1, default=-1
)
LEAVES: Final = whole_number(
    "limit", "The maximum number of leaves.", minimum=1, maximum=MAX_LEAVES, default=MAX_LEAVES
)
CHANGED_KINDS: Final = some_of("kind", "Only changes of these kinds, separated by commas.", KINDS)
CHANGED_IDS: Final = words(
    "ids",
    f"Only changes of these slugs, at most {MAX_IDS}, separated by commas. Write a comma in a slug as `\\,`.",
    maximum=MAX_IDS,
    example="blue-river-trust,harbour-dao",
)
INCLUDE: Final = one_of(
    "include",
    "With `document`, each change has the document as it is published now, in the form of its detail endpoint; null if "
    f"it is not published any more. Documents over {MAX_DOCUMENT_BYTES >> 10} KB are left out.",
    ("document",),
)
WAIT: Final = whole_number(
    "waitSeconds",
    "If there is no such change yet, wait for one so many seconds before the response.",
    minimum=0,
    maximum=MAX_WAIT_S,
    default=0,
)
CHAIN: Final = hexadecimal(
    "chain",
    "The `chain` that you have for `after`. If the feed has another past by now, for example after a restore or a "
    "failover, the response is an error instead of changes that do not continue yours.",
    digits=64,
)
SQL: Final = replace(
    text("sql", "The statement.", example="SELECT count(*) AS companies FROM companies", maximum=10_000),
    required=True,
)
FORMAT: Final = one_of("format", "The form of the response: json by default.", ("json", "csv"))
CSV_FORM: Final = (
    one_of("bom", "1 begins a CSV with the mark of UTF-8, which Excel needs.", ("0", "1")),
    one_of(
        "delimiter",
        "Between the cells of a CSV: comma by default; Excel in many languages expects semicolons.",
        ("comma", "semicolon"),
    ),
)
AS_CSV: Final = (
    replace(
        FORMAT,
        description="The form of the response: json by default. csv is the whole result, not a page, of at most "
        f"{csv_text.MAX_ROWS:,} rows and 64 MB; X-Muniment-Truncated says what cut it. `Accept: text/csv` asks for "
        "the same.",
    ),
    *CSV_FORM,
)
"""Parameters of lists."""


def csv_form(values: Values) -> CsvForm:
    delimiter = csv_text.SEMICOLON if values["delimiter"] == "semicolon" else csv_text.COMMA
    return CsvForm(has_mark=values["bom"] == "1", delimiter=delimiter)


SEARCH: Final = (
    replace(Q, required=True),
    one_of("kind", "Only results of this kind.", KINDS),
    whole_number(
        "limit",
        "The maximum number of results of each kind.",
        minimum=1,
        maximum=MAX_PAGE_SIZE,
        default=SEARCH_LIMIT,
    ),
)


def _criteria(listing: Listing) -> tuple[Parameter, ...]:
    return tuple(map(criterion, listing.criteria.values()))


CRITERIA: Final = {kind: _criteria(each) for kind, each in LISTINGS.items()}


def _list_of(listing: Listing) -> tuple[Parameter, ...]:
    criteria = _criteria(listing)
    return (PAGE, PAGE_SIZE, Q, sort(listing), FIELDS, CURSOR, IDS, *criteria, _facets_of(listing), *AS_CSV)


def _facets_of(*listings: Listing) -> Parameter:
    names: dict[str, None] = {}
    for listing in listings:
        names |= dict.fromkeys(listing.counted)
    help_ = (
        "Count the values of these filters within the query, separated by commas. The counts of a filter ignore what "
        "is chosen for it. Any of: "
    )
    return some_of("facets", f"{help_}{', '.join(names)}.", tuple(names))


def _faceted(listings: Mapping[str, Listing]) -> tuple[Parameter, ...]:
    every: dict[str, Parameter] = {}
    for kind in reversed(KINDS):  # of filters with one name, that of the first kind is described
        every |= {parameter.name: parameter for parameter in _criteria(listings[kind])}
    return (
        one_of("list", "The list whose values are counted; companies by default.", tuple(COLLECTIONS.values())),
        Q,
        *every.values(),
        _facets_of(*(listings[kind] for kind in KINDS)),
    )


ROUTES: Final = (
    Route(
        path=f"{V1}/companies",
        operation_id="listCompanies",
        tag="Companies",
        summary="List companies",
        description="All reviewed companies, newest first, in pages.",
        schema="CompanyList",
        answer=list_companies,
        parameters=_list_of(LISTINGS["company"]),
        rows=company_rows,
        quick=companies_quick,
    ),
    Route(
        path=f"{V1}/companies/{{slug}}",
        operation_id="getCompany",
        tag="Companies",
        summary="Get a company",
        description="One company with its distribution, proposals, positions and cap table.",
        schema="CompanyDetail",
        answer=get_company,
        missing="company",
    ),
    Route(
        path=f"{V1}/companies/{{slug}}/cap-table",
        operation_id="listCapTable",
        tag="Companies",
        summary="List a company's token holders",
        description="The cap table of one company, in pages, for cap tables too long for one response.",
        schema="CapTablePage",
        answer=list_cap_table,
        parameters=(PAGE, PAGE_SIZE, *AS_CSV),
        rows=holder_rows,
        quick=lambda _context, _values: False,
        missing="company",
    ),
    Route(
        path=f"{V1}/people",
        operation_id="listPeople",
        tag="People",
        summary="List people",
        description="All public people, newest first, each with the number of reviewed companies they work at.",
        schema="PersonList",
        answer=list_people,
        parameters=_list_of(LISTINGS["person"]),
        rows=people_rows,
        quick=people_quick,
    ),
    Route(
        path=f"{V1}/people/{{slug}}",
        operation_id="getPerson",
        tag="People",
        summary="Get a person",
        description="One person with their positions at reviewed companies.",
        schema="PersonDetail",
        answer=get_person,
        missing="person",
    ),
    Route(
        path=f"{V1}/frameworks",
        operation_id="listFrameworks",
        tag="Frameworks",
        summary="List assessment frameworks",
        description="All frameworks, by their first publication; with `q` those that match, the best first.",
        schema="FrameworkList",
        answer=list_frameworks,
        parameters=(Q, *CRITERIA["framework"], _facets_of(LISTINGS["framework"]), *AS_CSV),
        rows=framework_rows,
    ),
    Route(
        path=f"{V1}/frameworks/{{frameworkId}}",
        operation_id="getFramework",
        tag="Frameworks",
        summary="Get an assessment framework",
        description="One framework. Its specification is private.",
        schema="FrameworkOne",
        answer=get_framework,
        missing="framework",
    ),
    Route(
        path=f"{V1}/frameworks/{{frameworkId}}/scores",
        operation_id="listScores",
        tag="Frameworks",
        summary="List a framework's published scores",
        description="The scores that companies have published, the best first, in pages. Each company has one: that of "
        "its latest published report, with the score that it replaced.",
        schema="ScorePage",
        answer=list_scores,
        parameters=(PAGE, PAGE_SIZE, *AS_CSV),
        rows=score_rows,
        quick=lambda _context, _values: False,
        missing="framework",
    ),
    Route(
        path=f"{V1}/search",
        operation_id="search",
        tag="Registry",
        summary="Search everything",
        description="Companies, people and frameworks in one list, the best match first; those of one kind are in the "
        "order of their own list. `totals` counts all matches of each kind: the lists page through them with the same "
        "`q`, and frameworks come with `kind=framework` and a larger `limit`. What is only similar, such as a "
        "misspelled name, is in `closest` and in no total. Every word must match: if nothing has all of them, "
        "`notUnderstood` has the words that neither a name nor a value of a filter explains, and `hint` names the "
        "filters whose values are among the words. Conditions are filters of the lists.",
        schema="SearchResults",
        answer=search,
        parameters=SEARCH,
        quick=lambda _context, _values: False,
    ),
    Route(
        path=f"{V1}/facets",
        operation_id="getFacets",
        tag="Registry",
        summary="Count values",
        description="How many of the items that a query finds have each value of a filter, the most frequent first. "
        "Takes the filters of the list, with the same meaning. The counts of a filter ignore what is chosen for it, "
        "so that they show the alternatives. `more` is the number of further values.",
        schema="Facets",
        answer=get_facets,
        parameters=_faceted(LISTINGS),
        quick=lambda _context, _values: False,
    ),
    Route(
        path=f"{V1}/stats",
        operation_id="getStats",
        tag="Registry",
        summary="Get the registry's statistics",
        description="The registry's totals.",
        schema="StatsOne",
        answer=get_stats,
    ),
    Route(
        path=f"{V1}/changes",
        operation_id="listChanges",
        tag="Registry",
        summary="Follow changes",
        description="Items published, updated or unlisted after a sequence number, oldest first. "
        "Continue with `nextAfter` and `chain`, a hash over everything up to that change: with it, the response is an "
        "error if the feed has another past by now. If `feedId` has changed, changes were lost, for example "
        "by a restore or a failover: start again from an export. An `after` beyond `head` is an error for the same "
        "reason. "
        "An erased person is `unlisted` under the slug for 30 days, and then under a random id.",
        schema="ChangeList",
        answer=list_changes,
        parameters=(AFTER, LIMIT, CHAIN, CHANGED_KINDS, CHANGED_IDS, INCLUDE, WAIT),
        quick=changes_quick,
    ),
    Route(
        path=f"{V1}/changes/stream",
        operation_id="streamChanges",
        tag="Registry",
        summary="Follow changes live",
        description="The same changes as server-sent events, within a second of their publication: events named "
        "`change`, whose data is a member of `data` of `GET /api/v1/changes`. Browsers connect again by themselves and "
        "send the id of the last event as `Last-Event-ID`, and so nothing is missed; other clients can begin with it, "
        "or with `after` and `chain`. Without them, the stream begins with the next change. If the feed has another "
        "past by now, the response is an error. Every 20 seconds comes an id without an event. The stream ends when "
        f"the server restarts. An address can have {MAX_LISTENERS_PER_ADDRESS} streams.",
        schema="ChangeStream",
        answer=None,
        parameters=(AFTER, CHAIN, CHANGED_KINDS, CHANGED_IDS, INCLUDE),
    ),
    Route(
        path=LOG,
        operation_id="getLog",
        tag="Log",
        summary="Get the public log",
        description="The append-only Merkle log of everything that was published: its origin, size and root, and the "
        "keys that sign it. `muniment verify` verifies it. `former` is another log that this one began instead of.",
        schema="LogOne",
        answer=get_log,
        quick=in_a_thread,
    ),
    Route(
        path=f"{LOG}/checkpoint",
        operation_id="getCheckpoint",
        tag="Log",
        summary="Get the log's checkpoint",
        description="The signed statement of origin, size and root, in the forms of c2sp.org/tlog-checkpoint and "
        "c2sp.org/signed-note, with the signatures of witnesses that have cosigned it (c2sp.org/tlog-cosignature). "
        "Witnesses are asked every few seconds, so the newest checkpoint often has none yet.",
        schema="Checkpoint",
        answer=get_checkpoint,
        parameters=(COSIGNATURES,),
        quick=in_a_thread,
    ),
    Route(
        path=f"{LOG}/cosigned",
        operation_id="listCosigned",
        tag="Log",
        summary="List cosigned checkpoints",
        description="The checkpoints that witnesses have cosigned, the newest first. Of those that the same witnesses "
        "have cosigned, only the newest is kept.",
        schema="CosignedList",
        answer=list_cosigned,
        quick=in_a_thread,
    ),
    Route(
        path=f"{LOG}/proof",
        operation_id="getProof",
        tag="Log",
        summary="Prove a document or a leaf",
        description="With `kind` and `id`, the proof that a published document is in the log: the leaf, the hashes "
        "that lead to the root, and the signed checkpoint. The `digest` is the SHA-256 of the body of its detail. With "
        "`index`, the proof of that leaf. With `formerSize`, the proof that the log continues the one of that size. "
        "With `cosignatures`, the proof is for the newest checkpoint that so many witnesses have cosigned.",
        schema="LogProofOne",
        answer=get_proof,
        parameters=(PROVEN_KIND, PROVEN_ID, PROVEN_INDEX, PROVEN_SIZE, FORMER_SIZE, COSIGNATURES),
        quick=in_a_thread,
    ),
    Route(
        path=f"{LOG}/leaves",
        operation_id="listLeaves",
        tag="Log",
        summary="List the log's leaves",
        description="What each leaf is a hash of: salt, kind, key, change and digest. They are null once a person was "
        "erased. The change `state` is of a document that changed without an entry in the change feed.",
        schema="LeafList",
        answer=list_leaves,
        parameters=(AFTER_LEAF, LEAVES),
        quick=in_a_thread,
    ),
    Route(
        path=f"{TILES}{{tile}}",
        operation_id="getTile",
        tag="Log",
        summary="Get a tile of the log",
        description="Hashes of the log by c2sp.org/tlog-tiles, for example `0/x001/234.p/5`, or with `entries/` the "
        "data of leaves.",
        schema="Tile",
        answer=get_tile,
        quick=in_a_thread,
        missing="tile",
    ),
    Route(
        path=f"{V1}/exports",
        operation_id="listExports",
        tag="Registry",
        summary="List export files",
        description="The whole registry as JSON Lines and CSV files, and its public tables as one SQLite file and as "
        "CSV files, created in the background after changes.",
        schema="ExportList",
        answer=list_exports,
    ),
    Route(
        path=f"{V1}/tables",
        operation_id="listTables",
        tag="Registry",
        summary="List tables",
        description="The public tables that statements read: their columns with types and meaning, and the number of "
        "rows. They show one edition, at most 2 seconds behind the other responses.",
        schema="TableList",
        answer=list_tables,
        quick=lambda _context, _values: False,
    ),
    Route(
        path=f"{V1}/query",
        operation_id="query",
        tag="Registry",
        summary="Query in SQL",
        description="The answer to one statement in the SQL of SQLite, which begins with SELECT or WITH, about the "
        "tables of `GET /api/v1/tables`. Every other parameter of the URL is a parameter of the statement: `:city` "
        "is given by `city=Lisbon`, as a number if it is written as one. "
        f"A response has at most {MAX_ROWS:,} rows and 1 MB, and texts of at most 10,000 characters; `truncated` says "
        f"what cut it and how to get the rest. With `format=csv` it has at most {MAX_CSV_ROWS:,} rows and 32 MB as "
        "CSV, where the header X-Muniment-Truncated says the same, and texts that a spreadsheet would run as a "
        "formula begin with an apostrophe. "
        "A statement may use 0.5 seconds of CPU time and 64 MB; what an address uses is limited too, and repeated "
        "statements cost nothing until the registry changes.",
        schema="QueryResult",
        answer=None,
        parameters=(SQL, FORMAT, *CSV_FORM),
    ),
)


def routes_of(schema: Schema) -> tuple[Route, ...]:
    """Return the routes with the parameters of the fields that *schema* declares."""
    listings = schema.listings
    own = {
        "listCompanies": _list_of(listings["company"]),
        "listPeople": _list_of(listings["person"]),
        "getFacets": _faceted(listings),
    }
    return tuple(replace(each, parameters=own.get(each.operation_id, each.parameters)) for each in ROUTES)
