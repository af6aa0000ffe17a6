"""The pages of items in review, each beside the published values, and the decisions."""

from collections.abc import Mapping
from urllib.parse import quote

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.assessments import scores
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound, Problem
from muniment.languages.translated import told
from muniment.registry.company import listings
from muniment.registry.company.access import NoteMissing
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.inbox import checks, deciding, items, reviewers
from muniment.registry.inbox.checks import Check
from muniment.registry.inbox.deciding import Chosen, Decision
from muniment.registry.models import ItemChecks, Ownership, PendingChange, Petition
from muniment.registry.people import positions
from muniment.registry.review import claims, workflow
from muniment.registry.verification.proofs import evidence_for
from muniment.web.authoring.checks import unfinished_of
from muniment.web.forms import plain
from muniment.web.presenters import company_lists, differences
from muniment.web.presenters.company import links_of
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.kept_forms import form_data, keep_form, tell
from muniment.web.requests.once import once
from muniment.web.requests.pages import show_problem
from muniment.web.requests.pagination import whole_number
from muniment.web.views.manage.companies import asked_version
from muniment.web.views.review.inbox import CHECKS, go_on, query_of, review_page

_SAID = {
    "approve": gettext_lazy("Listing published."),
    "request_changes": gettext_lazy("Sent back to the owner."),
    "reject": gettext_lazy("Listing declined."),
    "unlist": gettext_lazy("Listing unlisted. It is no longer public."),
    "relist": gettext_lazy("Listing published again."),
    "confirm": gettext_lazy("Marked as reviewed today."),
}
_OF_SUBMISSIONS: Mapping[str, Decision] = {
    "approve": "approve",
    "request_changes": "request_changes",
    "reject": "decline",
}

_DERIVED = {
    "id",
    "updatedAt",
    "raising",
    "reviewedAt",
    "maintainedByOwner",
    "verifiedDomain",
    "formerNames",
    "logo",
    "assessments",
}
"""Members of a company that are not its content."""
TEAM_SHOWN = 24
_NOTE_FAULT = "note fault"
"""Key of the session under which the page of an item finds why its note was refused."""


@reviewer("GET", "HEAD")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a listing's content and checks to a reviewer."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    lists = {name: mine.bundle[name] for name in ("positions", "proposals", "capTable", "distribution")}
    left_out = set(_DERIVED)
    if mine.bundle["company"].get("listedAt"):
        left_out.add("createdAt")  # the day is in place of the month
    shown = {}
    for name, value in plain({**mine.bundle["company"], **lists}).items():
        if value not in (None, [], "") and name not in left_out:
            shown[name] = {"before": None, "after": value}
    team = company_lists.team_of(plain(mine.bundle["positions"]))
    if len(team) <= TEAM_SHOWN and not any(member.more for member in team):
        shown.pop("positions", None)  # the team below shows all of it
    text = {}
    if "body" in shown:
        text["body"] = shown.pop("body")
    context = {
        **_frame(request, f"company:{slug}", mine.name),
        **_compared(actor, mine, shown, subject=f"company:{slug}"),
        "body": next(iter(differences.lines_of(text)), None),
        "is_unlisting": mine.state == "published",
        "has_owners": Ownership.objects.filter(company__slug=slug).exists(),
        "pending": _pending(slug),
        "history": listings.company_history(actor, slug, page_size=8, with_values=False).items,
        "names": positions.list_unlinked(actor, slug),
        "team": team[:TEAM_SHOWN],
        "team_more": len(team[TEAM_SHOWN:]),
        "scores": scores.list_public_scores(actor, slug),
    }
    return review_page(request, "review/company.html", context)


def _pending(slug: str) -> list[JSONObject]:
    """Return the changes of a listing that wait for a decision."""
    rows = []
    for change in PendingChange.objects.filter(company__slug=slug, decision="").order_by("pk"):
        labels = ", ".join(map(differences.label_of, change.changes))
        rows.append({"number": change.pk, "asked_at": change.asked_at, "fields": labels})
    return rows


