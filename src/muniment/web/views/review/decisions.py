"""Review: the queue, each item beside the published values, and the decisions."""

from collections.abc import Callable, Mapping

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry.company import operations
from muniment.registry.company.operations import OwnedCompany
from muniment.registry.models import PendingChange, Petition
from muniment.registry.people import unlinked
from muniment.registry.review import claims, decisions, review_queue
from muniment.registry.review.duplicates import host_of, likely_duplicates
from muniment.registry.review.values import broken_values
from muniment.registry.verification.proofs import evidence_for
from muniment.web.forms import plain
from muniment.web.presenters import differences
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown, show_problem
from muniment.web.requests.pagination import asked_page, pager
from muniment.web.views.manage.companies import asked_version, missing_of

_DECISIONS = {
    "approve": gettext_lazy("Listing published."),
    "request_changes": gettext_lazy("Sent back to the owner."),
    "reject": gettext_lazy("Listing declined."),
    "unlist": gettext_lazy("Listing unlisted. It is no longer public."),
    "relist": gettext_lazy("Listing published again."),
}


_DERIVED = {"id", "updatedAt", "raising", "reviewedAt", "maintainedByOwner", "verifiedDomain", "formerNames"}
"""Members of a company that are not its content."""


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the queue, oldest first."""
    found = review_queue.list_queue(actor_of(request), page=asked_page(request.GET))
    context = {"tab": "queue", "found": found, "pager": pager(request, ("page",), found)}
    return manage_page(request, "review/home.html", context)


@reviewer("GET", "HEAD")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a listing's content and checks to a reviewer."""
    actor = actor_of(request)
    mine = operations.get_company(actor, slug)
    parts = {key: mine.bundle[key] for key in ("positions", "proposals", "capTable", "distribution")}
    shown = {
        key: {"before": None, "after": value}
        for key, value in plain({**mine.bundle["company"], **parts}).items()
        if value not in (None, [], "") and key not in _DERIVED
    }
    context = {
        **_frame(f"company:{slug}", mine.name),
        **_compared(actor, mine, shown),
        "history": operations.company_history(actor, slug, page_size=8, with_values=False).items,
        "names": unlinked.list_unlinked(actor, slug),
    }
    return manage_page(request, "review/company.html", context)


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
        show_problem(request, refusal)
        return HttpResponseRedirect(f"/review/companies/{slug}")
    review_queue.unassign(actor, f"company:{slug}")
    messages.success(request, _DECISIONS[what])
    return HttpResponseRedirect("/review" if what not in {"unlist", "relist"} else f"/review/companies/{slug}")


@reviewer("GET", "HEAD")
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Show pending changes beside the published values."""
    pending = PendingChange.objects.filter(pk=number).select_related("company", "account", "decided_by").first()
    if pending is None:
        raise NotFound(gettext("This change doesn't exist."), gettext("Open items are at /review."))
    actor = actor_of(request)
    mine = operations.get_company(actor, pending.company.slug)
    facts = mine.bundle["company"]
    shown = {key: {"before": facts.get(key), "after": value} for key, value in pending.changes.items()}
    frame = _frame(f"change:{number}", mine.name)
    context = {**frame, **_compared(actor, mine, shown, pending.changes), "pending": pending}
    return manage_page(request, "review/change.html", context)


@reviewer("POST")
@once
def decide_change(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline pending changes."""
    said = (gettext("Change published."), gettext("Change declined."))
    return _decide(request, decisions.decide_change, "change", number, said)


@reviewer("GET", "HEAD")
def petition(request: HttpRequest, number: int) -> HttpResponse:
    """Show a claim or a suggestion."""
    found = Petition.objects.filter(pk=number).select_related("account", "company", "person").first()
    if found is None:
        raise NotFound(gettext("This request doesn't exist."), gettext("Open items are at /review."))
    public = f"/people/{found.person.slug}" if found.person else ""
    if found.company:
        public = f"/companies/{found.company.slug}"
    name = str(found.company or found.person)
    context = {
        **_frame(f"petition:{number}", name),
        "petition": found,
        "name": name,
        "public": public,
        "diff": differences.lines_of(claims.describe(found)),
        "evidence": evidence_for(found),
    }
    return manage_page(request, "review/petition.html", context)


