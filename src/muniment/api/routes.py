"""Every REST route: its parameters, its words, and the few lines that ask the reader."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple
from urllib.parse import quote, urlencode

import msgspec

from muniment.api.deprecation import Deprecation, deprecation_of
from muniment.api.parameters import Parameter, filters_of, moment, one_of, shown, text, whole_number, words
from muniment.api.responses import Answer, link_line
from muniment.kernel.ids import digest
from muniment.kernel.problems import BadRequest, NotFound
from muniment.schema.objects import registry_schema
from muniment.store.cache import Dependency
from muniment.store.exports import ExportFile, Exports
from muniment.store.queries import CompanyQuery, CursorError, PeopleQuery
from muniment.store.reader import FeedGapError, Found, ListPage, Reader

V1: Final = "/api/v1"
MAX_IDS: Final = 100
MAX_FIELDS: Final = 50
MAX_PAGE_SIZE: Final = 100
MAX_CHANGES: Final = 1000


class Context(NamedTuple):
    """What a route asks: the reader, the exports, and the public address of the instance, or empty."""

    reader: Reader
    exports: Exports
    base_url: str


class Made(NamedTuple):
    """An answer, the edition that it was read from, and the documents that it shows."""

    answer: Answer
    edition: int
    depends: tuple[Dependency, ...]


Values = dict[str, Any]
Handler = Callable[[Context, str, Values, bytes], Made]


def _always(_context: Context, _values: Values) -> bool:
    return True


def _never(_context: Context, _values: Values) -> bool:
    return False


@dataclass(frozen=True)
class Route:
    """
    One route.

    Args:
        path: with at most one ``{segment}``.
        answer: gets the context, the segment, the parameters' values and further header lines.
        quick: whether it takes microseconds, so that the event loop may run it.
        schema: the name of the success schema in the contract.
        missing: what the segment names, for the description of the 404; empty when there is none.
    """

    path: str
    operation_id: str
    tag: str
    summary: str
    description: str
    schema: str
    answer: Handler
    parameters: tuple[Parameter, ...] = ()
    quick: Callable[[Context, Values], bool] = _always
    missing: str = ""
    segment_name: str = ""
    by_name: dict[str, Parameter] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "by_name", {parameter.name: parameter for parameter in self.parameters})

    @property
    def deprecation(self) -> Deprecation | None:
        """Give the mark of a route that will go."""
        return deprecation_of(self.answer)


PAGE = whole_number("page", "Which page, counted from 1. Beyond the last page `data` is empty.", minimum=1, default=1)
PAGE_SIZE = whole_number("pageSize", "How many items a page holds.", minimum=1, maximum=MAX_PAGE_SIZE, default=25)
Q = text(
    "q",
    "Words to find: every one of them, the last also as the beginning of a word. Case and accents do not matter. "
    "Names count most, then symbols and slugs, then descriptions and themes, then bodies.",
    example="water",
    blank=False,
)
SORT = one_of(
    "sort",
    "`newest` first (the default), by `name`, or by `relevance` (the default with `q`, and only with it).",
    ("newest", "name", "relevance"),
)
FIELDS = words(
    "fields",
    "Only these members of each item, separated by commas; the required ones always stay.",
    maximum=MAX_FIELDS,
    example="name,updatedAt",
)
CURSOR = text(
    "cursor",
    "Go on where an earlier page ended: its `pagination.nextCursor`. Stays right while the registry changes. "
    "Keep every other parameter as it was; not together with `page`.",
    example="",
    maximum=4096,
    blank=True,
)
IDS = words(
    "ids",
    f"Only these slugs, at most {MAX_IDS}, separated by commas; unknown ones are left out. "
    "pageSize is then 100 by default. A comma inside a slug is written `\\,`.",
    maximum=MAX_IDS,
    example="blue-river-trust,harbour-dao",
)
UPDATED_SINCE = moment("updatedSince", "Only what changed at that moment or later, RFC 3339.")
_SCHEMA: Final = registry_schema("USD")  # filters are fixed: the index knows the built-in fields, not declared ones
FILTERS = filters_of(_SCHEMA.company)
LISTED = (PAGE, PAGE_SIZE, Q, SORT, FIELDS, CURSOR, IDS, UPDATED_SINCE)
(KIND,) = filters_of(_SCHEMA.framework)
AFTER = whole_number("after", "The last sequence number already known; 0 for the beginning.", minimum=0, default=0)
LIMIT = whole_number("limit", "At most so many changes.", minimum=1, maximum=MAX_CHANGES, default=500)
_REQUIRED_MEMBERS = {"company": ("id", "name"), "person": ("name", "slug")}


def _list_query(path: str, values: Values) -> dict[str, Any]:
    """Check what the parameters of a list mean together, and give them by the reader's names."""
    page, size, cursor, sort = values["page"], values["pageSize"], values["cursor"], values["sort"]
    if cursor is not None and page is not None:
        raise BadRequest(f"page is {page} beside a cursor; give one of the two.", f"For example: {path}?page={page}")
    if sort == "relevance" and values["q"] is None:
        raise BadRequest(
            'sort is "relevance" without q; relevance needs words to find.', f"For example: {path}?sort=newest"
        )
    if size is None:
        size = MAX_IDS if values["ids"] is not None else 25
    return {
        "page": page or 1,
        "page_size": size,
        "q": values["q"] or "",
        "sort": sort,
        "cursor": cursor,
        "ids": values["ids"],
        "updated_since": values["updatedSince"],
    }


