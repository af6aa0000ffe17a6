"""Parts that pages have many of, as HTML. Templates of their own would cost most of a page's time."""

from collections.abc import Iterable, Mapping
from html import escape
from typing import Any
from urllib.parse import quote

from django.utils.safestring import SafeString, mark_safe

from muniment.web.presenters.company_lists import Member
from muniment.web.presenters.marks import mark_html
from muniment.web.requests.pagination import Link, Pager
from muniment.web.translating import gettext

Members = Mapping[str, Any]


def breakable(link: str) -> SafeString:
    """Allow line breaks in *link* after its slashes rather than within a word."""
    return mark_safe(escape(link).replace("/", "/<wbr>"))  # noqa: S308 - escaped


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
    """Return labels with their values; a value with an address is a link."""
    return mark_safe(f'<dl class="facts">{"".join(map(_fact, facts))}</dl>')  # noqa: S308 - every part is escaped


def _fact(fact: Members) -> str:
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
        words = gettext("and %(more)s more") % {"more": f"{person.more:,}"}
        titles += f'<div class="role"><a href="{address}/positions">{escape(words)}</a></div>'
    return (
        f'<li class="listing">{mark_html(person.name, person.picture, is_round=True)}<div>'
        f'<div class="name">{shown}</div>{titles}</div></li>'
    )
