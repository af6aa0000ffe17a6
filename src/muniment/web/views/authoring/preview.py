"""The preview of a listing: its public page, made from the saved values or from those of a form that is not saved."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import quote

from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.template.response import TemplateResponse
from django.utils.translation import gettext

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import TooMany
from muniment.languages.translated import stated, translated
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields, CompanyChange
from muniment.registry.company.listings import OwnedCompany
from muniment.schema.company_parts import count_people
from muniment.schema.validation import Validation
from muniment.web.forms import plain
from muniment.web.presenters.company import rounds_of
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.views.authoring.listing_form import ORDER, page_of
from muniment.web.views.public.company_lists import PARTS
from muniment.web.views.public.registry import company_context

NO_CONTENT: Final = 204
UNFINISHED: Final = ORDER[-1]
_NO_CHANGES: Mapping[str, JSONMapping] = {}


@signed_in()
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the page of a listing as it will look; of a submitted form, with its values, which are not saved."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    unsaved, faults = _unsaved(actor, mine, request)
    context = _context(request, mine, as_published(mine, unsaved))
    context["preview"] |= {"is_unsaved": bool(unsaved), "faults": faults}
    return TemplateResponse(request, "registry/company.html", context)


@signed_in("GET", "HEAD")
def part(request: HttpRequest, slug: str, part: str) -> HttpResponse:
    """Show a page of one of the long lists of a listing as it will look."""
    mine = listings.get_company(actor_of(request), slug)
    if part not in PARTS:
        raise Http404("unknown part of a preview")
    response = PARTS[part](request, as_published(mine), _home(mine))
    if isinstance(response, TemplateResponse) and response.context_data is not None:
        title = response.context_data["part_title"]
        crumbs = [*_crumbs(mine)[:2], (gettext("Preview"), _home(mine)), (title, "")]
        response.context_data |= {"preview": {"mine": mine}, "room": "manage", "crumbs": crumbs}
    return response


@signed_in("POST")
def live(request: HttpRequest, slug: str) -> HttpResponse:
    """Return the part of the preview that belongs to a step of the form; nothing while a value is invalid."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    unsaved, faults = _unsaved(actor, mine, request)
    if faults:
        return HttpResponse(status=NO_CONTENT)
    shown = {**_context(request, mine, as_published(mine, unsaved)), "live_step": request.GET.get("step", "")}
    return render(request, "manage/live.html", shown)


def _unsaved(actor: Actor, mine: OwnedCompany, request: HttpRequest) -> tuple[JSONObject, list[str]]:
    """Return what a submitted form changes, and otherwise why its values cannot be shown."""
    step = request.GET.get("step", "")
    if request.method != "POST" or step not in ORDER or step == UNFINISHED:
        return {}, []
    page = page_of(actor, mine, step, request.GET)
    page.read(request.POST)
    if not page.is_valid():
        return {}, [gettext("Some values are not valid.")]
    change = CompanyChange(page.to_wire())
    if not change:
        return {}, []
    try:
        totals = page.totals(change)
        done = listings.update_company(actor, mine.slug, change, expected_totals=totals, dry_run=True)
    except BadFields as refusal:
        return {}, [stated(fault.sentence) for fault in refusal.faults[:5]]
    except TooMany as refusal:
        return {}, [translated(refusal.message)]
    return done.diff, []


def _context(request: HttpRequest, mine: OwnedCompany, bundle: JSONObject) -> JSONObject:
    home = _home(mine)
    context = company_context(request, bundle, home)
    return {
        **context,
        "preview": {"mine": mine},
        "room": "manage",
        "has_claims": False,
        "changes": [],
        "crumbs": _crumbs(mine),
        "edit_address": f"/manage/companies/{quote(mine.slug, safe='')}/edit/about",
    }


def _home(mine: OwnedCompany) -> str:
    return f"/manage/companies/{quote(mine.slug, safe='')}/preview"


def _crumbs(mine: OwnedCompany) -> list[tuple[str, str]]:
    listing = f"/manage/companies/{quote(mine.slug, safe='')}"
    return [(gettext("Manage"), "/manage"), (mine.name, listing), (gettext("Preview"), "")]


def as_published(mine: OwnedCompany, unsaved: Mapping[str, JSONMapping] = _NO_CHANGES) -> JSONObject:
    """
    Return the bundle that the public page of a listing would get.

    Args:
        unsaved: further changes, before and after by the name of the field, as the dry run of an update returns them.
    """
    bundle: JSONObject = plain(mine.bundle)
    facts = bundle["company"]
    changes = dict(mine.pending_changes)
    for name, values in unsaved.items():
        changes[name] = values["after"]
    for name, value in changes.items():
        # A list of the listing is beside the company; all else that a form changes is a member of it.
        target = bundle if name in bundle and name != "company" else facts
        target[name] = _published_value(name, value)
    if bundle.get("positions"):
        facts["teamSize"] = count_people(bundle["positions"])
    bundle["fundingRounds"] = [_public_round(row) for row in bundle.get("fundingRounds") or ()]
    facts["raising"] = any(row["state"] == "open" for row in rounds_of(bundle))
    bundle["company"] = {name: value for name, value in facts.items() if value not in (None, "")}
    return bundle


def _published_value(name: str, value: object) -> object:
    """Return the value of a change as published answers show it; a treasury is rounded there."""
    if name != "treasury" or value is None:
        return value
    kind = settings.SCHEMA.company.by_name[name].kind
    return kind.show(kind.read(value, (name,), Validation(change=True)))


def _public_round(row: JSONObject) -> JSONObject:
    """Return a round without what its owner keeps private."""
    if row.get("public") is not False:
        return row
    return {name: value for name, value in row.items() if name not in {"name", "target"}}
