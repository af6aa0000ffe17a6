"""Review: the queue, each item beside the published values, and the decisions."""

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry.company import operations
from muniment.registry.company.operations import OwnedCompany
from muniment.registry.models import PendingChange, Petition
from muniment.registry.review import claims, decisions, review_queue
from muniment.web.forms import plain
from muniment.web.presenters import differences
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import fresh_token, once
from muniment.web.requests.pagination import asked_page, pager
from muniment.web.views.manage.companies import asked_version

_DECISIONS = {
    "approve": gettext_lazy("Listing published."),
    "request_changes": gettext_lazy("Sent back to the owner."),
    "reject": gettext_lazy("Listing declined."),
    "unlist": gettext_lazy("Listing unlisted. It is no longer public."),
    "relist": gettext_lazy("Listing published again."),
}


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the queue, oldest first."""
    found = review_queue.list_queue(actor_of(request), page=asked_page(request.GET))
    links = pager(request, ("page",), found)
    return render(request, "review/home.html", {"room": "manage", "tab": "queue", "found": found, "pager": links})


@reviewer("GET", "HEAD")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a listing's content and checks to a reviewer."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    facts = {
        key: value for key, value in plain(mine.bundle["company"]).items() if key not in {"id", "updatedAt", "raising"}
    }
    parts = {key: plain(mine.bundle[key]) for key in ("positions", "proposals", "capTable", "distribution")}
    shown = {
        key: {"before": None, "after": value}
        for key, value in {**facts, **parts}.items()
        if value not in (None, [], "")
    }
    return render(
        request,
        "review/company.html",
        {
            **_frame(f"company:{slug}", mine),
            "diff": differences.lines_of(shown),
            "checks": checks_of(actor, mine),
            "history": operations.company_history(actor, slug, page_size=8).items,
        },
    )


@reviewer("POST")
@once
def decide_company(request: HttpRequest, slug: str) -> HttpResponse:
    actor, post = actor_of(request), request.POST
    what, note = post.get("do", ""), post.get("note", "")
    if what not in _DECISIONS:
        raise BadRequest(gettext("The form has no decision."), gettext("Use one of the buttons on the page."))
    try:
        match what:
            case "approve":
                decisions.approve_company(actor, slug, expected_version=asked_version(request), note=note)
            case "request_changes":
                decisions.request_changes(actor, slug, note)
            case "reject":
                decisions.reject_company(actor, slug, note)
            case "unlist":
                decisions.unlist_company(actor, slug, note)
            case _:
                decisions.relist_company(actor, slug, note=note)
    except (BadRequest, Conflict) as refusal:
        return _refused(request, refusal, f"/review/companies/{slug}")
    review_queue.unassign(actor, f"company:{slug}")
    messages.success(request, _DECISIONS[what])
    return HttpResponseRedirect("/review" if what not in {"unlist", "relist"} else f"/review/companies/{slug}")


@reviewer("GET", "HEAD")
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Show pending changes beside the published values."""
    pending = PendingChange.objects.filter(pk=number).select_related("company", "account", "decided_by").first()
    if pending is None:
        raise NotFound(gettext("This change doesn't exist."), gettext("Open items are at /review."))
    mine = operations.get_company(actor_of(request), pending.company.slug)
    facts = mine.bundle["company"]
    shown = {key: {"before": facts.get(key), "after": value} for key, value in pending.changes.items()}
    return render(
        request,
        "review/change.html",
        {
            **_frame(f"change:{number}", mine),
            "pending": pending,
            "diff": differences.lines_of(shown),
            "checks": checks_of(actor_of(request), mine, pending.changes),
        },
    )


