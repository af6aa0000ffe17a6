"""robots.txt, the sitemap, and the Atom feed of new listings."""

from urllib.parse import quote

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from muniment.store.queries import ListQuery
from muniment.store.search.closest import dated_keys
from muniment.web.context import address
from muniment.web.presenters.atom import Feed, atom
from muniment.web.requests.page_cache import published, reader

ADDRESSES_A_MAP = 5_000
FEED_ENTRIES = 50
_ROOMS = {"companies": "company", "people": "person", "frameworks": "framework"}
_SECONDS = len("2026-01-31T09:30:00")
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


@published(speaks=False)
def robots(request: HttpRequest) -> HttpResponse:
    private = ("/manage", "/review", "/operate", "/accounts", "/oauth")
    combined = "/*?*&"  # filters can be combined without end
    lines = ("User-agent: *", *(f"Disallow: {path}" for path in (*private, combined, "/data/query?")))
    return HttpResponse(
        "\n".join((*lines, "", f"Sitemap: {address(request)}/sitemap.xml", "")),
        content_type="text/plain; charset=utf-8",
    )


@published(speaks=False)
def sitemap(request: HttpRequest) -> HttpResponse:
    base = address(request)
    parts = "".join(
        f"<sitemap><loc>{base}/sitemap-{room}-{number}.xml</loc></sitemap>\n"
        for room, kind in _ROOMS.items()
        for number in range(1, -(-reader().count(kind) // ADDRESSES_A_MAP) + 1)
    )
    body = f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{parts}</sitemapindex>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


@published(speaks=False)
def sitemap_part(request: HttpRequest, room: str, number: str) -> HttpResponse:
    kind = _ROOMS.get(room)
    first = (int(number) - 1) * ADDRESSES_A_MAP
    if kind is None or first >= reader().count(kind):
        raise Http404("unknown part of the site map")
    base = address(request)
    entries = "".join(
        f"<url><loc>{base}/{room}/{quote(key)}</loc><lastmod>{at[:_SECONDS]}Z</lastmod></url>\n"
        for key, at in _dated_keys(kind, first)
    )
    body = f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


def _dated_keys(kind: str, skip: int) -> list[tuple[str, str]]:
    with reader().snapshot((kind, "*")) as (connection, _):
        return dated_keys(connection, kind, ADDRESSES_A_MAP, skip)


@published(speaks=False)
def feed(request: HttpRequest) -> HttpResponse:
    """Return the newest listings as an Atom feed."""
    found = reader().companies(ListQuery(page=1, page_size=FEED_ENTRIES))
    items = [msgspec.json.decode(item) for item in found.items]
    feed = Feed(address(request), gettext("New listings"), "/feed.atom", "/companies", items, "/companies")
    return HttpResponse(atom(feed), content_type="application/atom+xml; charset=utf-8")
