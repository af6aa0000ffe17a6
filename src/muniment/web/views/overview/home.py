"""The front page: what is raised and voted on now, what is new and what changed, and charts that lead to lists."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final, NamedTuple
from urllib.parse import quote

import msgspec
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.kernel.json import JSONObject
from muniment.languages import writing
from muniment.languages.writing import number
from muniment.registry_toml import applied
from muniment.store.lists.facets import Facet
from muniment.store.lists.highlights import Updated, Vote, highlights
from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.lists.search import joined
from muniment.web.presenters import charts, company_lists, markdown
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters.charts import ChartSlice
from muniment.web.presenters.company import day, day_or_text, rounds_of
from muniment.web.presenters.differences import changed_label_of
from muniment.web.presenters.frameworks import framework_of
from muniment.web.presenters.marks import mark_html
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.registry import json_for_script
from muniment.web.wording.labels import labelled
from muniment.web.wording.places import country_names, month_or_text

SHOWN: Final = 6
FEW: Final = 3
"""Minimum number of the newest listings shown beside a few changes, so that no half of a row is empty."""
BARS: Final = 8
FRAMEWORKS_SHOWN: Final = 3

_decode = msgspec.json.decode


TITLES_SHOWN: Final = 2
"""Maximum titles shown of a company's votes that end on the same day."""
LINE_CHARACTERS: Final = 160
FIELDS_SHOWN: Final = 4
"""Maximum number of fields shown of those that a change names."""


class Item(msgspec.Struct, rename="camel"):
    """A company of a list, with what the front page shows of it."""

    id: str
    name: str
    logo: Any = None
    description: str | None = None
    type: str = ""
    treasury: str = ""
    treasury_amount: dict[str, str] | None = None
    created_at: str = ""

    @property
    def address(self) -> str:
        return f"/companies/{quote(self.id)}"


class Parts(msgspec.Struct, rename="camel"):
    """The parts of a company that are news."""

    proposals: list[JSONObject] = []
    funding_rounds: list[JSONObject] = []


class _Document(msgspec.Struct):
    data: Parts


class News(NamedTuple):
    """
    A company, with one thing that is new about it.

    Args:
        lines: what it is, one line each.
        when: the day that matters, in words.
        at: the same for machines; empty if there is none.
    """

    company: Item
    lines: tuple[str, ...]
    when: str = ""
    at: str = ""


item_of = msgspec.json.Decoder(Item).decode
_document = msgspec.json.Decoder(_Document).decode


@published(daily=True)
def home(request: HttpRequest) -> HttpResponse:
    """Show what the registry is, what happens in it now, and where its listings are."""
    source = reader()
    stats = _decode(source.stats().body)["data"]
    top = highlights(source, lists.today(), BARS)
    facets = source.facets("company", ListQuery(), ("type", "industry", "country"), BARS).by_name
    raising, voting = top.raising[:SHOWN], top.voting[:SHOWN]
    items_with_news = [*raising, *(vote.item for vote in voting)]
    parts = _parts(item_of(item).id for item in items_with_news)
    frameworks = sorted(map(framework_of, top.frameworks), key=lambda framework: not framework.is_open)
    charts = [
        (gettext("Largest treasuries"), treasury_chart(top.largest), "/companies?sort=treasury"),
        (gettext("By type"), facet_chart(gettext("Companies by type"), "type", facets.get("type")), "/companies"),
        (
            gettext("By industry"),
            facet_chart(gettext("Companies by industry"), "industry", facets.get("industry")),
            "/companies",
        ),
        (
            gettext("By country"),
            facet_chart(gettext("Companies by country"), "country", facets.get("country"), country_names),
            "/map",
        ),
    ]
    updated = top.updated[:SHOWN]
    beside = max(len(updated), FEW) if updated else SHOWN
    newest = source.companies(ListQuery(page=1, page_size=beside)).items
    news = [
        (gettext("Raising now"), raising_news(raising, parts), "/companies?raising=true"),
        (gettext("Votes ending soon"), voting_news(voting, parts), ""),
        (gettext("New listings"), new_news(newest), "/companies"),
        (gettext("Recently changed"), updated_news(updated), "/companies?sort=updated"),
    ]
    dataset = profile_of_registry(applied.registry_name(), address(request), source.modified_at)
    context = {
        "json_ld": json_for_script(dataset),
        "room": "home",
        "figures": _figures(stats, top.treasuries),
        "has_companies": stats["total"],
        "news": [(title, news_html(companies), to) for title, companies, to in news if companies],
        "charts": [(title, chart, to) for title, chart, to in charts if chart],
        "frameworks": frameworks[:FRAMEWORKS_SHOWN],
    }
    return TemplateResponse(request, "registry/home.html", context)


