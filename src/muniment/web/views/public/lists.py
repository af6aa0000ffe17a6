"""
The list pages: search, filters with counts, orders, pages; and any search as an Atom feed.

Rows are made as HTML here: in templates they would be half of a page's time.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from html import escape
from itertools import islice
from typing import Any, Final, NamedTuple
from urllib.parse import quote, quote_plus

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.loader import get_template
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.kernel.csv_text import MAX_ROWS
from muniment.kernel.json import JSONObject
from muniment.languages import writing
from muniment.languages.writing import number
from muniment.store.lists.facets import Counted
from muniment.store.lists.facets import Facet as CountedFacet
from muniment.store.reader import ListPage
from muniment.store.search.closest import Closest
from muniment.store.search.everything import is_meant
from muniment.store.search.values import singular
from muniment.web.context import address
from muniment.web.lists.search import (
    ListFilter,
    ListName,
    Search,
    chips_of,
    csv_address,
    feed_address,
    json_address,
    json_feed_address,
    list_query,
    names_of,
    orders_of,
    registry_list,
    reliefs_of,
    save_address,
    shown_value,
    title_of,
)
from muniment.web.lists.value_chips import named_values, value_chips
from muniment.web.presenters import markdown
from muniment.web.presenters.atom import JSON_TYPE, Feed, atom, json_feed
from muniment.web.presenters.company import treasury_label
from muniment.web.presenters.marks import mark_html, pill_html
from muniment.web.requests import pagination
from muniment.web.requests.page_cache import kept_part, published, reader
from muniment.web.views.public import updates
from muniment.web.wording.guidance import guidance
from muniment.web.wording.labels import label
from muniment.web.wording.places import month_or_text

FEED_ENTRIES: Final = 50


class _Frameworks(msgspec.Struct):
    data: list[msgspec.Raw]
    closest: list[Closest] = []
    hint: str = ""


VALUES_SHOWN: Final = 8
"""Values of a filter; the others fold."""


MIN_VALUES_FOLDED: Final = 3
"""Fewer save no room."""


VALUES_COUNTED: Final = 40


NO_VALUES: Final = CountedFacet((), 0)


class Option(NamedTuple):
    """A value of a filter; its link adds it to the search, or removes it from there."""

    id: str
    label: str
    total: int
    address: str
    is_chosen: bool

    def html(self) -> str:
        chosen = ' aria-current="true"' if self.is_chosen else ""
        return (
            f'<li><a id="{self.id}" href="{escape(self.address)}"{chosen}><bdi>{escape(self.label)}</bdi> '
            f'<span class="n">{number(self.total)}</span></a></li>'
        )


class Facet(NamedTuple):
    """
    A filter with the values in use.

    Args:
        more: values that fold.
        is_long: further values can be typed.
    """

    name: str
    label: str
    options: list[Option]
    more: list[Option]
    is_long: bool

    @property
    def links(self) -> SafeString:
        return _html(self.options)

    @property
    def more_links(self) -> SafeString:
        return _html(self.more)


class Typed(NamedTuple):
    """An input of the form of further filters."""

    name: str
    label: str
    kind: str
    hint: str
    value: str


class Panel(NamedTuple):
    """All filters of a list."""

    facets: list[Facet]
    typed: list[Typed]
    hidden: list[tuple[str, str]]
    """The pairs that the form repeats: everything that is chosen by links."""
    chosen: int


SUMMARY_CHARACTERS = 180


POSITIONS_SHOWN = 2
"""Maximum number of positions of a person that are shown, in different organizations."""


class _CompanyItem(msgspec.Struct, rename="camel"):
    id: str
    name: str
    symbol: str = ""
    logo: Any = None
    raising: bool = False
    status: str = ""
    description: str | None = None
    type: str = ""
    industry: str = ""
    team_size: int | None = None
    treasury: str = ""
    treasury_note: Any = ""
    created_at: str = ""


class _PersonItem(msgspec.Struct, rename="camel"):
    slug: str
    name: str
    picture: str | None = None
    bio: str | None = None
    company_count: int = 0


class _NamedCompany(msgspec.Struct):
    name: str
    id: str = ""


class _HeldPosition(msgspec.Struct):
    title: str | None = None
    company: _NamedCompany | None = None


class _HeldPositions(msgspec.Struct):
    positions: list[_HeldPosition] = []


class _Held(msgspec.Struct):
    data: _HeldPositions


class _FrameworkItem(msgspec.Struct, rename="camel"):
    framework_id: str
    framework_name: str
    kind: str
    is_open: bool = False
    description: str | None = None
    company: _NamedCompany | None = None


_companies = msgspec.json.Decoder(_CompanyItem)


_people = msgspec.json.Decoder(_PersonItem)


_person_documents = msgspec.json.Decoder(_Held)


_frameworks = msgspec.json.Decoder(_FrameworkItem)


@published(of=partial(names_of, "companies"))
def companies(request: HttpRequest) -> HttpResponse:
    """List companies."""
    return _list_page(request, "companies")


@published(of=partial(names_of, "people"))
def people(request: HttpRequest) -> HttpResponse:
    """List people."""
    return _list_page(request, "people")


@published(of=partial(names_of, "frameworks"))
def frameworks(request: HttpRequest) -> HttpResponse:
    """List the assessment frameworks and programs."""
    return _list_page(request, "frameworks")


@published(of=partial(names_of, "companies"), speaks=False)
def companies_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest companies of a search as an Atom feed."""
    return _feed(request, "companies")


