"""The page that asks a statement, and the pages, feeds and frames of saved queries."""

import html
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import parse_timestamp
from muniment.languages.translated import translated
from muniment.registry_toml.document import Query
from muniment.registry_toml.queries import SHIPPED, saved_queries, saved_query
from muniment.registry_toml.reading import MAX_STATEMENT
from muniment.store.tables.answering import MAX_SQL_BYTES, Answered
from muniment.store.tables.outcome import OF_PAGE, QUERY, SAVED, STATE, Outcome
from muniment.store.tables.statements import parameters_in
from muniment.web.cards.views import FRAMED
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.presenters import results
from muniment.web.presenters.atom import Feed, atom
from muniment.web.requests.page_cache import once_if, published, reader

EMBEDDED_ROWS: Final = 20
FEED_ENTRIES: Final = 100
FRAME_SIZE: Final = (560, 420)
_TIMES: Final = ("updated_at", "at", "first_change", "assessed_at")


Where = tuple[str, list[tuple[str, str]]]
"""The path and the parameters of a page, without the order, the rows and the chart that a visitor has chosen."""


class Asked(NamedTuple):
    """A statement as a page has it: with the value of each parameter, None where it is missing."""

    sql: str
    parameters: list[tuple[str, str | None]]

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(name, value) for name, value in self.parameters if value is not None]


@published()
def query(request: HttpRequest) -> HttpResponse:
    """Ask a statement, and show its answer."""
    asked = _asked(request, request.GET.get("sql", "")[:MAX_SQL_BYTES])
    context = {
        "page_title": gettext("Query in SQL"),
        "room": "data",
        "asked": asked,
        "printed_address": f"{address(request)}{request.get_full_path()}",
        "most": MAX_STATEMENT,
        "saved": [shown(stored) for stored in saved_queries()],
        **_answer_of(request, asked, gettext("Answer"), (QUERY, [("sql", asked.sql), *asked.pairs])),
    }
    # It belongs to its statement, and may be another one in a moment.
    return once_if(is_lacking=True, response=TemplateResponse(request, "data/query.html", context))


