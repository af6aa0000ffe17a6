"""
The pages of a company's long lists, each with an address of its own: text, team, proposals, holders, history.

A part is rendered from a bundle, which is the published one or that of a draft.
"""

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final, cast
from urllib.parse import quote

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.csv_text import CsvForm, CsvText
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.languages import writing
from muniment.schema.item_lists import ItemList
from muniment.store import search_text
from muniment.store.lists import ties
from muniment.store.sheets import entry_rows
from muniment.web.context import address
from muniment.web.presenters import company_lists as lists
from muniment.web.presenters.company import day, proposal_row, rounds_of
from muniment.web.presenters.differences import changed_label_of
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.documents import bundle_of
from muniment.web.wording.states import outcome

TEXT_CHARACTERS: Final = 10_000
PEOPLE: Final = 60
ROLES: Final = 40
PROPOSALS: Final = 30
HOLDERS: Final = 100
ROUNDS: Final = 100
CHANGES: Final = 60
CHANGES_KEPT: Final = 600
"""The page of the history shows no more; the change feed has all."""
_LISTS: Final = {"team": "positions", "proposals": "proposals", "cap-table": "capTable", "funding": "fundingRounds"}
"""The lists that are files for spreadsheets too, by the last part of their address."""
_FOUND_BY: Final = {"proposals": ("title", "id"), "cap-table": ("name", "address")}
"""The members of a row by whose words a list is searched."""
_MAX_WORDS: Final = 200
"""Characters that are searched for."""
CHANGES_IN_WORDS: Final = {
    "published": gettext_lazy("Added to this registry"),
    "updated": gettext_lazy("Updated"),
    "unlisted": gettext_lazy("Unlisted"),
}


def about_part(request: HttpRequest, bundle: JSONObject, home: str = "") -> HttpResponse:
    """Show the whole text about a company."""
    parts = lists.parts_of(bundle["company"].get("body") or "", TEXT_CHARACTERS)
    page = lists.cut(parts, request.GET.get("page", ""), 1)
    text = page.items[0] if page.items else ""
    return _respond(request, bundle, home, "about", gettext("About"), page, text=text)


def team_part(request: HttpRequest, bundle: JSONObject, home: str = "") -> HttpResponse:
    """Show the people of a company with their titles, or its titles with their people."""
    positions = bundle.get("positions") or []
    is_by_role = request.GET.get("by") == "role"
    number = request.GET.get("page", "")
    page: Page[Any]
    roles, kept = None, {}
    if is_by_role:
        page = lists.cut(lists.roles_of(positions), number, ROLES)
        roles, kept = page.items, {"by": "role"}
    else:
        page = lists.cut(lists.team_of(positions), number, PEOPLE)
    return _respond(
        request,
        bundle,
        home,
        "team",
        gettext("Team"),
        page,
        kept,
        roles=roles,
        members=page.items,
        is_by_role=is_by_role,
        positions_total=len(positions),
    )


def proposals_part(request: HttpRequest, bundle: JSONObject, home: str = "") -> HttpResponse:
    """Show the proposals of a company, those that can be voted on first."""
    today = lists.today()
    q = _words_asked(request)
    words = {"q": q} if q else {}
    rows = lists.by_relevance(_having(bundle.get("proposals") or [], "proposals", q), today)
    counts = lists.states_of(rows, today)
    state = request.GET.get("status", "")
    if state not in counts:
        state = ""
    shown, kept = rows, words
    if state:
        shown = [row for row in rows if lists.state_of(row, today) == state]
        kept = {**words, "status": state}
    page = lists.cut(shown, request.GET.get("page", ""), PROPOSALS)
    return _respond(
        request,
        bundle,
        home,
        "proposals",
        gettext("Proposals"),
        page,
        kept,
        q=q,
        prompt=gettext("Find a proposal by its title or number"),
        has_finder=bool(q) or len(rows) > PROPOSALS,
        proposals=[proposal_row(row) for row in page.items],
        choices=_choices_of_state(request.path, words, len(rows), counts, state),
    )