@published(of=partial(names_of, "people"), speaks=False)
def people_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest people of a search as an Atom feed."""
    return _feed(request, "people")


@published(of=partial(names_of, "frameworks"), speaks=False)
def frameworks_feed(request: HttpRequest) -> HttpResponse:
    """Return the frameworks of a search as an Atom feed."""
    return _feed(request, "frameworks")


@published(of=partial(names_of, "companies"), speaks=False)
def companies_json_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest companies of a search as a JSON Feed."""
    return _json_feed(request, "companies")


@published(of=partial(names_of, "people"), speaks=False)
def people_json_feed(request: HttpRequest) -> HttpResponse:
    """Return the latest people of a search as a JSON Feed."""
    return _json_feed(request, "people")


@published(of=partial(names_of, "frameworks"), speaks=False)
def frameworks_json_feed(request: HttpRequest) -> HttpResponse:
    """Return the frameworks of a search as a JSON Feed."""
    return _json_feed(request, "frameworks")


def find(search: Search, page_size: int = pagination.PAGE_SIZE) -> ListPage:
    """
    Return a page of what a search finds.

    Raises:
        BadRequest: the lower bound of a range is above the upper one.
    """
    query = list_query(search, page_size=page_size)
    match search.of.kind:
        case "company":
            return reader().companies(query)
        case "person":
            return reader().people(query)
    if search.q or search.sort:
        return reader().page("framework", query)
    # Without words and order, it is the list of the API, which has no pages.
    document = reader().frameworks(query)
    listed = msgspec.json.decode(document.body, type=_Frameworks)
    start = (search.page - 1) * page_size
    return ListPage(
        [bytes(item) for item in listed.data[start : start + page_size]],
        search.page,
        page_size,
        len(listed.data),
        document.version,
        document.modified_at,
        closest=tuple(listed.closest),
        hint=listed.hint,
    )


def facets(search: Search) -> Mapping[str, CountedFacet]:
    """Return the values of each filter with the number of results that they would leave."""
    kind = search.of.kind
    return reader().facets(kind, list_query(search), settings.SCHEMA.listings[kind].counted, VALUES_COUNTED).by_name


def _next_of(*, is_blank: bool) -> JSONObject:
    """Return where an empty list leads: to the companies if there are any, else to the form that lists one."""
    if is_blank and not reader().count("company"):
        return {"has_companies": False, "next_address": "/manage/companies/new"}
    return {"has_companies": True, "next_address": "/companies"}


