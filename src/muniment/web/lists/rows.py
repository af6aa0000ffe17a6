"""The rows of a list page as HTML, from list items: in templates they would be half of a page's time."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import islice
from typing import Any
from urllib.parse import quote

import msgspec
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.languages.writing import number
from muniment.web.presenters import markdown
from muniment.web.presenters.marks import mark_html, pill_html
from muniment.web.wording.labels import label
from muniment.web.wording.places import month_or_text

SUMMARY_CHARACTERS = 180
POSITIONS_SHOWN = 2
"""Maximum number of positions of a person that are shown, in different organizations."""


class _CompanyItem(msgspec.Struct, rename="camel"):
    id: str
    name: str
    symbol: str = ""
    logo: Any = None
    raising: bool = False
    status: str = ""
    description: str | None = None
    type: str = ""
    industry: str = ""
    team_size: int | None = None
    treasury: str = ""
    created_at: str = ""


class _PersonItem(msgspec.Struct, rename="camel"):
    slug: str
    name: str
    picture: str | None = None
    bio: str | None = None
    company_count: int = 0


class _NamedCompany(msgspec.Struct):
    name: str
    id: str = ""


class _HeldPosition(msgspec.Struct):
    title: str | None = None
    company: _NamedCompany | None = None


class _HeldPositions(msgspec.Struct):
    positions: list[_HeldPosition] = []


class _Held(msgspec.Struct):
    data: _HeldPositions


class _FrameworkItem(msgspec.Struct, rename="camel"):
    framework_id: str
    framework_name: str
    kind: str
    is_open: bool = False
    description: str | None = None
    company: _NamedCompany | None = None


def company_rows(items: Sequence[bytes]) -> SafeString:
    """Return companies; their facts are those of the columns, for a screen without room for these."""
    return _rows(map(_company_row, map(_companies.decode, items)))


def person_rows(items: Sequence[bytes], documents: Callable[[Sequence[str]], Mapping[str, bytes]]) -> SafeString:
    """
    Return people with their positions.

    Args:
        documents: returns the documents of people by their slugs.
    """
    people = list(map(_people.decode, items))
    bodies = documents([each.slug for each in people])
    return _rows(_person_row(each, _positions(bodies.get(each.slug))) for each in people)


def framework_rows(items: Sequence[bytes]) -> SafeString:
    return _rows(map(_framework_row, map(_frameworks.decode, items)))


def _company_row(found: _CompanyItem) -> str:
    team = "" if found.team_size is None else number(found.team_size)
    people = ngettext("%(count)s person", "%(count)s people", found.team_size or 0) % {"count": team} if team else ""
    kind, industry = label(found.type), label(found.industry)
    treasury = gettext("%(amount)s treasury") % {"amount": found.treasury} if found.treasury else ""
    facts = " · ".join(f"<bdi>{escape(each)}</bdi>" for each in (kind, industry, treasury, people) if each)
    states = [*(["raising"] if found.raising else []), *([found.status] if found.status not in {"", "active"} else [])]
    pills = "".join(f" {pill_html(each)}" for each in states)
    symbol = f' <span class="mono quiet tiny">{escape(found.symbol)}</span>' if found.symbol else ""
    listing = _listing(
        f"/companies/{quote(found.id)}",
        found.name,
        mark_html(found.name, found.logo, key=found.id),
        f"{symbol}{pills}",
        _summary(found.description),
        facts,
    )
    return (
        f"<td>{listing}</td>\n"
        f'<td class="if-room quiet" dir="auto">{escape(kind)}</td>\n'
        f'<td class="if-room quiet" dir="auto">{escape(industry)}</td>\n'
        f'<td class="number if-room">{team}</td>\n'
        f'<td class="number if-room">{escape(found.treasury)}</td>\n'
        f'<td class="if-room quiet listed">{escape(month_or_text(found.created_at))}</td>'
    )


def _person_row(found: _PersonItem, positions: str) -> str:
    mark = mark_html(found.name, found.picture, is_round=True, key=found.slug)
    companies = ngettext("%(count)s company", "%(count)s companies", found.company_count)
    held = companies % {"count": number(found.company_count)} if found.company_count > POSITIONS_SHOWN else ""
    facts = "<br>".join(filter(None, (positions, held)))
    listing = _listing(f"/people/{quote(found.slug)}", found.name, mark, "", _summary(found.bio), facts)
    count = number(found.company_count)
    return f'<td>{listing}</td><td class="if-room quiet">{positions}</td><td class="number if-room">{count}</td>'


def _positions(body: bytes | None) -> str:
    """Return the first position of a person in each of the first organizations."""
    if body is None:
        return ""
    held: dict[str, str] = {}
    for each in _person_documents.decode(body).data.positions:
        if each.company:
            held.setdefault(each.company.name, each.title or "")
    shown = []
    for name, title in islice(held.items(), POSITIONS_SHOWN):
        organization = f"<bdi>{escape(name)}</bdi>"
        shown.append(f"<bdi>{escape(title)}</bdi>, {organization}" if title else organization)
    more = len(held) - POSITIONS_SHOWN
    if more > 0:
        shown.append(gettext("and %(more)s more") % {"more": number(more)})
    return "<br>".join(shown)


def _framework_row(found: _FrameworkItem) -> str:
    kinds = {"score": gettext("Score"), "program": gettext("Program")}
    kind = escape(kinds.get(found.kind, found.kind))
    operator = escape(found.company.name) if found.company else ""
    is_told = found.kind == "program" or not found.is_open  # a score is open unless something is missing
    listing = _listing(
        f"/frameworks/{quote(found.framework_id)}",
        found.framework_name,
        mark_html(found.framework_name, key=(found.company and found.company.id) or found.framework_id),
        f" {pill_html('open' if found.is_open else 'not open')}" if is_told else "",
        _summary(found.description) or gettext("No description yet."),
        f"{kind} · <bdi>{operator}</bdi>" if operator else kind,
    )
    return (
        f'<td>{listing}</td><td class="if-room quiet">{kind}</td><td class="if-room quiet" dir="auto">{operator}</td>'
    )


def _listing(  # noqa: PLR0917 - the parts of a listing, in their order
    address: str, name: str, mark: str, beside: str, summary: str, facts: str | None = None
) -> str:
    """Return the first column: what is listed, with what is beside and under its name."""
    under = "" if facts is None else f'<p class="facts">{facts}</p>'
    return (
        f'<div class="listing">{mark}<div><div class="name"><a href="{escape(address)}" dir="auto">{escape(name)}</a>'
        f'{beside}</div><p class="said" dir="auto">{escape(summary)}</p>{under}</div></div>'
    )


def _rows(rows: Iterable[str]) -> SafeString:
    return mark_safe("\n".join(f"<tr>{each}</tr>" for each in rows))  # noqa: S308 - every part is escaped


def _summary(text: str | None) -> str:
    return markdown.plain(text, SUMMARY_CHARACTERS) if text else ""


_companies = msgspec.json.Decoder(_CompanyItem)
_people = msgspec.json.Decoder(_PersonItem)
_person_documents = msgspec.json.Decoder(_Held)
_frameworks = msgspec.json.Decoder(_FrameworkItem)
