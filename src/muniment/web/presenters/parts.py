"""Parts that pages have many of, as HTML. Templates of their own would cost most of a page's time."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any, Final
from urllib.parse import quote

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.languages.writing import number
from muniment.web.lists.links import Order
from muniment.web.presenters.company_lists import Member
from muniment.web.presenters.marks import mark_html
from muniment.web.requests.pagination import Link, Pager

Members = Mapping[str, Any]
_CHOSEN: Final = ' aria-current="true"'
SHOWN_LINES: Final = 5
"""Of a longer text on a page for reviewers; the others are one click away."""
UNFOLDED_LINES: Final = 10
_ROOM: Final = re.compile(r"(?<![\w/:.])(/(?:manage|review|docs|connect|companies|people|frameworks)(?:/[a-z-]+)*)\b")
_URL: Final = re.compile(r"(https?://[^\s<>\"'()]+[^\s<>\"'().,;:!?])")


def breakable(link: str) -> SafeString:
    """Allow line breaks in *link* after its slashes rather than within a word."""
    return mark_safe(escape(link).replace("/", "/<wbr>"))  # noqa: S308 - escaped


def linked_html(text: str) -> SafeString:
    """Return a text whose URLs are links; search engines don't follow them, and they don't learn who came."""
    parts = _URL.split(text)
    shown = (
        f'<a href="{escape(part)}" rel="nofollow ugc noopener">{breakable(part)}</a>' if number % 2 else escape(part)
        for number, part in enumerate(parts)
    )
    return mark_safe("".join(shown))  # noqa: S308 - every part is escaped


def folded_html(text: str) -> SafeString:
    """Return a text as :func:`linked_html` does, its further lines behind a button that shows them."""
    lines = text.split("\n")
    more = len(lines) - SHOWN_LINES
    if len(lines) <= UNFOLDED_LINES:
        return _rows(lines)
    words = ngettext("Show %(count)s more line", "Show %(count)s more lines", more) % {"count": number(more)}
    return format_html(
        "{}<details><summary>{}</summary>{}</details>",
        _rows(lines[:SHOWN_LINES]),
        words,
        _rows(lines[SHOWN_LINES:]),
    )


def _rows(lines: Sequence[str]) -> SafeString:
    return format_html_join("", "<div>{}</div>", ((linked_html(line),) for line in lines))


def coded_html(text: str) -> SafeString:
    """Return a text with what is between backquotes as code."""
    parts = text.split("`")
    return format_html_join(
        "", "{}", ((format_html("<code>{}</code>", part) if n % 2 else part,) for n, part in enumerate(parts))
    )


def pathed_html(text: str) -> SafeString:
    """Return a text in which the addresses of the registry's own rooms are links."""
    parts = _ROOM.split(text)
    return format_html_join("", "{}", ((_link(part) if place % 2 else part,) for place, part in enumerate(parts)))


def _link(address: str) -> SafeString:
    return format_html('<a href="{0}">{0}</a>', address)


def crumbs_html(crumbs: Iterable[tuple[str, str]]) -> SafeString:
    """Return the way to a page; what has no address is the page itself."""
    shown = (
        f'<li><a href="{escape(address)}">{escape(str(label))}</a></li>'
        if address
        else f'<li><span aria-current="page" dir="auto">{escape(str(label))}</span></li>'
        for label, address in crumbs
    )
    start = f'<nav class="crumbs" aria-label="{escape(gettext("Breadcrumb"))}"><ol>'
    return mark_safe(f"{start}{''.join(shown)}</ol></nav>")  # noqa: S308 - every part is escaped


def facts_html(facts: Iterable[Members]) -> SafeString:
    """Return labels with their values; a value with an address is a link, and a list has a line for each."""
    return mark_safe(f'<dl class="facts">{"".join(map(_fact, facts))}</dl>')  # noqa: S308 - every part is escaped


def _fact(fact: Members) -> str:
    if isinstance(fact["value"], list):
        lines = "".join(f'<div dir="auto">{escape(str(line))}</div>' for line in fact["value"])
        return f"<dt>{escape(fact['label'])}</dt><dd>{lines}</dd>"
    value, address = str(fact["value"]), fact.get("address")
    if address:
        rel = ' rel="nofollow ugc noopener"' if fact.get("outside") else ""
        shown = f'<a href="{escape(address)}"{rel}>{breakable(value)}</a>'
    else:
        shown = escape(value)
    return f'<dt>{escape(fact["label"])}</dt><dd dir="auto">{shown}</dd>'


def pager_html(pager: Pager | str, label: str = "") -> SafeString:
    """Return the links of a pager; nothing for a single page, or for what has no pages."""
    if isinstance(pager, str) or (pager.page_count <= 1 and pager.page <= 1):
        return SafeString("")
    here = gettext("Page %(page)s of %(count)s") % {"page": pager.page, "count": pager.page_count}
    before = gettext('Previous<span class="unseen"> page</span>')
    after = gettext('Next<span class="unseen"> page</span>')
    first = f'<li><a rel="prev" href="{escape(pager.previous)}">{before}</a></li>' if pager.previous else ""
    last = f'<li><a rel="next" href="{escape(pager.next)}">{after}</a></li>' if pager.next else ""
    return mark_safe(  # noqa: S308 - every part is escaped
        f'<nav class="pager" aria-label="{escape(label or gettext("Pages"))}"><p class="quiet">{here}</p>\n'
        f"<ul>{first}{''.join(map(_numbered, pager.links))}{last}</ul></nav>"
    )