def _choices_of_state(
    path: str, words: dict[str, str], total: int, counts: Mapping[str, int], state: str
) -> list[JSONObject]:
    """Return links to the proposals of each state, with their numbers; the first link leads to all."""
    all_address = lists.address_of(path, 1, words)
    choices = [{"label": gettext("All"), "count": total, "address": all_address, "here": not state}]
    for name, count in counts.items():
        if name:
            state_address = lists.address_of(path, 1, {**words, "status": name})
            choices.append({"label": outcome(name), "count": count, "address": state_address, "here": name == state})
    return choices


def cap_table_part(request: HttpRequest, bundle: JSONObject, home: str = "") -> HttpResponse:
    """Show the token holders of a company."""
    rows = bundle.get("capTable") or []
    q = _words_asked(request)
    words = {"q": q} if q else {}
    page = lists.cut(_having(rows, "cap-table", q), request.GET.get("page", ""), HOLDERS)
    return _respond(
        request,
        bundle,
        home,
        "cap_table",
        gettext("Cap table"),
        page,
        words,
        q=q,
        prompt=gettext("Find a holder by name or address"),
        has_finder=bool(q) or len(rows) > HOLDERS,
        total=len(rows),
        holders=lists.holders_shown(page.items, bundle["company"].get("symbol") or ""),
        holders_have_names=lists.have_names(rows),
        completeness=lists.completeness_of(rows),
        concentration=lists.concentration_of(rows),
    )


def _words_asked(request: HttpRequest) -> str:
    return " ".join(request.GET.get("q", "").replace("\0", " ").split())[:_MAX_WORDS].rstrip()


def _having(rows: list[JSONObject], part: str, q: str) -> list[JSONObject]:
    """Return the rows of a list that have all words of *q* as parts of what they are found by."""
    words = search_text.fold(q).split()
    if not words:
        return rows
    matches = []
    for row in rows:
        text = search_text.fold(" ".join(str(row.get(name) or "") for name in _FOUND_BY[part]))
        if all(word in text for word in words):
            matches.append(row)
    return matches


def funding_part(request: HttpRequest, bundle: JSONObject, home: str = "") -> HttpResponse:
    """Show the funding rounds of a company."""
    page = lists.cut(rounds_of(bundle), request.GET.get("page", ""), ROUNDS)
    return _respond(request, bundle, home, "funding", gettext("Funding"), page, rounds=page.items)


@published("page")
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """Show what changed in a company's listing, the latest first."""
    bundle = bundle_of(slug)
    page = lists.cut(changes_of(slug, CHANGES_KEPT), request.GET.get("page", ""), CHANGES)
    return _respond(request, bundle, "", "history", gettext("History"), page, changes=page.items)


def changes_of(slug: str, most: int, kind: str = "company") -> list[JSONObject]:
    """Return the latest changes of a published listing or profile, each with the names of what changed."""
    changes: list[JSONObject] = []
    before: JSONObject = {}
    for row in reader().changes_of(kind, slug, most):
        labels = dict.fromkeys(changed_label_of(name, kind) for name in row.fields or ())
        change = {
            "is_first": row.change == "published",
            "what": CHANGES_IN_WORDS.get(row.change, row.change),
            "fields": ", ".join(labels),
            "day": day(row.at),
        }
        if change != before:  # several edits of the same fields on a day would say the same
            changes.append({**change, "at": row.at})
        before = change
    return changes