@reviewer("POST")
@once
def withdraw_score(request: HttpRequest, slug: str) -> HttpResponse:
    """Withdraw a published score of a listing."""
    scores.remove_score(actor_of(request), slug, request.POST.get("framework", ""))
    messages.success(request, gettext("Score withdrawn. It is no longer public."))
    return HttpResponseRedirect(f"/review/companies/{quote(slug, safe='')}")


@reviewer("POST")
@once
def decide_company(request: HttpRequest, slug: str) -> HttpResponse:
    """Decide on a submitted listing and lead to the next item; confirm, unlist or relist a published one."""
    actor, post = actor_of(request), request.POST
    what, subject = post.get("do", ""), f"company:{slug}"
    if what not in _SAID:
        raise BadRequest(gettext("The form has no decision."), gettext("Use one of the buttons on the page."))
    name = listings.get_company(actor, slug).name
    try:
        note = reviewers.with_reply(actor, post.get("note", ""), whole_number(post.get("reply", "")))
        if what in _OF_SUBMISSIONS:
            deciding.decide(actor, Chosen(subject, asked_version(request)), _OF_SUBMISSIONS[what], note)
        elif what == "unlist":
            workflow.unlist_company(actor, slug, note)
        elif what == "confirm":
            workflow.confirm_company(actor, slug)
        else:
            workflow.relist_company(actor, slug, note=note)
    except (BadRequest, Conflict) as refusal:
        return _refused(request, refusal, f"/review/companies/{slug}")
    if what in _OF_SUBMISSIONS:
        return go_on(request, subject, str(_SAID[what]), name, undo=what != "approve")
    messages.success(request, _SAID[what])
    return HttpResponseRedirect(f"/review/companies/{slug}")


@reviewer("GET", "HEAD")
def change(request: HttpRequest, number: int) -> HttpResponse:
    """Show pending changes beside the published values."""
    pending = PendingChange.objects.filter(pk=number).select_related("company", "account", "decided_by").first()
    if pending is None:
        raise NotFound(gettext("This change doesn't exist."), gettext("Open items are at /review."))
    actor = actor_of(request)
    mine = listings.get_company(actor, pending.company.slug)
    facts = mine.bundle["company"]
    shown = {name: {"before": facts.get(name), "after": value} for name, value in pending.changes.items()}
    context = {
        **_frame(request, f"change:{number}", mine.name),
        **_compared(actor, mine, shown, subject=f"change:{number}", changes=pending.changes),
        "pending": pending,
    }
    return review_page(request, "review/change.html", context)