@reviewer("POST")
@once
def decide_petition(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline a claim or a suggestion."""
    said = (gettext("Request approved."), gettext("Request declined."))
    return _decide(request, claims.decide_request, "petition", number, said)


def _decide(
    request: HttpRequest, decide: Callable[..., object], kind: str, number: int, said: tuple[str, str]
) -> HttpResponse:
    """Approve or decline, and say which; a refusal shows on the page of the change or petition."""
    actor, approve = actor_of(request), request.POST.get("do") == "approve"
    try:
        decide(actor, number, approve=approve, note=request.POST.get("note", ""))
    except (BadRequest, Conflict) as refusal:
        show_problem(request, refusal)
        return HttpResponseRedirect(f"/review/{'changes' if kind == 'change' else 'requests'}/{number}")
    review_queue.unassign(actor, f"{kind}:{number}")
    messages.success(request, said[0] if approve else said[1])
    return HttpResponseRedirect("/review")


@reviewer("POST")
def take(request: HttpRequest) -> HttpResponse:
    """Assign an item to the reviewer, or unassign it."""
    subject = request.POST.get("subject", "")[:220]
    page = asked_page(request.POST)
    where = "/review" if page == 1 else f"/review?page={page}"
    act = review_queue.unassign if request.POST.get("do") == "leave" else review_queue.assign
    with problems_shown(request, Conflict):
        act(actor_of(request), subject)
    return HttpResponseRedirect(where)


def _checks(actor: Actor, mine: OwnedCompany, changes: JSONObject) -> list[JSONObject]:
    """Return the checks of a listing, each with whether it passed and its finding."""
    facts = {**mine.bundle["company"], **changes}
    website, name = facts.get("website") or "", facts.get("name") or ""
    host = host_of(website)
    address = (facts.get("socials") or {}).get("email") or ""
    same_host = bool(host) and address.lower().endswith(f"@{host}")
    twins = likely_duplicates(actor, name, website, facts.get("symbol") or "", besides=mine.slug)
    lacking = missing_of(facts)
    if not facts.get("body"):
        lacking.append(gettext("full description"))
    broken = broken_values({**mine.bundle, "company": facts})
    found = gettext("%(host)s (matches the email address)") % {"host": host} if same_host else host
    if (proof := facts.get("verifiedDomain")) and website == mine.bundle["company"].get("website"):
        found = gettext("%(domain)s (verified)") % {"domain": proof["domain"]}
    return [
        {"what": gettext("Website"), "well": bool(host), "found": found or gettext("missing")},
        {
            "what": gettext("Duplicates"),
            "well": not twins,
            "found": gettext("none with the same name, website or symbol"),
            "links": [(company.name, f"/review/companies/{company.slug}", shared) for company, shared in twins],
        },
        {
            "what": gettext("Values"),
            "well": not broken,
            "found": "; ".join(f"{fault.field} {fault.reason}" for fault in broken) or gettext("all follow the rules"),
        },
        {"what": gettext("Missing fields"), "well": not lacking, "found": ", ".join(lacking) or gettext("none")},
    ]


def _frame(subject: str, name: str) -> JSONObject:
    return {
        "tab": "queue",
        "subject": subject,
        "taken_by": review_queue.assignee(subject),
        "crumbs": [(gettext("Review"), "/review"), (name, "")],
    }


def _compared(
    actor: Actor, mine: OwnedCompany, shown: Mapping[str, JSONMapping], changes: JSONObject | None = None
) -> JSONObject:
    return {
        "mine": mine,
        "facts": mine.bundle["company"],
        "diff": differences.lines_of(shown),
        "checks": _checks(actor, mine, changes or {}),
    }