def parts_of(bundle: JSONObject, home: str, here: str, *, has_network: bool | None = None) -> list[JSONObject]:
    """
    Return the pages of a listing that have content, and the one where the reader is: the same on all of them.

    Those made of what is published (scores, the network and the history) are not among the pages of a preview.

    Args:
        here: the name of this page; "" for the overview.
        has_network: whether its people have positions elsewhere, if the caller knows.
    """
    company, positions = bundle["company"], bundle.get("positions") or []
    pages: list[tuple[str, str, object]] = [
        ("about", gettext("About"), company.get("body")),
        ("team", gettext("Team"), len(lists.team_of(positions))),
        ("proposals", gettext("Proposals"), len(bundle.get("proposals") or [])),
        ("cap-table", gettext("Cap table"), len(bundle.get("capTable") or [])),
        ("funding", gettext("Funding"), len(bundle.get("fundingRounds") or [])),
    ]
    if home.startswith("/companies/"):
        if has_network is None:
            has_network = ties.is_any_connected(reader(), slugs_of(positions))
        pages.insert(2, ("assessments", gettext("Assessments"), len(company.get("assessments") or ())))
        pages += [("network", gettext("Network"), has_network), ("history", gettext("History"), True)]
    tabs = [{"label": gettext("Overview"), "address": home, "count": 0, "here": not here}]
    for name, label, content in pages:
        if content or name == here:
            count = content if type(content) is int else 0
            tabs.append({"label": label, "address": f"{home}/{name}", "count": count, "here": name == here})
    return tabs


def slugs_of(positions: list[JSONObject]) -> list[str]:
    """Return the people with a profile who have these positions, each once."""
    slugs: dict[str, None] = {}  # a set in the order of the listing
    for position in positions:
        slug = (position.get("person") or {}).get("slug")
        if slug:
            slugs[slug] = None
    return list(slugs)


def _respond(  # noqa: PLR0917 - what every such page has, in the order of the page
    request: HttpRequest,
    bundle: JSONObject,
    home: str,
    part: str,
    title: str,
    page: Page[Any],
    kept: dict[str, str] | None = None,
    **more: Any,
) -> HttpResponse:
    """
    Render the page of one part.

    Args:
        home: the address of the company's page; by default the public one.
        kept: the parameters that links to other pages repeat.
    """
    company = bundle["company"]
    home = home or f"/companies/{quote(company['id'])}"
    name = part.replace("_", "-")
    is_public = home.startswith("/companies/")
    csv_address = ""
    if is_public and name in _LISTS and bundle.get(_LISTS[name]):
        csv_address = lists.address_of(f"{home}/{name}.csv", 1, kept)
    context = {
        "room": "companies",
        "company": company,
        "home": home,
        "part_title": title,
        "csv_address": csv_address,
        "parts": parts_of(bundle, home, name),
        "total": page.total,
        "crumbs": [(gettext("Companies"), "/companies"), (company["name"], home), (title, "")],
        "canonical": address(request) + lists.address_of(request.path, page.page, kept),
        "pager": lists.pager(request.path, page, kept),
        "canonical_path": request.path,
        **more,
    }
    return TemplateResponse(request, f"company/{part}.html", context)


@published("q", "status", daily=True)
def as_csv(request: HttpRequest, slug: str, part: str) -> HttpResponse:
    """Return the whole list of a part as a file for spreadsheets; of a searched list, the rows that it shows."""
    field = settings.SCHEMA.bundle.by_name[_LISTS[part]]
    entries = bundle_of(slug).get(field.name) or []
    if part in _FOUND_BY:
        entries = _having(entries, part, _words_asked(request))
    status = request.GET.get("status", "")
    if part == "proposals" and status:
        today = lists.today()
        entries = [entry for entry in entries if lists.state_of(entry, today) == status]
    columns = cast("ItemList", field.kind).row.csv
    text = CsvText(CsvForm(has_mark=True, delimiter=writing.delimiter()))
    text.write(columns)
    for row in entry_rows(entries, columns):
        text.write(row)
    response = HttpResponse(text.take(), content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{quote(slug)}-{part}.csv"'
    return response


def _public(part: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    @functools.wraps(part)
    def view(request: HttpRequest, slug: str) -> HttpResponse:
        return part(request, bundle_of(slug))

    return view


about = published("page")(_public(about_part))
team = published("page", "by")(_public(team_part))
proposals = published("page", "q", "status", daily=True)(_public(proposals_part))
cap_table = published("page", "q")(_public(cap_table_part))
funding = published("page", daily=True)(_public(funding_part))
PARTS: Final = {
    "about": about_part,
    "team": team_part,
    "proposals": proposals_part,
    "cap-table": cap_table_part,
    "funding": funding_part,
}
"""The pages of a company that a preview has too, by the last part of their address."""
