"""robots.txt, the sitemap, and the feeds of new listings and of single ones."""

import math
from urllib.parse import quote

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from muniment.store.queries import ListQuery
from muniment.store.search.closest import dated_keys
from muniment.web.context import address
from muniment.web.presenters.atom import JSON_TYPE, Feed, atom, encoded_feed, json_feed, moment
from muniment.web.presenters.differences import changed_label_of
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.company_lists import CHANGES_IN_WORDS
from muniment.web.views.public.documents import document

ADDRESSES_A_MAP = 5_000
FEED_ENTRIES = 50
_ROOMS = {"companies": "company", "people": "person", "frameworks": "framework"}
_SECONDS = len("2026-01-31T09:30:00")
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


@published(speaks=False)
def robots(request: HttpRequest) -> HttpResponse:
    private = ("/manage", "/review", "/operate", "/accounts", "/oauth", "/updates")
    endless = ("/*?*&", "/data/query?")  # filters can be combined, and statements written, without end
    lines = ["User-agent: *"]
    for path in (*private, *endless):
        lines.append(f"Disallow: {path}")
    lines += ["", f"Sitemap: {address(request)}/sitemap.xml", ""]
    return HttpResponse("\n".join(lines), content_type="text/plain; charset=utf-8")


@published(speaks=False)
def sitemap(request: HttpRequest) -> HttpResponse:
    base = address(request)
    parts = ""
    for room, kind in _ROOMS.items():
        maps = math.ceil(reader().count(kind) / ADDRESSES_A_MAP)
        for number in range(1, maps + 1):
            parts += f"<sitemap><loc>{base}/sitemap-{room}-{number}.xml</loc></sitemap>\n"
    body = f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{parts}</sitemapindex>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


@published(speaks=False)
def sitemap_part(request: HttpRequest, room: str, number: str) -> HttpResponse:
    kind = _ROOMS.get(room)
    first = (int(number) - 1) * ADDRESSES_A_MAP
    if kind is None or first >= reader().count(kind):
        raise Http404("unknown part of the site map")
    base, entries = address(request), ""
    for key, at in _dated_keys(kind, first):
        entries += f"<url><loc>{base}/{room}/{quote(key)}</loc><lastmod>{at[:_SECONDS]}Z</lastmod></url>\n"
    body = f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


def _dated_keys(kind: str, skip: int) -> list[tuple[str, str]]:
    with reader().snapshot((kind, "*")) as (connection, _):
        return dated_keys(connection, kind, ADDRESSES_A_MAP, skip)


@published(speaks=False)
def feed(request: HttpRequest) -> HttpResponse:
    """Return the newest listings as an Atom feed."""
    newest = _newest(request, "/feed.atom")
    return HttpResponse(atom(newest), content_type="application/atom+xml; charset=utf-8")


@published(speaks=False)
def newest_as_json(request: HttpRequest) -> HttpResponse:
    """Return the newest listings as a JSON Feed."""
    return HttpResponse(json_feed(_newest(request, "/feed.json")), content_type=JSON_TYPE)


def _newest(request: HttpRequest, here: str) -> Feed:
    found = reader().companies(ListQuery(page=1, page_size=FEED_ENTRIES))
    items = [msgspec.json.decode(item) for item in found.items]
    return Feed(address(request), gettext("New listings"), here, "/companies", items, "/companies")


@published(speaks=False)
def of_company(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the changes of a company's listing as a JSON Feed."""
    name = msgspec.json.decode(document("company", slug).body)["data"]["company"]["name"]
    return _changes_feed(request, "company", slug, name)


@published(speaks=False)
def of_person(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the changes of a person's profile as a JSON Feed."""
    name = msgspec.json.decode(document("person", slug).body)["data"]["name"]
    return _changes_feed(request, "person", slug, name)


def _changes_feed(request: HttpRequest, kind: str, slug: str, name: str) -> HttpResponse:
    """Return the latest changes of a listing or profile, each with the names of what changed."""
    room = "companies" if kind == "company" else "people"
    page = f"{address(request)}/{room}/{quote(slug)}"
    items = []
    for row in reader().changes_of(kind, slug, FEED_ENTRIES):
        labels = dict.fromkeys(changed_label_of(field, kind) for field in row.fields or ())
        change = str(CHANGES_IN_WORDS.get(row.change, row.change))
        text = f"{change}: {', '.join(labels)}" if labels else change
        items.append(
            {
                "id": f"{page}#change-{row.sequence}",
                "url": page,
                "title": f"{name}: {change}",
                "content_text": text,
                "date_published": moment(row.at),
            }
        )
    body = encoded_feed(name, f"{page}/feed.json", page, items)
    return HttpResponse(body, content_type=JSON_TYPE)
