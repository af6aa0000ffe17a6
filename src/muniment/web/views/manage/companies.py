"""An owner's listings: overview, creating one in short steps, editing, history, funding."""

from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import urlencode

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.actor import Actor
from muniment.kernel.ids import slug_from_name
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company import operations
from muniment.registry.company.access import owned
from muniment.registry.company.company_change import BadFields, CompanyChange, read_change
from muniment.registry.company.editing import compare
from muniment.registry.company.operations import OwnedCompany
from muniment.registry.models import Ownership, UnlistedBy
from muniment.registry.names.operations import list_former_names
from muniment.registry.people.profiles import get_profile
from muniment.registry.people.unlinked import list_unlinked
from muniment.registry.reverting import LaterChanges
from muniment.registry.review import decisions, review_queue, withdrawal
from muniment.registry.review.duplicates import likely_duplicates
from muniment.web import form_pages
from muniment.web.forms import About, Basics, FormStep, Links
from muniment.web.presenters import differences
from muniment.web.presenters.company import former_name, rounds_of
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, ask, manage_page
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager

STEPS: Final[dict[str, type[FormStep]]] = {"basics": Basics, "about": About, "links": Links}
TITLES: Final = {
    "basics": gettext_lazy("Basics"),
    "about": gettext_lazy("About"),
    "links": gettext_lazy("Links"),
    "team": gettext_lazy("Team and addresses"),
    "token": gettext_lazy("Token, governance and funding"),
    "review": gettext_lazy("Check and submit"),
}
ORDER: Final = tuple(TITLES)
STATES: Final = {
    "draft": gettext_lazy("Draft. Only the owners can see it. Submit it for review when it's ready."),
    "submitted": gettext_lazy(
        "Submitted for review. We'll email you when a reviewer decides. You can still edit the listing."
    ),
    "changes_requested": gettext_lazy("A reviewer requested changes. Make them and submit the listing again."),
    "published": gettext_lazy(
        "Published. Changes to name, symbol or type need review; other changes go live immediately."
    ),
    "unlisted": gettext_lazy("A reviewer unlisted this listing. It is no longer public."),
    "unlisted by owner": gettext_lazy(
        "An owner unlisted this listing. It is no longer public. You can publish it again. Changes to name, symbol or"
        " type still need review."
    ),
    "rejected": gettext_lazy("A reviewer declined this listing."),
}