def _list_page(request: HttpRequest, name: ListName) -> HttpResponse:
    search = Search.read(registry_list(name), request.GET)
    if not search.is_canonical(request.GET):
        return HttpResponseRedirect(search.address(page=search.page))
    page = find(search)
    is_blank = not (page.total or page.closest or search.chosen or search.q)
    filters = ""
    if not is_blank:
        filters = _filters(search, page.total)
    total_shown = number(page.total)
    if page.is_cut:
        total_shown += "+"

    def page_address(page_number: int | None) -> str:
        return search.address(page=page_number) if page_number else ""

    context: JSONObject = {
        "is_blank": is_blank,
        **_next_of(is_blank=is_blank),
        "room": name,
        "search": search,
        "title": title_of(search),
        "canonical": f"{address(request)}{search.address(page=search.page)}",
        "filters": mark_safe(filters),  # noqa: S308 - a rendered template
        "has_filters": "<details" in filters,
        "items": _ROWS[name](page.items),
        "total": page.total,
        "total_shown": total_shown,
        "chips": chips_of(search),
        "value_chips": value_chips(search, search.q),
        "orders": orders_of(search),
        "hint": guidance(page.hint, {parameter.name: parameter.label for parameter in search.of.parameters}),
        "pager": pagination.pager_of(page, page_address),
        "feed_address": feed_address(search),
        "json_feed_address": json_feed_address(search),
        "json_address": json_address(search),
        **_file_of(search, page.total),
        "save_address": save_address(search),
        "updates": updates.offered_for_search(search),
        **_instead_of_results(search, page),
    }
    return TemplateResponse(request, f"registry/{name}.html", context)


def _file_of(search: Search, total: int) -> JSONObject:
    """Return the address of the list as a CSV file, and how many rows it has at most if the list has more."""
    csv, most = "", ""
    if total:
        csv = csv_address(search)
    if total > MAX_ROWS:
        most = number(MAX_ROWS)
    return {"csv_address": csv, "csv_most": most}


def _instead_of_results(search: Search, page: ListPage) -> JSONObject:
    """Return similar documents and, for a search that finds nothing, other searches that find something."""
    closest: Sequence[Closest] = page.closest
    named, reliefs = None, []
    if not page.total:
        named = named_values(search)
        if named and not search.chosen:  # with filters, what is closest may be what they have left out
            closest = [document for document in page.closest if is_meant(document)]
        reliefs = reliefs_of(search, lambda less: find(less, 1).total)
    return {"named": named, "closest": _by_reason(search, closest), "reliefs": reliefs}


def as_csv(request: HttpRequest, name: ListName) -> HttpResponse:
    """Redirect to the list as a file, which the API writes."""
    return HttpResponseRedirect(csv_address(Search.read(registry_list(name), request.GET)))


def _documents_of_people(slugs: Sequence[str]) -> Mapping[str, bytes]:
    documents = reader().documents([("person", slug) for slug in slugs])
    return {slug: document.body for (_, slug), document in documents.items()}


def _filters(search: Search, total: int) -> str:
    """
    Return the filters beside a list as HTML: all pages of a search have the same.

    Args:
        total: how many results the button of a small screen promises.
    """

    def render() -> str:
        template = get_template("part/filters.html")
        return str(template.render({"panel": panel(search, facets(search)), "total": total}))

    return kept_part(f"filters {search.address()}", render)


def _by_reason(search: Search, closest: Sequence[Closest]) -> list[tuple[str, list[tuple[str, str]]]]:
    """Return names and addresses of similar documents, under each reason."""
    links_by_reason: dict[str, list[tuple[str, str]]] = {}
    for document in closest:
        links = links_by_reason.setdefault(guidance(document.why), [])
        links.append((document.name, f"{search.of.path}/{quote(document.id)}"))
    return list(links_by_reason.items())


def _feed(request: HttpRequest, name: ListName) -> HttpResponse:
    search = Search.read(registry_list(name), request.GET).filters
    feed = _feed_of(request, search, feed_address(search))
    return HttpResponse(atom(feed), content_type="application/atom+xml; charset=utf-8")


def _json_feed(request: HttpRequest, name: ListName) -> HttpResponse:
    search = Search.read(registry_list(name), request.GET).filters
    feed = _feed_of(request, search, json_feed_address(search))
    return HttpResponse(json_feed(feed), content_type=JSON_TYPE)