def _parts(keys: Iterable[str]) -> dict[str, Parts]:
    documents = reader().documents([("company", key) for key in dict.fromkeys(keys)])
    return {key: parts_of(document.body) for (_, key), document in documents.items()}


def _figures(stats: JSONObject, treasuries: int) -> list[JSONObject]:
    combined = ngettext(
        "combined treasury of %(count)s company", "combined treasury of %(count)s companies", treasuries
    )
    total_treasury = "0"
    if treasuries:
        total_treasury = writing.amount(stats["totalTreasury"])
    figures = [
        (gettext("companies"), number(stats["total"]), "/companies"),
        (gettext("people"), number(stats["founders"]), "/people"),
        (gettext("raising now"), number(stats["projectsRaising"]), "/companies?raising=true"),
        (combined % {"count": number(treasuries)}, total_treasury, "/companies?sort=treasury"),
        (gettext("frameworks"), number(stats["frameworks"]), "/frameworks"),
    ]
    return [{"label": label, "value": value, "address": to} for label, value, to in figures if value != "0"]


def parts_of(body: bytes) -> Parts:
    """Return the parts of a published company."""
    return _document(body).data


def raising_news(items: Iterable[bytes], parts: Mapping[str, Parts]) -> list[News]:
    """Return the companies that raise, with the round that is open, as far as it is public."""
    return [_raising(item, parts.get(item.id, Parts())) for item in map(item_of, items)]


def _raising(item: Item, parts: Parts) -> News:
    open_round: JSONObject = {}
    for funding_round in rounds_of({"fundingRounds": parts.funding_rounds}):
        if funding_round["state"] == "open":
            open_round = funding_round
            break
    name_and_target = (open_round.get("name"), open_round.get("target"))
    line = " · ".join(str(text) for text in name_and_target if text)
    closed, opened = open_round.get("closed"), open_round.get("opened")
    if closed:
        return News(item, (line,), gettext("Closes %(day)s") % {"day": day_or_text(closed)}, closed)
    if opened:
        return News(item, (line,), gettext("Since %(day)s") % {"day": day_or_text(opened)}, opened)
    return News(item, (line,))


def voting_news(votes: Iterable[Vote], parts: Mapping[str, Parts]) -> list[News]:
    """Return the companies whose votes end soon, with the titles of these votes."""
    return [_voting(item_of(vote.item), vote.ends, parts) for vote in votes]


def _voting(item: Item, ends: str, parts: Mapping[str, Parts]) -> News:
    titles = []
    for proposal in parts.get(item.id, Parts()).proposals:
        if proposal.get("status") == "active" and str(proposal.get("endDate"))[:10] == ends:
            titles.append(str(proposal.get("title") or proposal.get("id") or gettext("Proposal")))
    lines = titles[:TITLES_SHOWN]
    if len(titles) > TITLES_SHOWN:
        lines.append(gettext("and %(more)s more") % {"more": len(titles) - TITLES_SHOWN})
    return News(item, tuple(lines), _ending(ends), ends)


def _ending(ends: str) -> str:
    if ends == company_lists.today():
        return gettext("Ends today")
    return gettext("Ends %(day)s") % {"day": day_or_text(ends)}