@published()
def saved(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the answer to a saved query."""
    found, asked = _saved(request, slug)
    base = address(request)
    frame = f"{base}{SAVED}{slug}/embed{_ending(asked)}"
    context = {
        "page_title": found.title,
        "text": found.text,
        "slug": slug,
        "room": "data",
        "canonical": f"{base}{SAVED}{slug}{_ending(asked)}",
        "summary": found.text,
        "asked": asked,
        "feed_address": f"{SAVED}{slug}.atom{_ending(asked)}",
        "edit_address": f"{QUERY}?{urlencode([('sql', found.sql), *asked.pairs])}",
        "frame_code": _frame_code(frame, found.title),
        **_answer_of(request, asked, found.title, (f"{SAVED}{slug}", asked.pairs), found.chart),
    }
    return once_if(is_lacking=True, response=TemplateResponse(request, "data/saved.html", context))


@published()
def embedded(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the answer to a saved query as a page that other sites may put into a frame."""
    found, asked = _saved(request, slug)
    answer = _answer_of(request, asked, found.title, (f"{SAVED}{slug}", asked.pairs), found.chart)
    rows = []
    if answer["result"]:
        rows = answer["result"].rows[:EMBEDDED_ROWS]
    context = {
        "page_title": found.title,
        "home": f"{address(request)}{SAVED}{slug}{_ending(asked)}",
        "rows": rows,
        **answer,
    }
    response = TemplateResponse(request, "data/embedded.html", context)
    response["Content-Security-Policy"] = FRAMED
    response["X-Frame-Options"] = "ALLOWALL"
    response["Cross-Origin-Opener-Policy"] = "unsafe-none"
    return once_if(is_lacking=True, response=response)


@published(speaks=False)
def feed(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the rows of a saved query as a feed: a new row is a new entry."""
    found, asked = _saved(request, slug)
    outcome = _outcome_of(request)
    items: list[JSONObject] = []
    if outcome is not None:
        if outcome.problem is not None:
            raise outcome.problem
        if outcome.answered is not None:
            items = _entries(outcome.answered, reader().updated_at)
    page, ending = f"{SAVED}{slug}", _ending(asked)
    rows = Feed(address(request), found.title, f"{page}.atom{ending}", f"{page}{ending}", items, page)
    response = HttpResponse(atom(rows), content_type="application/atom+xml; charset=utf-8")
    return once_if(is_lacking=True, response=response)


# ---------------------------------------------------------------------- parts


def shown(found: Query) -> Query:
    """Return a query with its words in the language of the page: those that every registry has are translated."""
    if found not in SHIPPED:
        return found
    return Query(found.slug, gettext(found.title), gettext(found.text), found.sql, found.chart)


def _saved(request: HttpRequest, slug: str) -> tuple[Query, Asked]:
    found = saved_query(slug)
    if found is None:
        raise Http404("unknown query")
    return shown(found), _asked(request, found.sql)


def _asked(request: HttpRequest, sql: str) -> Asked:
    return Asked(sql, [(name, request.GET.get(name)) for name in parameters_in(sql) if name not in OF_PAGE])


def _ending(asked: Asked) -> str:
    return joined("", asked.pairs)


def _outcome_of(request: HttpRequest) -> Outcome | None:
    found: Outcome | None = request.META.get("asgi.scope", {}).get("state", {}).get(STATE)
    return found


def _answer_of(request: HttpRequest, asked: Asked, title: str, where: Where, chart: str = "") -> dict[str, Any]:
    """Return what a page shows of the answer to its statement, or of why there is none."""
    path, pairs = where
    statement = urlencode([("sql", asked.sql), *asked.pairs])
    context: dict[str, Any] = {
        "missing": [name for name, value in asked.parameters if value is None],
        "problem_text": None,
        "result": None,
        "csv_address": f"/api/v1/query?format=csv&{statement}",
        "json_address": f"/api/v1/query?{statement}",
        "share_address": joined(f"{address(request)}{path}", pairs),
    }
    outcome = _outcome_of(request)
    if outcome is None:
        return context
    if outcome.problem is not None:
        # What SQLite says of a statement is English, as the statement is.
        context["problem_text"] = translated(outcome.problem.message), translated(outcome.problem.hint)
    if outcome.answered is not None:
        answered = outcome.answered
        values = {name: request.GET.get(name, "") for name in ("_sort", "_page", "_chart")}
        chosen = results.chosen(values, len(answered.columns))
        context["result"] = results.result(title, answered, chosen, where, chart)
        context["milliseconds"] = 0 if outcome.is_kept else max(1, round(1_000 * answered.cpu_s))
        context["edition"] = answered.edition
    return context


def _frame_code(source: str, title: str) -> str:
    width, height = FRAME_SIZE
    return (
        f'<iframe src="{html.escape(source)}" width="{width}" height="{height}" title="{html.escape(title)}"'
        ' loading="lazy" sandbox="allow-popups allow-popups-to-escape-sandbox" style="border:0"></iframe>'
    )


def _entries(answered: Answered, updated_at: str) -> list[JSONObject]:
    """Return rows as entries: named by their first texts, known by all that they say, at the time that they name."""
    entries: list[JSONObject] = []
    for row in answered.rows[:FEED_ENTRIES]:
        texts, cells = [], []
        time = ""
        for column, value in zip(answered.columns, row, strict=True):
            if value is None:
                continue
            texts.append(str(value))
            cells.append(f"{column}: {value}")
            if not time and column in _TIMES and _is_time(value):
                time = str(value)
        entries.append(
            {
                "id": digest(repr(row).encode()),
                "name": " · ".join(texts[:2])[:200],
                "description": ", ".join(cells),
                "updatedAt": time or updated_at,
            }
        )
    return entries


def _is_time(value: object) -> bool:
    try:
        parse_timestamp(str(value))
    except ValueError:
        return False
    return True
