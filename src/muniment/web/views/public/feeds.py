"""robots.txt, the sitemap, and the Atom feed of new listings."""

from collections.abc import Iterator
from urllib.parse import quote
from xml.sax.saxutils import escape

import msgspec
from django.http import Http404, HttpRequest, HttpResponse
from django.utils.translation import gettext

from muniment.kernel.wire import parse_timestamp
from muniment.store.queries import ListQuery
from muniment.web.context import address
from muniment.web.presenters import markdown
from muniment.web.requests.page_cache import published, reader

ADDRESSES_A_MAP = 5_000
FEED_ENTRIES = 50
_ROOMS = {"companies": "company", "people": "person", "frameworks": "framework"}
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


@published()
def robots(request: HttpRequest) -> HttpResponse:
    lines = ("User-agent: *", "Disallow: /manage", "Disallow: /review", "Disallow: /accounts", "Disallow: /oauth")
    return HttpResponse(
        "\n".join((*lines, "", f"Sitemap: {address(request)}/sitemap.xml", "")),
        content_type="text/plain; charset=utf-8",
    )


@published()
def sitemap(request: HttpRequest) -> HttpResponse:
    base = address(request)
    parts = "".join(
        f"<sitemap><loc>{base}/sitemap-{room}-{number}.xml</loc></sitemap>\n"
        for room, kind in _ROOMS.items()
        for number in range(1, -(-reader().count(kind) // ADDRESSES_A_MAP) + 1)
    )
    body = f'{_XML}<sitemapindex xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{parts}</sitemapindex>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


@published()
def sitemap_part(request: HttpRequest, room: str, number: str) -> HttpResponse:
    kind = _ROOMS.get(room)
    first = (int(number) - 1) * ADDRESSES_A_MAP
    if kind is None or first >= reader().count(kind):
        raise Http404("unknown part of the site map")
    base = address(request)
    entries = "".join(
        f"<url><loc>{base}/{room}/{quote(key)}</loc></url>\n"
        for key in reader().keys(kind, "", ADDRESSES_A_MAP, skip=first)
    )
    body = f'{_XML}<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">\n{entries}</urlset>\n'
    return HttpResponse(body, content_type="application/xml; charset=utf-8")


@published()
def feed(request: HttpRequest) -> HttpResponse:
    """Return the newest listings as an Atom feed."""
    base = address(request)
    found = reader().companies(ListQuery(page=1, page_size=FEED_ENTRIES))
    entries = [msgspec.json.decode(item) for item in found.items]
    updated = max((entry["updatedAt"] for entry in entries), default="1970-01-01T00:00:00Z")
    body = "".join(_atom(base, entries, updated))
    return HttpResponse(body, content_type="application/atom+xml; charset=utf-8")


def _atom(base: str, entries: list[dict[str, str]], updated: str) -> Iterator[str]:
    yield f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom">\n<id>{base}/feed.atom</id>\n'
    yield f"<title>{gettext('New listings')}</title>\n<updated>{_moment(updated)}</updated>\n"
    yield f'<link rel="self" href="{base}/feed.atom"/>\n<link rel="alternate" href="{base}/companies"/>\n'
    yield f"<author><name>{escape(base)}</name></author>\n"
    for entry in entries:
        link = f"{base}/companies/{quote(entry['id'])}"
        said = markdown.plain(entry.get("description") or entry.get("body") or "", 300)
        yield f'<entry><id>{link}</id><title>{_clean(entry["name"])}</title><link href="{link}"/>'
        yield f"<updated>{_moment(entry['updatedAt'])}</updated><summary>{_clean(said)}</summary></entry>\n"
    yield "</feed>\n"


def _clean(text: str) -> str:
    """Escape *text*, without the control characters that XML forbids."""
    return escape("".join(sign for sign in text if sign >= " " and sign not in "\ufffe\uffff"))


def _moment(text: str) -> str:
    return f"{parse_timestamp(text):%Y-%m-%dT%H:%M:%SZ}"
