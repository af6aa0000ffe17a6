"""
Lists as feeds: Atom (RFC 4287) and JSON Feed 1.1.

Source: https://www.jsonfeed.org/version/1.1/
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote
from xml.sax.saxutils import escape, quoteattr

import msgspec

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import parse_timestamp
from muniment.languages.offered import default
from muniment.web.presenters import markdown

NEVER = "1970-01-01T00:00:00Z"
"""The update time of a feed without entries."""
JSON_FEED: Final = "https://jsonfeed.org/version/1.1"
JSON_TYPE: Final = "application/feed+json; charset=utf-8"
_SUMMARY_CHARACTERS: Final = 300
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
    yield f"<title>{_clean(feed.title)}</title>\n<updated>{moment(updated)}</updated>\n"
    yield f'<link rel="self" type="application/atom+xml" href={here}/>\n'
    yield f'<link rel="alternate" type="text/html" href={quoteattr(feed.base + feed.page)}/>\n'
    yield f"<author><name>{escape(feed.base)}</name></author>\n"
    for item in feed.items:
        link = _link(feed, item)
        yield f"<entry><id>{link}</id><title>{_clean(_name(item))}</title>"
        yield f'<link href="{link}"/><updated>{moment(item["updatedAt"])}</updated>'
        yield f"<summary>{_clean(_summary(item))}</summary></entry>\n"
    yield "</feed>\n"


def json_feed(feed: Feed) -> bytes:
    items = []
    for item in feed.items:
        link = _link(feed, item)
        entry = {"id": link, "url": link, "title": _name(item), "content_text": _summary(item)}
        entry["date_modified"] = moment(item["updatedAt"])
        if item.get("themes"):
            entry["tags"] = item["themes"]
        items.append(entry)
    return encoded_feed(feed.title, feed.base + feed.feed, feed.base + feed.page, items)


def encoded_feed(title: str, here: str, page: str, items: Sequence[JSONObject]) -> bytes:
    """Return a JSON Feed in the language of the registry."""
    addresses = {"home_page_url": page, "feed_url": here}
    return msgspec.json.encode(
        {"version": JSON_FEED, "title": title, **addresses, "language": default(), "items": items}
    )


def _link(feed: Feed, item: JSONMapping) -> str:
    key = item.get("frameworkId") or item.get("slug") or item["id"]
    return f"{feed.base}{feed.room}/{quote(key)}"


def _name(item: JSONMapping) -> str:
    return str(item.get("name") or item["frameworkName"])


def _summary(item: JSONMapping) -> str:
    text = item.get("description") or item.get("bio") or item.get("body") or ""
    return markdown.plain(text, _SUMMARY_CHARACTERS)


def _clean(text: str) -> str:
    """Escape *text*, without the control characters that XML forbids."""
    return escape("".join(sign for sign in text if sign >= " " and sign not in "\ufffe\uffff"))


def moment(text: str) -> str:
    return f"{parse_timestamp(text):%Y-%m-%dT%H:%M:%SZ}"