def _feed_of(request: HttpRequest, search: Search, here: str) -> Feed:
    """Return the latest matches of a search as the feed at the address *here*."""
    latest = replace(search, sort="updated") if "updated" in search.of.orders else search
    items = [msgspec.json.decode(item) for item in find(latest, FEED_ENTRIES).items]
    title = title_of(search) if not search.is_everything else str(search.of.label)
    return Feed(address(request), title, here, search.address(), items, search.of.path)


def panel(search: Search, facets: Mapping[str, CountedFacet]) -> Panel:
    """Return the filters of a search."""
    typed, linked = [], []
    for parameter in search.of.parameters:
        if parameter.control:
            typed.append(_typed(search, parameter))
        else:
            facet = _facet(search, parameter, facets.get(parameter.name, NO_VALUES))
            if facet is not None:
                linked.append(facet)
    # The form has inputs for these, so that hidden ones would send them twice.
    inputs = {"q", *(field.name for field in typed if field.value)}
    hidden = [(name, value) for name, value in search.pairs() if name not in inputs]
    return Panel(linked, typed, hidden, sum(map(len, search.chosen.values())))


def _typed(search: Search, parameter: ListFilter) -> Typed:
    values = search.chosen.get(parameter.name, ())
    value = values[0] if values and not parameter.is_repeated else ""
    return Typed(parameter.name, str(parameter.label), parameter.control, parameter.hint, value)


def _facet(search: Search, parameter: ListFilter, counted: CountedFacet) -> Facet | None:
    """Return a filter that is chosen by links; None where its values would not help to choose."""
    chosen = search.chosen.get(parameter.name, ())
    if not chosen and not _helps_to_choose(counted):
        return None
    options = list(_options(search, parameter, counted, chosen))
    shown, folded = options[:VALUES_SHOWN], []
    for option in options[VALUES_SHOWN:]:
        if option.is_chosen:
            shown.append(option)
        else:
            folded.append(option)
    if len(folded) < MIN_VALUES_FOLDED:
        shown, folded = options, []
    return Facet(parameter.name, str(parameter.label), shown, folded, counted.more > 0)


def _helps_to_choose(counted: CountedFacet) -> bool:
    if len(counted.values) < 2:  # a single value leaves the list as it is
        return False
    # Where each value is that of one item, a search finds the item sooner than a reader of this filter.
    most_items = max(counted_value.n for counted_value in counted.values)
    return len(counted.values) < VALUES_SHOWN or most_items > 1


def _options(search: Search, parameter: ListFilter, counted: CountedFacet, chosen: Sequence[str]) -> Iterator[Option]:
    """Yield the values that are counted, then those that are chosen and that no item has."""
    uncounted = list(chosen)
    address = _addresses(search, parameter)
    values = list(counted.values)
    if not parameter.is_repeated:
        # What is or has something comes before what is not or lacks it, whichever are more.
        values.sort(key=lambda counted_value: counted_value.value != "true")
    for counted_value in values:
        value = counted_value.value
        selected = _selected(parameter, counted_value, chosen)
        uncounted = [other for other in uncounted if other not in selected]
        after_click = address(_after_click(parameter, value, selected, chosen))
        yield Option(_id(parameter, value), parameter.label_of(value), counted_value.n, after_click, bool(selected))
    for value in uncounted:
        others = [other for other in chosen if other != value]
        yield Option(_id(parameter, value), shown_value(parameter, value), 0, address(others), is_chosen=True)


def _selected(parameter: ListFilter, counted_value: Counted, chosen: Sequence[str]) -> list[str]:
    """Return the chosen values that an option stands for: the same word in either number, or the key of its record."""
    selected: list[str] = []
    if counted_value.selected and parameter.is_repeated:
        selected += [other for other in chosen if singular(other) == singular(counted_value.value)]
    elif counted_value.selected:
        selected += chosen
    if counted_value.by_key:
        selected.append(counted_value.by_key)
    return selected


