"""The rows of a list page, from list items."""

from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import msgspec
from django.utils.html import format_html_join
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext, ngettext

from muniment.web.presenters import markdown
from muniment.web.presenters.marks import mark_html, pill_html

SUMMARY_CHARACTERS = 180


class _CompanyItem(msgspec.Struct, rename="camel"):
    id: str
    name: str
    symbol: str = ""
    icon: str | None = None
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


class _FrameworkCompany(msgspec.Struct):
    name: str
    slug: str = ""


class _FrameworkItem(msgspec.Struct, rename="camel"):
    framework_id: str
    framework_name: str
    kind: str
    is_open: bool = False
    description: str | None = None
    company: _FrameworkCompany | None = None


class CompanyRow(NamedTuple):
    """A company of a list; *facts* are those of its columns, for a screen without room for these."""

    address: str
    name: str
    symbol: str
    mark: SafeString
    pills: SafeString
    summary: str
    facts: SafeString
    type: str
    industry: str
    team: str
    treasury: str
    listed: str


class PersonRow(NamedTuple):
    """A person of a list."""

    address: str
    name: str
    mark: SafeString
    summary: str
    companies: str


class FrameworkRow(NamedTuple):
    """A framework of a list; *operator* runs it."""

    address: str
    name: str
    mark: SafeString
    pill: SafeString
    summary: str
    kind: str
    operator: str


def company_rows(items: Sequence[bytes]) -> list[CompanyRow]:
    return [_company_row(each) for each in map(_companies.decode, items)]


def person_rows(items: Sequence[bytes]) -> list[PersonRow]:
    return [
        PersonRow(
            f"/people/{quote(each.slug)}",
            each.name,
            mark_html(each.name, each.picture, is_round=True),
            _summary(each.bio),
            f"{each.company_count:,}",
        )
        for each in map(_people.decode, items)
    ]


def framework_rows(items: Sequence[bytes]) -> list[FrameworkRow]:
    kinds = {"score": gettext("Score"), "program": gettext("Program")}
    return [
        FrameworkRow(
            f"/frameworks/{quote(each.framework_id)}",
            each.framework_name,
            mark_html(each.framework_name),
            pill_html("open" if each.is_open else "not open"),
            _summary(each.description),
            kinds.get(each.kind, each.kind),
            each.company.name if each.company else "",
        )
        for each in map(_frameworks.decode, items)
    ]


def _company_row(found: _CompanyItem) -> CompanyRow:
    team = "" if found.team_size is None else f"{found.team_size:,}"
    states = [*(["raising"] if found.raising else []), *([found.status] if found.status not in {"", "active"} else [])]
    people = ngettext("%(count)s person", "%(count)s people", found.team_size or 0) % {"count": team} if team else ""
    facts = [each for each in (found.type, found.industry, found.treasury, people) if each]
    return CompanyRow(
        f"/companies/{quote(found.id)}",
        found.name,
        found.symbol,
        mark_html(found.name, found.icon),
        mark_safe("".join(f" {pill_html(each)}" for each in states)),  # noqa: S308 - pills are escaped
        _summary(found.description),
        format_html_join(" · ", "<bdi>{}</bdi>", ((each,) for each in facts)),
        found.type,
        found.industry,
        team,
        found.treasury,
        found.created_at,
    )


def _summary(text: str | None) -> str:
    return markdown.plain(text, SUMMARY_CHARACTERS) if text else ""


_companies = msgspec.json.Decoder(_CompanyItem)
_people = msgspec.json.Decoder(_PersonItem)
_frameworks = msgspec.json.Decoder(_FrameworkItem)