@signed_in("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the owner's listings and those that need attention."""
    actor = actor_of(request)
    mine = operations.list_companies(actor, page=asked_page(request.GET))
    attention = [company for company in mine.items if company.state in {"draft", "changes_requested"}]
    context = {
        "mine": mine,
        "attention": attention,
        "profile": get_profile(actor),
        "waiting": review_queue.count_queue(actor) if actor.is_reviewer else 0,
        "pager": pager(request, ("page",), mine),
    }
    return manage_page(request, "manage/home.html", context)


@signed_in()
@once
def new(request: HttpRequest) -> HttpResponse:
    """Create a draft: the first step. Warn about likely duplicates."""
    actor = actor_of(request)
    form = Basics(form_data(request))
    slug = request.POST.get("slug", "").strip()
    duplicates: list[Any] = []
    if request.method == "POST" and form.is_valid():
        change = CompanyChange(form.to_wire())
        try:
            # first: a long text makes the search fail in the database
            edit = read_change(change, settings.SCHEMA, is_new=True)
            parts = [edit.get(name) or "" for name in ("name", "website", "symbol")]
            duplicates = likely_duplicates(actor, *parts)
            if not duplicates or request.POST.get("different") == "yes":
                made = operations.create_company(actor, change, slug=slug)
                messages.success(request, gettext("%(name)s saved as a draft.") % {"name": made.name})
                return HttpResponseRedirect(f"/manage/companies/{made.slug}/edit/about?new=1")
        except BadFields as refusal:
            form.put(refusal.faults)
    context = {
        "form": form,
        "slug": slug,
        "suggested": slug_from_name(str(form["name"].value() or "")[:200]),
        "slug_faults": [e for e in form.non_field_errors() if str(e).startswith("slug")],
        "duplicates": duplicates,
        "steps": _steps("basics", ""),
    }
    return manage_page(request, "manage/new.html", context, status=200 if request.method == "GET" else 422)


@signed_in("GET", "HEAD")
def suggest_slug(request: HttpRequest) -> HttpResponse:
    """Return the suggested slug and likely duplicates while the name is typed."""
    name, website, symbol = (
        request.GET.get(key, "")[:limit] for key, limit in (("name", 200), ("website", 500), ("symbol", 32))
    )
    duplicates = likely_duplicates(actor_of(request), name, website, symbol)
    context = {"suggested": slug_from_name(name), "duplicates": duplicates}
    return render(request, "manage/suggested.html", context)


@signed_in("GET", "HEAD")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one listing: its state, pending changes and actions."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    owners = Ownership.objects.filter(company__slug=slug).select_related("account").order_by("since")
    typed = form_data(request)
    facts, rounds = mine.bundle["company"], rounds_of(mine.bundle)
    pending = {key: {"before": facts.get(key), "after": value} for key, value in mine.pending_changes.items()}
    context = {
        **frame(mine, "overview"),
        "state_words": STATES["unlisted by owner" if mine.unlisted_by == UnlistedBy.OWNER else mine.state],
        "deletable": mine.state in withdrawal.DELETABLE,
        "owners": owners,
        "is_owner": any(owner.account_id == actor.account_id for owner in owners),
        "rounds": rounds,
        "open_round": next((each for each in rounds if each["state"] != "closed"), None),
        "pending": differences.lines_of(pending),
        "missing": missing_of(facts),
        "former_names": [{**each, "shown": former_name(each)} for each in list_former_names(actor, slug)],
        "is_reviewer": actor.is_reviewer,
        "names": list_unlinked(actor, slug) if mine.state == "published" else [],
        "invited": typed.get("email", "") if typed else "",
    }
    return manage_page(request, "manage/company.html", context)


@signed_in()
@once
def edit(request: HttpRequest, slug: str, step: str) -> HttpResponse:
    """Edit one page of a listing; for a new listing, continue with the next step."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    page = _page(actor, mine, step, request.GET)
    stale: list[differences.DiffLine] = []
    typed = form_data(request)
    asked = mine.version if typed is None else _version_of(typed)
    if typed is not None:
        page.read(typed)
    if request.method == "POST" and page.is_valid():
        change = CompanyChange(page.to_wire())
        totals = page.totals(change)
        try:
            done = (
                operations.update_company(actor, slug, change, expected_version=asked, expected_totals=totals)
                if change
                else None
            )
        except BadFields as refusal:
            page.put(refusal.faults)
        except Conflict:
            mine = operations.get_company(actor, slug)
            page = _page(actor, mine, step, request.GET)
            page.read(request.POST)
            stale = _stale(actor, slug, page)
            asked = mine.version if stale else asked
        else:
            return HttpResponseRedirect(_after(request, slug, step, page, done))
    is_new = "new" in request.GET
    context = {
        **frame(mine, "edit"),
        "step": step,
        "step_title": TITLES[step],
        "page": page,
        "lists": [
            (each, pager(request, page.parameters, each.found, name=each.page_parameter)) for each in page.editors
        ],
        "version": mine.version if asked is None else asked,
        "stale": stale,
        "is_new": is_new,
        "steps": _steps(step, slug, new=is_new),
    }
    status = 409 if stale else 422 if page.has_faults else 200
    return manage_page(request, "manage/edit.html", context, status=status)


@signed_in("POST")
@once
def submit(request: HttpRequest, slug: str) -> HttpResponse:
    mine = operations.get_company(actor_of(request), slug)
    if lacking := missing_of(mine.bundle["company"]):
        raise BadRequest(
            gettext("The listing is incomplete. Missing: %(fields)s.") % {"fields": ", ".join(lacking)},
            gettext("Complete these fields, then submit."),
        )
    decisions.submit_company(actor_of(request), slug, expected_version=asked_version(request))
    messages.success(request, gettext("Submitted. We'll email you when a reviewer decides."))
    return HttpResponseRedirect(f"/manage/companies/{slug}")


@signed_in("GET", "HEAD")
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """Show every change with its diff and a button to revert it."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    found = operations.company_history(actor, slug, page=asked_page(request.GET), page_size=PAGE_SIZE)
    room = differences.Room()
    entries = [
        {
            "entry": entry,
            "lines": differences.lines_of_entry(entry, room),
            "labels": differences.labels_of(entry),
            "can_revert": entry.action in {"updated", "reverted", "change approved", "imported"}
            and (not entry.is_loaded or any(key in entry.before for key in entry.after)),
        }
        for entry in found.items
    ]
    context = {**frame(mine, "history"), "entries": entries, "pager": pager(request, ("page",), found)}
    return manage_page(request, "manage/history.html", context)


@signed_in("POST")
@once
def revert(request: HttpRequest, slug: str, entry: int) -> HttpResponse:
    """Revert a change; ask first if it replaces what later changes wrote."""
    actor, back = actor_of(request), f"/manage/companies/{slug}/history"
    try:
        done = operations.revert_company(actor, slug, entry, overwrite=request.POST.get("overwrite") == "yes")
    except LaterChanges as later:
        tried = operations.revert_company(actor, slug, entry, dry_run=True)
        crumbs = [(gettext("Manage"), "/manage"), (tried.company.name, f"/manage/companies/{slug}")]
        return ask_to_overwrite(request, later, tried.diff, back=back, crumbs=crumbs)
    _say(request, done, gettext("Reverted."))
    return HttpResponseRedirect(back)


def ask_to_overwrite(
    request: HttpRequest,
    later: LaterChanges,
    diff: Mapping[str, JSONMapping],
    *,
    back: str,
    crumbs: list[tuple[str, str]],
) -> HttpResponse:
    """Ask whether reverting may replace what later changes wrote."""
    names = ", ".join(differences.label_of(name).lower() for name in later.fields)
    question = Question(
        gettext("Replace later changes?"),
        [
            gettext("Later changes touched the same fields: %(fields)s. Reverting replaces them too.")
            % {"fields": names}
        ],
        gettext("Revert anyway"),
    )
    lines = differences.lines_of(diff)
    crumbs = [*crumbs, (gettext("History"), back), (str(question.title), "")]
    return ask(request, question, back=back, crumbs=crumbs, overwrite=True, diff=lines)


@signed_in("POST")
@once
def funding(request: HttpRequest, slug: str) -> HttpResponse:
    """Open, close or publish a funding round."""
    actor, post = actor_of(request), request.POST
    try:
        if post.get("do") == "close":
            operations.close_funding_round(actor, slug, closed=post.get("closed") or None)
            messages.success(request, gettext("Round closed."))
        elif post.get("do") == "publish":
            operations.publish_funding_round(actor, slug, post.get("round", ""))
            messages.success(request, gettext("The round's name and target are public."))
        else:
            target, opened = post.get("target") or None, post.get("opened") or None
            operations.open_funding_round(actor, slug, name=post.get("name", ""), target=target, opened=opened)
            messages.success(request, gettext("Round opened."))
    except (BadFields, Conflict) as refusal:
        messages.error(request, f"{refusal.message} {refusal.hint if isinstance(refusal, Conflict) else ''}")
    return HttpResponseRedirect(f"/manage/companies/{slug}#funding")


def missing_of(facts: JSONMapping) -> list[str]:
    """Return the fields that a submission needs and the listing lacks."""
    wanted = {"type": gettext("type"), "description": gettext("summary"), "website": gettext("website")}
    return [words for key, words in wanted.items() if not facts.get(key)]


def frame(mine: OwnedCompany, tab: str) -> JSONObject:
    """Return the context of the header of a listing's pages."""
    return {
        "mine": mine,
        "facts": mine.bundle["company"],
        "tab": tab,
        "crumbs": [(gettext("Manage"), "/manage"), (mine.name, "")],
    }


def _steps(current: str, slug: str, *, new: bool = True) -> list[JSONObject]:
    at, mark = ORDER.index(current), "?new=1" if new else ""
    return [
        {
            "title": TITLES[step],
            "here": step == current,
            "done": new and n < at,
            "address": _step_address(slug, step, mark) if slug else "",
        }
        for n, step in enumerate(ORDER if new else ORDER[:-1])
    ]


def _step_address(slug: str, step: str, mark: str) -> str:
    return f"/manage/companies/{slug}" if step == "review" else f"/manage/companies/{slug}/edit/{step}{mark}"


def _after(
    request: HttpRequest, slug: str, step: str, page: form_pages.FormPage, done: operations.CompanyUpdate | None
) -> str:
    """Add a message about what was saved, and return the next address: of a button, a next step, or this page."""
    going = request.POST.get("go")
    here, is_new = (request.GET if going is None else QueryDict(going.partition("?")[2])), "new" in request.GET
    query, anchor = page.next_query(here, shows_added=going is None and not is_new)
    if done or (going is None and not anchor):
        _say(request, done)
    if is_new and going is None and not anchor:
        return _step_address(slug, ORDER[ORDER.index(step) + 1], "?new=1")
    return f"{_step_address(slug, step, '')}{'?' if query else ''}{urlencode(query)}{'#' if anchor else ''}{anchor}"


def asked_version(request: HttpRequest) -> int | None:
    """Return the version that the form was rendered from; None without one."""
    return _version_of(request.POST)


def _version_of(form: QueryDict) -> int | None:
    text = form.get("version", "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _page(actor: Actor, mine: OwnedCompany, step: str, query: Mapping[str, str]) -> form_pages.FormPage:
    """Return a page of the form; with pending values, since one with the published values would withdraw them."""
    pending = {} if actor.is_reviewer else mine.pending_changes
    facts = {**mine.bundle["company"], **pending}
    return form_pages.page_of(step, STEPS.get(step), {**mine.bundle, "company": facts}, query)


def _stale(actor: Actor, slug: str, page: form_pages.FormPage) -> list[differences.DiffLine]:
    """Return the differences between the submitted values and those saved in the meantime; none if one is invalid."""
    if not page.is_valid():
        return []
    try:
        difference = compare(owned(actor, slug), read_change(page.to_wire(), settings.SCHEMA))
    except BadFields as refusal:
        page.put(refusal.faults)
        return []
    return differences.lines_of(difference.to_wire()) or [differences.line(gettext("No differences left"), "", "")]


def _say(request: HttpRequest, done: operations.CompanyUpdate | None, said: str = "") -> None:
    said = said or gettext("Saved.")
    if done and done.withdrawn:
        names = ", ".join(differences.label_of(key).lower() for key in done.withdrawn)
        messages.warning(request, gettext("Your request to change %(fields)s was withdrawn.") % {"fields": names})
    if done and done.awaiting_people:
        asked = {"slugs": ", ".join(done.awaiting_people)}
        messages.info(
            request, gettext("Asked to confirm their position: %(slugs)s. Until then only the name is shown.") % asked
        )
    if done is None:
        messages.info(request, gettext("No changes to save."))
    elif done.awaiting_review:
        names = ", ".join(differences.label_of(key).lower() for key in done.awaiting_review)
        pending = ngettext(
            "Your new %(fields)s is pending review.", "Pending review: %(fields)s.", len(done.awaiting_review)
        )
        messages.warning(request, f"{said} {pending % {'fields': names}}")
    elif done.applied or done.withdrawn:
        messages.success(request, said)
    else:
        messages.info(request, gettext("No changes to save."))