def _after_click(parameter: ListFilter, value: str, selected: Sequence[str], chosen: Sequence[str]) -> list[str]:
    """Return the values of a filter after a click on an option, which adds its value or removes what it stands for."""
    values = []
    if parameter.is_repeated:
        values = [other for other in chosen if other not in selected]
    if not selected:
        values.append(value)
    return values


def _id(parameter: ListFilter, value: str) -> str:
    return f"{parameter.name}-{quote_plus(value)}"


def _addresses(search: Search, parameter: ListFilter) -> Callable[[Sequence[str]], str]:
    """
    Return a function that gives the canonical address of the search with other values of a filter.

    A list has a hundred such links, which differ in these values alone: the rest of the query is encoded once.
    """
    head, tail = _around(search, parameter.name)

    def address(values: Sequence[str]) -> str:
        pairs = _query([(parameter.name, value) for value in sorted(values)])
        query = "&".join(filter(None, (head, pairs, tail)))
        return f"{search.of.path}?{query}" if query else search.of.path

    return address


def _around(search: Search, name: str) -> tuple[str, str]:
    """Return the query in the canonical order, before the values of a filter and behind them."""
    names = [parameter.name for parameter in search.of.parameters]
    before = {"q", *names[: names.index(name)]}
    head, tail = [], []
    for pair in search.pairs():
        if pair[0] in before:
            head.append(pair)
        elif pair[0] != name:
            tail.append(pair)
    return _query(head), _query(tail)


def _query(pairs: Sequence[tuple[str, str]]) -> str:
    return "&".join(f"{name}={quote_plus(value)}" for name, value in pairs)


def _html(options: Sequence[Option]) -> SafeString:
    return mark_safe("".join(option.html() for option in options))  # noqa: S308 - every part is escaped above


def company_rows(items: Sequence[bytes]) -> SafeString:
    """Return companies; their facts are those of the columns, for a screen without room for these."""
    return _rows(map(_company_row, map(_companies.decode, items)))


def person_rows(items: Sequence[bytes], documents: Callable[[Sequence[str]], Mapping[str, bytes]]) -> SafeString:
    """
    Return people with their positions.

    Args:
        documents: returns the documents of people by their slugs.
    """
    people = [_people.decode(item) for item in items]
    bodies = documents([person.slug for person in people])
    return _rows(_person_row(person, _positions(bodies.get(person.slug))) for person in people)


def framework_rows(items: Sequence[bytes]) -> SafeString:
    return _rows(map(_framework_row, map(_frameworks.decode, items)))


def _company_row(company: _CompanyItem) -> str:
    kind, industry = label(company.type), label(company.industry)
    team = people = ""
    if company.team_size is not None:
        team = number(company.team_size)
        people = ngettext("%(count)s person", "%(count)s people", company.team_size) % {"count": team}
    amount_html, treasury = _treasury(company)
    facts = []
    for text in (kind, industry, treasury, people):
        if text:
            facts.append(f"<bdi>{escape(text)}</bdi>")
    beside_name = ""
    if company.symbol:
        beside_name += f' <span class="mono quiet tiny">{escape(company.symbol)}</span>'
    if company.raising:
        beside_name += f" {pill_html('raising')}"
    if company.status not in {"", "active"}:
        beside_name += f" {pill_html(company.status)}"
    listing = _listing(
        f"/companies/{quote(company.id)}",
        company.name,
        mark_html(company.name, company.logo, key=company.id),
        beside_name,
        _summary(company.description),
        " · ".join(facts),
    )
    return (
        f"<td>{listing}</td>\n"
        f'<td class="if-room quiet" dir="auto">{escape(kind)}</td>\n'
        f'<td class="if-room quiet" dir="auto">{escape(industry)}</td>\n'
        f'<td class="number if-room">{team}</td>\n'
        f'<td class="number if-room">{amount_html}</td>\n'
        f'<td class="if-room quiet listed">{escape(month_or_text(company.created_at))}</td>'
    )