@reviewer("POST")
@once
def decide_change(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline pending changes."""
    actor = actor_of(request)
    approve = request.POST.get("do") == "approve"
    try:
        decisions.decide_change(actor, number, approve=approve, note=request.POST.get("note", ""))
    except (BadRequest, Conflict) as refusal:
        return _refused(request, refusal, f"/review/changes/{number}")
    review_queue.unassign(actor, f"change:{number}")
    messages.success(request, gettext("Change published.") if approve else gettext("Change declined."))
    return HttpResponseRedirect("/review")


@reviewer("GET", "HEAD")
def petition(request: HttpRequest, number: int) -> HttpResponse:
    """Show a claim or a suggestion."""
    found = Petition.objects.filter(pk=number).select_related("account", "company", "person").first()
    if found is None:
        raise NotFound(gettext("This request doesn't exist."), gettext("Open items are at /review."))
    subject = f"petition:{number}"
    name = str(found.company or found.person)
    return render(
        request,
        "review/petition.html",
        {
            "room": "manage",
            "tab": "queue",
            "petition": found,
            "name": name,
            "public": f"/companies/{found.company.slug}"
            if found.company
            else f"/people/{found.person.slug}"
            if found.person
            else "",
            "diff": differences.lines_of(claims.describe(found)),
            "subject": subject,
            "taken_by": review_queue.assignee(subject),
            "crumbs": [(gettext("Review"), "/review"), (name, "")],
            "once": fresh_token(),
        },
    )


@reviewer("POST")
@once
def decide_petition(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline a claim or a suggestion."""
    actor = actor_of(request)
    approve = request.POST.get("do") == "approve"
    try:
        claims.decide_request(actor, number, approve=approve, note=request.POST.get("note", ""))
    except (BadRequest, Conflict) as refusal:
        return _refused(request, refusal, f"/review/requests/{number}")
    review_queue.unassign(actor, f"petition:{number}")
    messages.success(request, gettext("Request approved.") if approve else gettext("Request declined."))
    return HttpResponseRedirect("/review")


@reviewer("POST")
def take(request: HttpRequest) -> HttpResponse:
    """Assign an item to the reviewer, or unassign it."""
    subject = request.POST.get("subject", "")[:220]
    page = asked_page(request.POST)
    where = "/review" if page == 1 else f"/review?page={page}"
    act = review_queue.unassign if request.POST.get("do") == "leave" else review_queue.assign
    try:
        act(actor_of(request), subject)
    except Conflict as refusal:
        return _refused(request, refusal, where)
    return HttpResponseRedirect(where)


def checks_of(actor: Actor, mine: OwnedCompany, changes: JSONObject | None = None) -> list[JSONObject]:
    """Return the checks of a listing, each with whether it passed and its finding."""
    facts = {**mine.bundle["company"], **(changes or {})}
    website, name = facts.get("website") or "", facts.get("name") or ""
    host = review_queue.host_of(website)
    address = (facts.get("socials") or {}).get("email") or ""
    same_host = bool(host) and address.lower().endswith(f"@{host}")
    twins = review_queue.likely_duplicates(actor, name, website, facts.get("symbol") or "", besides=mine.slug)
    lacking = [
        words
        for key, words in (
            ("type", gettext("type")),
            ("description", gettext("summary")),
            ("website", gettext("website")),
            ("body", gettext("full description")),
        )
        if not facts.get(key)
    ]
    return [
        {
            "what": gettext("Website"),
            "well": bool(host),
            "found": gettext("%(host)s (matches the email address)") % {"host": host}
            if same_host
            else host or gettext("missing"),
        },
        {
            "what": gettext("Duplicates"),
            "well": not twins,
            "found": gettext("none with the same name, website or symbol"),
            "links": [(company.name, f"/review/companies/{company.slug}", shared) for company, shared in twins],
        },
        {"what": gettext("Missing fields"), "well": not lacking, "found": ", ".join(lacking) or gettext("none")},
    ]


def _frame(subject: str, mine: OwnedCompany) -> JSONObject:
    return {
        "room": "manage",
        "tab": "queue",
        "mine": mine,
        "facts": mine.bundle["company"],
        "subject": subject,
        "taken_by": review_queue.assignee(subject),
        "crumbs": [(gettext("Review"), "/review"), (mine.name, "")],
        "once": fresh_token(),
    }


def _refused(request: HttpRequest, refusal: BadRequest | Conflict, where: str) -> HttpResponse:
    messages.error(request, f"{refusal.message} {refusal.hint}")
    return HttpResponseRedirect(where)