def _company_query(path: str, values: Values) -> CompanyQuery:
    filters = {name: values[name] for name in ("status", "type", "industry", "theme", "raising")}
    return CompanyQuery(**_list_query(path, values), **filters, has_token=values["hasToken"])


def list_companies(context: Context, path: str, values: Values, headers: bytes) -> Made:
    """Answer a page of companies."""
    query = _company_query(path, values)
    with _cursor_of(path):
        page = context.reader.companies(query)
    return _listed("company", path, values, page, headers)


def list_people(context: Context, path: str, values: Values, headers: bytes) -> Made:
    """Answer a page of people."""
    query = PeopleQuery(**_list_query(path, values))
    with _cursor_of(path):
        page = context.reader.people(query)
    return _listed("person", path, values, page, headers)


class _cursor_of:  # noqa: N801 - reads as a statement
    """Tell a bad cursor as the parameter's fault."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None: ...

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, CursorError):
            raise BadRequest(
                f"cursor {error}; it takes the pagination.nextCursor of an earlier page.",
                f"Begin again without it: {self._path}?pageSize=25",
            ) from None


def _listed(kind: str, path: str, values: Values, page: ListPage, headers: bytes) -> Made:
    items = page.items
    if values["fields"] is not None:
        kept = frozenset((*_REQUIRED_MEMBERS[kind], *values["fields"]))
        items = [_sparse(item, kept) for item in items]
    pagination: dict[str, int | str] = {**page.to_wire()}
    if page.next_cursor is not None:
        pagination["nextCursor"] = page.next_cursor
    body = b'{"data":[%s],"pagination":%s}' % (b",".join(items), msgspec.json.encode(pagination))
    lines = _page_links(path, values, page) + headers
    answer = Answer(body, digest(body).encode(), page.updated_at, lines)
    return Made(answer, page.edition, ((kind, "*"),))


def _sparse(item: bytes, kept: frozenset[str]) -> bytes:
    members = msgspec.json.decode(item, type=dict[str, msgspec.Raw])
    return msgspec.json.encode({name: value for name, value in members.items() if name in kept})


def _page_links(path: str, values: Values, page: ListPage) -> bytes:
    """Give the addresses of the neighbouring pages, with everything else as it was asked."""
    kept = {
        name: _written(value)
        for name, value in values.items()
        if value is not None and name not in {"page", "pageSize", "cursor"}
    }

    rest = urlencode({"pageSize": page.page_size, **kept}, quote_via=quote)

    def address(place: int | str, name: str = "page") -> str:
        return f"{path}?{name}={place}&{rest}"  # a cursor is base64 of the kind that needs no quoting

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


def _written(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return ",".join(part.replace(",", "\\,") for part in value)
    return str(value)


def _detail(context: Context, kind: str, path: str, key: str, headers: bytes) -> Made:
    found = context.reader.document(kind, key)
    if found is None:
        raise unknown(context, kind, path, key)
    return Made(_finished(found, headers), found.edition, ((kind, key),))


def _finished(found: Found, headers: bytes) -> Answer:
    return Answer(found.body, found.etag.encode(), found.updated_at, headers)


def unknown(context: Context, kind: str, path: str, key: str) -> NotFound:
    """Make the refusal of a key that names nothing, with near ones."""
    noun, member = {"company": ("slug", "id"), "person": ("slug", "slug"), "framework": ("frameworkId", "frameworkId")}[
        kind
    ]
    near = context.reader.nearest(kind, key[:MAX_IDS])
    meant = f" Did you mean {' or '.join(near)}?" if near else ""
    return NotFound(
        f'There is no {kind} with the {noun} "{shown(key)}".',
        f"GET {path} lists what there is; the {member} of each item is its {noun}.{meant}",
    )


def get_company(context: Context, key: str, _values: Values, headers: bytes) -> Made:
    """Answer a company's bundle."""
    return _detail(context, "company", f"{V1}/companies", key, headers)