def updated_news(changes: Iterable[Updated]) -> list[News]:
    """Return the companies that changed last, with what changed."""
    news = []
    for updated in changes:
        change = updated.change
        news.append(News(item_of(updated.item), (fields_of(change.fields),), day(change.at), change.at))
    return news


def fields_of(names: Sequence[str] | None) -> str:
    """Return what an update changed, in words."""
    labels = list(dict.fromkeys(map(changed_label_of, names or ())))
    more = len(labels) - FIELDS_SHOWN
    if more > 0:
        labels[FIELDS_SHOWN:] = [gettext("%(count)d more") % {"count": more}]
    return ", ".join(labels)


def new_news(items: Iterable[bytes]) -> list[News]:
    """Return the newest listings."""
    listings = [item_of(item) for item in items]
    return [News(item, (item.description or "",), month_or_text(item.created_at)) for item in listings]


def news_html(news: Iterable[News]) -> SafeString:
    """Return news as the items of a list."""
    return mark_safe("".join(map(_news, news)))  # noqa: S308 - every part is escaped


def _news(news: News) -> str:
    company = news.company
    when = escape(news.when)
    if news.at:
        when = f'<time datetime="{escape(news.at)}">{when}</time>'
    lines = ""
    for line in news.lines:
        if line:
            lines += f'<p class="said" dir="auto">{escape(markdown.plain(line, LINE_CHARACTERS))}</p>'
    return (
        f'<li class="listing">{mark_html(company.name, company.logo, key=company.id)}<div><div class="row apart">'
        f'<a class="name" href="{company.address}" dir="auto">{escape(company.name)}</a>'
        f'<span class="quiet tiny">{when}</span></div>{lines}</div></li>'
    )


def treasury_chart(items: Iterable[bytes]) -> SafeString:
    """Draw the largest treasuries; each bar leads to its company."""
    slices = []
    for item in map(item_of, items):
        amount = float((item.treasury_amount or {}).get("amount") or 0)
        slices.append(ChartSlice(item.name, amount, writing.amount(item.treasury), address=item.address))
    title = gettext("Largest treasuries")
    return charts.bar(title, _described(title, slices), slices, unit=gettext("Treasury"))


def facet_chart(
    title: str, name: str, facet: Facet | None, words: Callable[[], Mapping[str, str]] = dict
) -> SafeString:
    """
    Draw how many companies have each value of a filter; each bar leads to the list of these.

    Args:
        words: returns the names of values that are codes.
    """
    names, slices = words(), []
    values = facet.values if facet else ()
    for value, count, *_ in values:
        if value:
            label = names.get(value) or labelled(name, value)
            slices.append(ChartSlice(label, count, number(count), address=joined("/companies", [(name, value)])))
    return charts.bar(title, _described(title, slices), slices, unit=gettext("Companies"))


def _described(title: str, slices: Sequence[ChartSlice]) -> str:
    named = ", ".join(f"{slice_.label} {slice_.text}" for slice_ in slices)
    return f"{title}: {named}."


def profile_of_registry(name: str, base: str, modified_at: str) -> JSONObject:
    """Describe the registry as a data set in the schema.org vocabulary."""
    declared = applied.current().registry
    licence = declared.licence_url or declared.licence
    formats = (
        ("companies-latest.jsonl.gz", "application/jsonl"),
        ("companies-latest.csv.gz", "text/csv"),
        ("tables-latest.sqlite.gz", "application/vnd.sqlite3"),
    )
    downloads = []
    for file, kind in formats:
        downloads.append({"@type": "DataDownload", "encodingFormat": kind, "contentUrl": f"{base}/exports/{file}"})
    profile: JSONObject = {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "@id": f"{base}/",
        "name": name,
        "url": f"{base}/",
        "description": gettext("Organizations, the people behind them and assessment frameworks."),
        "dateModified": modified_at,
        "isAccessibleForFree": True,
    }
    if licence:
        profile["license"] = licence
    profile["creator"] = {"@type": "Organization", "name": name, "url": f"{base}/"}
    profile["distribution"] = downloads
    return profile