def _treasury(company: _CompanyItem) -> tuple[str, str]:
    """Return the HTML of the column of the treasury, and the text among the facts of a screen without columns."""
    amount = writing.amount(company.treasury)
    amount_html, fact = escape(amount), ""
    note = ""
    if company.treasury_note:
        note = treasury_label(company.treasury_note)
    if note:
        amount_html += f'<br><span class="quiet tiny">{escape(note)}</span>'
        fact = f"{note}: {amount}" if amount else ""
    elif amount:
        fact = gettext("%(amount)s treasury") % {"amount": amount}
    return amount_html, fact


def _person_row(person: _PersonItem, positions: str) -> str:
    mark = mark_html(person.name, person.picture, is_round=True, key=person.slug)
    count = number(person.company_count)
    facts = positions
    if person.company_count > POSITIONS_SHOWN:
        companies = ngettext("%(count)s company", "%(count)s companies", person.company_count) % {"count": count}
        facts = f"{positions}<br>{companies}" if positions else companies
    listing = _listing(f"/people/{quote(person.slug)}", person.name, mark, "", _summary(person.bio), facts)
    return f'<td>{listing}</td><td class="if-room quiet">{positions}</td><td class="number if-room">{count}</td>'


def _positions(body: bytes | None) -> str:
    """Return the first position of a person in each of the first organizations."""
    if body is None:
        return ""
    title_in: dict[str, str] = {}
    for position in _person_documents.decode(body).data.positions:
        if position.company:
            title_in.setdefault(position.company.name, position.title or "")
    lines = []
    for organization, title in islice(title_in.items(), POSITIONS_SHOWN):
        line = f"<bdi>{escape(organization)}</bdi>"
        if title:
            line = f"<bdi>{escape(title)}</bdi>, {line}"
        lines.append(line)
    more = len(title_in) - POSITIONS_SHOWN
    if more > 0:
        lines.append(gettext("and %(more)s more") % {"more": number(more)})
    return "<br>".join(lines)


def _framework_row(framework: _FrameworkItem) -> str:
    kinds = {"score": gettext("Score"), "program": gettext("Program")}
    kind = escape(kinds.get(framework.kind, framework.kind))
    operator, colour_key = "", framework.framework_id
    if framework.company:
        operator = escape(framework.company.name)
        # All frameworks of an organization have its colour.
        colour_key = framework.company.id or colour_key
    pill = ""
    if not framework.is_open:
        pill = f" {pill_html('not open')}"
    elif framework.kind == "program":  # a score is open unless something is missing
        pill = f" {pill_html('open')}"
    facts = kind
    if operator:
        facts = f"{kind} · <bdi>{operator}</bdi>"
    listing = _listing(
        f"/frameworks/{quote(framework.framework_id)}",
        framework.framework_name,
        mark_html(framework.framework_name, key=colour_key),
        pill,
        _summary(framework.description) or gettext("No description yet."),
        facts,
    )
    return (
        f'<td>{listing}</td><td class="if-room quiet">{kind}</td><td class="if-room quiet" dir="auto">{operator}</td>'
    )


def _listing(  # noqa: PLR0917 - the parts of a listing, in their order
    address: str, name: str, mark: str, beside: str, summary: str, facts: str | None = None
) -> str:
    """Return the first column: what is listed, with what is beside and under its name."""
    under = "" if facts is None else f'<p class="facts">{facts}</p>'
    return (
        f'<div class="listing">{mark}<div><div class="name"><a href="{escape(address)}" dir="auto">{escape(name)}</a>'
        f'{beside}</div><p class="said" dir="auto">{escape(summary)}</p>{under}</div></div>'
    )


def _rows(rows: Iterable[str]) -> SafeString:
    return mark_safe("\n".join(f"<tr>{row}</tr>" for row in rows))  # noqa: S308 - every part is escaped


def _summary(text: str | None) -> str:
    return markdown.plain(text, SUMMARY_CHARACTERS) if text else ""


_ROWS: Final[dict[ListName, Callable[[Sequence[bytes]], Sequence[Any]]]] = {
    "companies": company_rows,
    "people": lambda items: person_rows(items, _documents_of_people),
    "frameworks": framework_rows,
}