def _numbered(link: Link) -> str:
    label = escape(link.label)
    if link.here:
        shown = f'<span class="here" aria-current="page">{label}</span>'
    elif link.address:
        spoken = gettext("Page %(page)s") % {"page": label}
        shown = f'<a href="{escape(link.address)}" aria-label="{spoken}">{label}</a>'
    else:
        shown = '<span class="gap">…</span>'
    return f'<li class="if-room">{shown}</li>'


def chips_html(chips: Iterable[Members]) -> SafeString:
    """Return values that lead to a list of what has them too."""
    shown = (
        f'<li><a class="chip" href="{escape(each["address"])}" dir="auto">{escape(each["label"])}</a></li>'
        for each in chips
    )
    return mark_safe(f'<ul class="chips">{"".join(shown)}</ul>')  # noqa: S308 - every part is escaped


def team_html(people: Iterable[Member]) -> SafeString:
    """Return the people of a company with their titles; those with a profile lead there."""
    return mark_safe(f'<ul class="people">{"".join(map(_member, people))}</ul>')  # noqa: S308 - every part is escaped


def _member(person: Member) -> str:
    address = f"/people/{quote(person.slug, safe='')}"
    name = escape(person.name)
    shown = f'<a href="{address}" dir="auto">{name}</a>' if person.slug else f'<span dir="auto">{name}</span>'
    titles = "".join(f'<div class="role" dir="auto">{escape(str(title))}</div>' for title in person.titles)
    if person.more:
        words = gettext("and %(more)s more") % {"more": number(person.more)}
        titles += f'<div class="role"><a href="{address}/positions">{escape(words)}</a></div>'
    return (
        f'<li class="listing">{mark_html(person.name, person.picture, is_round=True, key=person.slug)}<div>'
        f'<div class="name">{shown}</div>{titles}</div></li>'
    )


def tiles_html(tiles: Iterable[Members]) -> SafeString:
    """Return figures with their labels; those with a part of their own lead there."""
    shown = "".join(map(_tile, tiles))
    return mark_safe(f'<dl class="figures slim">{shown}</dl>' if shown else "")  # noqa: S308 - every part is escaped


def _tile(tile: Members) -> str:
    value, address = escape(str(tile["value"])), tile.get("address")
    shown = f'<a href="{escape(address)}">{value}</a>' if address else value
    return f"<div><dt>{escape(tile['label'])}</dt><dd>{shown}</dd></div>"


def sections_html(sections: Sequence[tuple[str, str, int]]) -> SafeString:
    """Return links to the sections of a page with the number of what they hold; a single one needs none."""
    if len(sections) <= 1:
        return SafeString("")
    counted = (
        (anchor, f'{escape(label)} <span class="quiet">{number(count)}</span>' if count else escape(label))
        for anchor, label, count in sections
    )
    shown = (f'<li><a href="#{anchor}">{label}</a></li>' for anchor, label in counted)
    start = f'<nav class="sections" aria-label="{escape(gettext("On this page"))}"><ul>'
    return mark_safe(f"{start}{''.join(shown)}</ul></nav>")  # noqa: S308 - every part is escaped


def timeline_html(changes: Iterable[Members]) -> SafeString:
    """Return what changed, each with its day."""
    shown = "".join(map(_change, changes))
    return mark_safe(f'<ol class="timeline small">{shown}</ol>')  # noqa: S308 - every part is escaped


def _change(change: Members) -> str:
    fields = f': <span dir="auto">{escape(change["fields"])}</span>' if change["fields"] else ""
    day = f'<time class="quiet" datetime="{escape(change["at"])}">{escape(change["day"])}</time>'
    return f"<li>{escape(str(change['what']))}{fields} {day}</li>"


def related_html(organizations: Iterable[Members]) -> SafeString:
    """Return organizations with the number of people that they share with the one of the page."""
    shown = "".join(map(_related, organizations))
    return mark_safe(f'<ul class="cards">{shown}</ul>')  # noqa: S308 - every part is escaped


def _related(other: Members) -> str:
    shared = other["shared"]
    words = ngettext("%(shared)s person in common", "%(shared)s people in common", shared) % {"shared": shared}
    return (
        f'<li><a class="card" href="/companies/{quote(other["slug"], safe="")}"><div class="listing">'
        f'{mark_html(other["name"], other["logo"], key=other["slug"])}<div><h3 dir="auto">{escape(other["name"])}</h3>'
        f'<p class="quiet small">{words}</p></div></div></a></li>'
    )


def graph_html(title: str, kind: str, site: str, page: Members) -> SafeString:
    """
    Return what other sites show of a page that links here.

    Args:
        kind: that of the Open Graph protocol.
        page: the address of its picture; its own and its summary, as far as there are any.
    """
    shown = {"og:title": title, "og:type": kind, "og:site_name": site}
    if page.get("canonical"):
        shown["og:url"] = page["canonical"]
    if page.get("summary"):
        shown["og:description"] = page["summary"]
    shown |= {"og:image": page["card"], "og:image:width": "880", "og:image:height": "462", "og:image:alt": title}
    tags = "".join(f'<meta property="{name}" content="{escape(str(value))}">' for name, value in shown.items())
    return mark_safe(f'{tags}<meta name="twitter:card" content="summary_large_image">')  # noqa: S308 - every part is escaped


def orders_html(orders: Iterable[Order]) -> SafeString:
    """Return links to a list in each of its orders."""
    shown = (
        f' <a href="{escape(each.address)}" rel="nofollow"{_CHOSEN if each.is_chosen else ""}>{escape(each.label)}</a>'
        for each in orders
    )
    return mark_safe("".join(shown))  # noqa: S308 - every part is escaped