def get_person(context: Context, key: str, _values: Values, headers: bytes) -> Made:
    """Answer a person."""
    return _detail(context, "person", f"{V1}/people", key, headers)


def get_framework(context: Context, key: str, _values: Values, headers: bytes) -> Made:
    """Answer a framework."""
    return _detail(context, "framework", f"{V1}/frameworks", key, headers)


def list_frameworks(context: Context, _path: str, values: Values, headers: bytes) -> Made:
    """Answer all frameworks, or those of one kind."""
    found = context.reader.frameworks(values["kind"])
    return Made(_finished(found, headers), found.edition, (("framework", "*"),))


def get_stats(context: Context, _path: str, _values: Values, headers: bytes) -> Made:
    """Answer the statistics."""
    found = context.reader.stats()
    depends = (("company", "*"), ("person", "*"), ("framework", "*"))
    return Made(_finished(found, headers), found.edition, depends)


def list_cap_table(context: Context, key: str, values: Values, headers: bytes) -> Made:
    """Answer a page of a company's token holders."""
    found = context.reader.cap_table(key, values["page"] or 1, values["pageSize"] or 25)
    if found is None:
        raise unknown(context, "company", f"{V1}/companies", key)
    body = b'{"data":[%s],"total":%d,"nextPage":%s}' % (
        b",".join(found.items),
        found.total,
        msgspec.json.encode(found.next_page),
    )
    answer = Answer(body, digest(body).encode(), found.updated_at, headers)
    return Made(answer, found.edition, (("company", key),))


def list_changes(context: Context, path: str, values: Values, headers: bytes) -> Made:
    """Answer what changed after a sequence number."""
    try:
        found = context.reader.changes(values["after"] or 0, values["limit"] or 500)
    except FeedGapError:
        raise BadRequest(
            f"after is {values['after'] or 0}; the feed no longer reaches back that far.",
            f"Take a whole copy from {V1}/exports, then go on here after its edition: "
            f"{path}?after={context.reader.edition}",
        ) from None
    rows = [
        {"sequence": row.sequence, "kind": row.kind, "id": row.key, "change": row.change, "at": row.at}
        for row in found.rows
    ]
    body = msgspec.json.encode({"data": rows, "nextAfter": found.next_after})
    return Made(Answer(body, digest(body).encode(), found.updated_at, headers), found.edition, (("*", "*"),))


