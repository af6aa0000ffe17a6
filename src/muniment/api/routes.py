"""
The REST routes: their parameters and descriptions, and their deprecation with its headers and the minimum notice.

Source: service document, Versioning, 4; RFC 9745; RFC 8594.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime, timedelta
from email.utils import format_datetime
from functools import cached_property
from typing import Final, TypeVar

from muniment.api.handlers import (
    SEARCH_LIMIT,
    V1,
    Context,
    Handler,
    Values,
    changes_quick,
    companies_quick,
    get_company,
    get_facets,
    get_framework,
    get_person,
    get_stats,
    list_cap_table,
    list_changes,
    list_companies,
    list_exports,
    list_frameworks,
    list_people,
    list_scores,
    people_quick,
    search,
)
from muniment.api.parameters import (
    LISTINGS,
    MAX_IDS,
    Parameter,
    criterion,
    hexadecimal,
    one_of,
    some_of,
    sort,
    text,
    whole_number,
    words,
)
from muniment.schema.filters import Listing
from muniment.schema.objects import Schema
from muniment.store.published_document import KINDS
from muniment.store.search.everything import COLLECTIONS

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


MAX_FIELDS: Final = 50
MAX_PAGE_SIZE: Final = 100
MAX_CHANGES: Final = 1000


@dataclass(frozen=True)
class Route:
    """
    A route.

    Args:
        answer: the handler; gets the context, the segment, the parameter values and additional header lines.
        quick: whether it takes microseconds, so that the event loop can run it.
        schema: the name of the success schema in the contract.
        missing: what the segment identifies, for the 404; empty without a segment.
    """

    path: str
    operation_id: str
    tag: str
    summary: str
    description: str
    schema: str
    answer: Handler
    parameters: tuple[Parameter, ...] = ()
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
        return deprecation_of(self.answer)

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
CHAIN: Final = hexadecimal(
    "chain",
    "The `chain` that you have for `after`. If the feed has another past by now, for example after a restore or a "
    "failover, the response is an error instead of changes that do not continue yours.",
    digits=64,
)
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
    return (PAGE, PAGE_SIZE, Q, sort(listing), FIELDS, CURSOR, IDS, *_criteria(listing), _facets_of(listing))


def _facets_of(*listings: Listing) -> Parameter:
    names = dict.fromkeys(name for listing in listings for name in listing.counted)
    help_ = (
        "Count the values of these filters within the query, separated by commas. The counts of a filter ignore what "
        "is chosen for it. Any of: "
    )
    return some_of("facets", f"{help_}{', '.join(names)}.", tuple(names))


def _faceted(listings: Mapping[str, Listing]) -> tuple[Parameter, ...]:
    every = {each.name: each for kind in reversed(KINDS) for each in _criteria(listings[kind])}
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
        parameters=(PAGE, PAGE_SIZE),
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
        parameters=(Q, *CRITERIA["framework"], _facets_of(LISTINGS["framework"])),
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
        parameters=(PAGE, PAGE_SIZE),
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
        "`notUnderstood` has the words that no name explains. Conditions are filters of the lists.",
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
        parameters=(AFTER, LIMIT, CHAIN),
        quick=changes_quick,
    ),
    Route(
        path=f"{V1}/exports",
        operation_id="listExports",
        tag="Registry",
        summary="List export files",
        description="The whole registry as JSON Lines and CSV files, created in the background after changes.",
        schema="ExportList",
        answer=list_exports,
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
