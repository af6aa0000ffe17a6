"""Lists as Atom feeds (RFC 4287)."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

from muniment.kernel.json import JSONMapping
from muniment.kernel.wire import parse_timestamp
from muniment.web.presenters import markdown

NEVER = "1970-01-01T00:00:00Z"
"""The update time of a feed without entries."""
_XML = '<?xml version="1.0" encoding="UTF-8"?>\n'


class Feed(NamedTuple):
    """
    A list as a feed.

    Args:
        base: the address of the instance.
        feed: the feed's path and query; with *base* its lasting id.
        page: those of the page with the same list.
        items: as on the wire.
        room: the path of the pages of single items; their addresses are the ids of the entries.
    """

    base: str
    title: str
    feed: str
    page: str
    items: Sequence[JSONMapping]
    room: str


def atom(feed: Feed) -> str:
    return "".join(_lines(feed))


def _lines(feed: Feed) -> Iterator[str]:
    here = quoteattr(feed.base + feed.feed)
    updated = max((item["updatedAt"] for item in feed.items), default=NEVER)
    yield f'{_XML}<feed xmlns="http://www.w3.org/2005/Atom">\n<id>{escape(feed.base + feed.feed)}</id>\n'
    yield f"<title>{_clean(feed.title)}</title>\n<updated>{_moment(updated)}</updated>\n"
    yield f'<link rel="self" type="application/atom+xml" href={here}/>\n'
    yield f'<link rel="alternate" type="text/html" href={quoteattr(feed.base + feed.page)}/>\n'
    yield f"<author><name>{escape(feed.base)}</name></author>\n"
    for item in feed.items:
        key = item.get("frameworkId") or item.get("slug") or item["id"]
        link = f"{feed.base}{feed.room}/{quote(key)}"
        said = markdown.plain(item.get("description") or item.get("bio") or item.get("body") or "", 300)
        yield f"<entry><id>{link}</id><title>{_clean(item.get('name') or item['frameworkName'])}</title>"
        yield f'<link href="{link}"/><updated>{_moment(item["updatedAt"])}</updated>'
        yield f"<summary>{_clean(said)}</summary></entry>\n"
    yield "</feed>\n"


def _clean(text: str) -> str:
    """Escape *text*, without the control characters that XML forbids."""
    return escape("".join(sign for sign in text if sign >= " " and sign not in "\ufffe\uffff"))


def _moment(text: str) -> str:
    return f"{parse_timestamp(text):%Y-%m-%dT%H:%M:%SZ}"