@reviewer("POST")
@once
def decide_change(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline pending changes."""
    pending = PendingChange.objects.filter(pk=number).select_related("company").first()
    name = pending.company.name if pending else ""
    said = (gettext("Change published."), gettext("Change declined."))
    return _decide(request, "change", number, said, name)


@reviewer("GET", "HEAD")
def petition(request: HttpRequest, number: int) -> HttpResponse:
    """Show a claim or a suggestion."""
    found = Petition.objects.filter(pk=number).select_related("account", "company", "person").first()
    if found is None:
        raise NotFound(gettext("This request doesn't exist."), gettext("Open items are at /review."))
    public = f"/people/{found.person.slug}" if found.person else ""
    links = []
    actor = actor_of(request)
    if found.company:
        public = f"/companies/{found.company.slug}"
        links = links_of(listings.get_company(actor, found.company.slug).bundle["company"])
    name, subject = str(found.company or found.person), f"petition:{number}"
    shown_checks = []
    if not found.decision:
        stored = ItemChecks.objects.filter(subject=subject).first()
        shown_checks = _shown(checks.petition_checks(actor, found, stored=stored))
    context = {
        **_frame(request, subject, name),
        "petition": found,
        "key": public.rpartition("/")[2],
        "name": name,
        "public": public,
        "links": links,
        "diff": differences.lines_of(claims.describe(found)),
        "evidence": evidence_for(found),
        "claimant": checks.claimant_of(actor, found),
        "checks": shown_checks,
    }
    return review_page(request, "review/petition.html", context)


@reviewer("POST")
@once
def decide_petition(request: HttpRequest, number: int) -> HttpResponse:
    """Approve or decline a claim or a suggestion."""
    found = Petition.objects.filter(pk=number).select_related("company", "person").first()
    name = str(found.company or found.person) if found else ""
    said = (gettext("Request approved."), gettext("Request declined."))
    return _decide(request, "petition", number, said, name)


def _decide(request: HttpRequest, kind: str, number: int, said: tuple[str, str], name: str) -> HttpResponse:
    """
    Approve or decline and lead to the next item; a refusal shows on the page of the change or petition.

    Args:
        said: the words for approved, and for declined.
    """
    actor, subject = actor_of(request), f"{kind}:{number}"
    is_approved = request.POST.get("do") == "approve"
    decision: Decision = "approve" if is_approved else "decline"
    try:
        note = reviewers.with_reply(actor, request.POST.get("note", ""), whole_number(request.POST.get("reply", "")))
        deciding.decide(actor, Chosen(subject), decision, note)
    except (BadRequest, Conflict) as refusal:
        folder = "changes" if kind == "change" else "requests"
        return _refused(request, refusal, f"/review/{folder}/{number}")
    approved, declined = said
    words = approved if is_approved else declined
    return go_on(request, subject, words, name, undo=not is_approved)


def _refused(request: HttpRequest, refusal: Problem, page: str) -> HttpResponse:
    """Lead back to the item's page, which has the note that was typed; a missing note is told at its field."""
    address = f"{page}{query_of(request)}"
    if isinstance(refusal, NoteMissing):
        request.session[_NOTE_FAULT] = told(refusal)
        address += "#note"
    else:
        show_problem(request, refusal)
    keep_form(request, page, author=str(request.user.pk))
    return tell(HttpResponseRedirect(address))


def _shown(results: list[Check]) -> list[JSONObject]:
    """Return checks with their labels and states in words."""
    states = {True: ("good", gettext("Pass")), False: ("wait", gettext("Check")), None: ("", gettext("Not checked"))}
    rows = []
    for check in results:
        tone, state = states[check.passed]
        links = [(name, f"/review/companies/{slug}", shared) for name, slug, shared in check.rows]
        row = {"what": CHECKS[check.name], "tone": tone, "state": state, "found": check.found, "links": links}
        rows.append(row)
    return rows


def _frame(request: HttpRequest, subject: str, name: str) -> JSONObject:
    actor, typed = actor_of(request), form_data(request)
    note = typed.get("note", "") if typed else ""
    return {
        "subject": subject,
        "note": note,
        "note_fault": request.session.pop(_NOTE_FAULT, ""),
        "taken_by": items.assignee(subject),
        "replies": reviewers.list_replies(actor),
        "crumbs": [(gettext("Review"), "/review"), (name, "")],
    }


def _compared(
    actor: Actor,
    mine: OwnedCompany,
    shown: Mapping[str, JSONMapping],
    *,
    subject: str,
    changes: JSONObject | None = None,
) -> JSONObject:
    """Return the differences of an item and the checks of its listing, with what the owner's own check says."""
    stored = ItemChecks.objects.filter(subject=subject).first()
    rows = _shown(checks.company_checks(actor, mine, changes, stored=stored))
    findings = [finding.text for finding in unfinished_of(plain(mine.bundle), now().date().isoformat())]
    if findings:
        words = gettext("the owner's check says: %(findings)s") % {"findings": " ".join(findings)}
        rows.append(
            {"what": gettext("Unfinished"), "tone": "wait", "state": gettext("Check"), "found": words, "links": []}
        )
    return {
        "mine": mine,
        "facts": mine.bundle["company"],
        "diff": differences.lines_of(shown),
        "links": links_of({**mine.bundle["company"], **(changes or {})}),
        "checks": rows,
    }
