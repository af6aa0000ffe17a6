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
        said: what it is, one line each.
        when: the day that matters, in words.
        at: the same for machines; empty if there is none.
    """

    company: Item
    said: tuple[str, ...]
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
    parts = _parts(item_of(each).id for each in (*raising, *(vote.item for vote in voting)))
    frameworks = sorted(map(framework_of, top.frameworks), key=lambda each: not each.is_open)
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
        "news": [(title, news_html(some), to) for title, some, to in news if some],
        "charts": [each for each in charts if each[1]],
        "frameworks": frameworks[:FRAMEWORKS_SHOWN],
    }
    return TemplateResponse(request, "registry/home.html", context)


def _parts(keys: Iterable[str]) -> dict[str, Parts]:
    names = [("company", key) for key in dict.fromkeys(keys)]
    return {key: parts_of(each.body) for (_, key), each in reader().documents(names).items()}


def _figures(stats: JSONObject, treasuries: int) -> list[JSONObject]:
    every = [
        (gettext("companies"), number(stats["total"]), "/companies"),
        (gettext("people"), number(stats["founders"]), "/people"),
        (gettext("raising now"), number(stats["projectsRaising"]), "/companies?raising=true"),
        (
            ngettext("combined treasury of %(count)s company", "combined treasury of %(count)s companies", treasuries)
            % {"count": number(treasuries)},
            writing.amount(stats["totalTreasury"]) if treasuries else "0",
            "/companies?sort=treasury",
        ),
        (gettext("frameworks"), number(stats["frameworks"]), "/frameworks"),
    ]
    return [{"label": label, "value": value, "address": to} for label, value, to in every if value != "0"]


def parts_of(body: bytes) -> Parts:
    """Return the parts of a published company."""
    return _document(body).data


def raising_news(items: Iterable[bytes], parts: Mapping[str, Parts]) -> list[News]:
    """Return the companies that raise, with the round that is open, as far as it is public."""
    return [_raising(item, parts.get(item.id, Parts())) for item in map(item_of, items)]


def _raising(item: Item, parts: Parts) -> News:
    rounds = rounds_of({"fundingRounds": parts.funding_rounds})
    current = next((each for each in rounds if each["state"] == "open"), {})
    said = " · ".join(str(current[name]) for name in ("name", "target") if current.get(name))
    if closed := day_or_text(current.get("closed")):
        return News(item, (said,), gettext("Closes %(day)s") % {"day": closed}, current["closed"])
    opened = day_or_text(current.get("opened"))
    when = gettext("Since %(day)s") % {"day": opened} if opened else ""
    return News(item, (said,), when, current.get("opened") or "")


def voting_news(votes: Iterable[Vote], parts: Mapping[str, Parts]) -> list[News]:
    """Return the companies whose votes end soon, with the titles of these votes."""
    return [_voting(item_of(vote.item), vote.ends, parts) for vote in votes]


def _voting(item: Item, ends: str, parts: Mapping[str, Parts]) -> News:
    titles = [
        str(each.get("title") or each.get("id") or gettext("Proposal"))
        for each in parts.get(item.id, Parts()).proposals
        if each.get("status") == "active" and str(each.get("endDate"))[:10] == ends
    ]
    said = titles[:TITLES_SHOWN]
    if more := titles[TITLES_SHOWN:]:
        said.append(gettext("and %(more)s more") % {"more": len(more)})
    return News(item, tuple(said), _ending(ends), ends)


def _ending(ends: str) -> str:
    if ends == company_lists.today():
        return gettext("Ends today")
    return gettext("Ends %(day)s") % {"day": day_or_text(ends)}


def updated_news(changes: Iterable[Updated]) -> list[News]:
    """Return the companies that changed last, with what changed."""
    return [
        News(item_of(each.item), (fields_of(each.change.fields),), day(each.change.at), each.change.at)
        for each in changes
    ]


def fields_of(names: Sequence[str] | None) -> str:
    """Return what an update changed, in words."""
    labels = list(dict.fromkeys(map(changed_label_of, names or ())))
    more = [gettext("%(count)d more") % {"count": len(labels) - FIELDS_SHOWN}] if len(labels) > FIELDS_SHOWN else []
    return ", ".join([*labels[:FIELDS_SHOWN], *more])


def new_news(items: Iterable[bytes]) -> list[News]:
    """Return the newest listings."""
    found = map(item_of, items)
    return [News(item, (item.description or "",), month_or_text(item.created_at)) for item in found]


def news_html(news: Iterable[News]) -> SafeString:
    """Return news as the items of a list."""
    return mark_safe("".join(map(_news, news)))  # noqa: S308 - every part is escaped


def _news(news: News) -> str:
    company = news.company
    when = f'<time datetime="{escape(news.at)}">{escape(news.when)}</time>' if news.at else escape(news.when)
    said = "".join(
        f'<p class="said" dir="auto">{escape(markdown.plain(line, LINE_CHARACTERS))}</p>' for line in news.said if line
    )
    return (
        f'<li class="listing">{mark_html(company.name, company.logo, key=company.id)}<div><div class="row apart">'
        f'<a class="name" href="{company.address}" dir="auto">{escape(company.name)}</a>'
        f'<span class="quiet tiny">{when}</span></div>{said}</div></li>'
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
    values = facet.values if facet else ()
    counted = [each for each in values if each.value]
    names = words() if counted else {}
    slices = [
        ChartSlice(
            names.get(each.value) or labelled(name, each.value),
            each.n,
            number(each.n),
            address=joined("/companies", [(name, each.value)]),
        )
        for each in counted
    ]
    return charts.bar(title, _described(title, slices), slices, unit=gettext("Companies"))


def _described(title: str, slices: Sequence[ChartSlice]) -> str:
    named = ", ".join(f"{each.label} {each.text}" for each in slices)
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
    return {
        "@context": "https://schema.org",
        "@type": "Dataset",
        "@id": f"{base}/",
        "name": name,
        "url": f"{base}/",
        "description": gettext("Organizations, the people behind them and assessment frameworks."),
        "dateModified": modified_at,
        "isAccessibleForFree": True,
        **({"license": licence} if licence else {}),
        "creator": {"@type": "Organization", "name": name, "url": f"{base}/"},
        "distribution": [
            {"@type": "DataDownload", "encodingFormat": kind, "contentUrl": f"{base}/exports/{file}"}
            for file, kind in formats
        ],
    }