def list_exports(context: Context, _path: str, _values: Values, headers: bytes) -> Made:
    """Answer the whole-registry files that stand ready."""
    edition = context.reader.edition
    files = context.exports.files()
    body = msgspec.json.encode({"data": [_export(context, file) for file in files]})
    at = max((file.at for file in files), default="")
    # Files appear without a new edition, so this is never kept as finished.
    return Made(Answer(body, digest(body).encode(), at, headers), edition, ())


def _export(context: Context, file: ExportFile) -> dict[str, Any]:
    return {
        "name": file.name,
        "url": f"{context.base_url}/exports/{file.name}",
        "rows": file.rows,
        "bytes": file.size_bytes,
        "sha256": file.sha256,
        "edition": file.edition,
        "at": file.at,
    }


def _companies_quick(context: Context, values: Values) -> bool:
    return context.reader.is_quick(_company_query(f"{V1}/companies", values))


def _people_quick(context: Context, values: Values) -> bool:
    return context.reader.is_quick(PeopleQuery(**_list_query(f"{V1}/people", values)))


ROUTES: Final = (
    Route(
        path=f"{V1}/companies",
        operation_id="listCompanies",
        tag="Companies",
        summary="List companies",
        description="All reviewed companies, newest first, page by page.",
        schema="CompanyList",
        answer=list_companies,
        parameters=(*LISTED, *FILTERS),
        quick=_companies_quick,
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
        segment_name="slug",
    ),
    Route(
        path=f"{V1}/companies/{{slug}}/cap-table",
        operation_id="listCapTable",
        tag="Companies",
        summary="List a company's token holders",
        description="The cap table of one company, page by page, for those too long to take whole.",
        schema="CapTablePage",
        answer=list_cap_table,
        parameters=(PAGE, PAGE_SIZE),
        quick=_never,
        missing="company",
        segment_name="slug",
    ),
    Route(
        path=f"{V1}/people",
        operation_id="listPeople",
        tag="People",
        summary="List people",
        description="All public people, newest first, each with the number of reviewed companies they work at.",
        schema="PersonList",
        answer=list_people,
        parameters=LISTED,
        quick=_people_quick,
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
        segment_name="slug",
    ),
    Route(
        path=f"{V1}/frameworks",
        operation_id="listFrameworks",
        tag="Frameworks",
        summary="List assessment frameworks",
        description="All frameworks, in the order of their first publication.",
        schema="FrameworkList",
        answer=list_frameworks,
        parameters=(KIND,),
    ),
    Route(
        path=f"{V1}/frameworks/{{frameworkId}}",
        operation_id="getFramework",
        tag="Frameworks",
        summary="Get an assessment framework",
        description="One framework. Its specification is private and never shown.",
        schema="FrameworkOne",
        answer=get_framework,
        missing="framework",
        segment_name="frameworkId",
    ),
    Route(
        path=f"{V1}/stats",
        operation_id="getStats",
        tag="Registry",
        summary="Get the registry's statistics",
        description="How much the registry holds.",
        schema="StatsOne",
        answer=get_stats,
    ),
    Route(
        path=f"{V1}/changes",
        operation_id="listChanges",
        tag="Registry",
        summary="Follow what changes",
        description="What was published, updated or unlisted after a sequence number, oldest first. "
        "Ask again with `nextAfter`.",
        schema="ChangeList",
        answer=list_changes,
        parameters=(AFTER, LIMIT),
    ),
    Route(
        path=f"{V1}/exports",
        operation_id="listExports",
        tag="Registry",
        summary="List whole-registry files",
        description="The whole registry as files, JSON Lines and CSV, made in the background after it changes.",
        schema="ExportList",
        answer=list_exports,
    ),
)
