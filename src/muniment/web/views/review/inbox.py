"""The reviewers' inbox: find items, assign them, decide on several, go to the next one."""

from collections.abc import Mapping
from functools import partial
from typing import Any, Final, cast
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.languages.catalogues import SOURCE
from muniment.languages.speaking import language
from muniment.languages.translated import told
from muniment.languages.writing import number
from muniment.registry.company.access import NoteMissing
from muniment.registry.inbox import deciding, items, reviewers
from muniment.registry.inbox.checks import NAMES
from muniment.registry.inbox.deciding import Chosen, Decision, Result
from muniment.registry.inbox.items import InboxFilter, ItemState, QueueItem
from muniment.web.presenters.differences import label_of
from muniment.web.requests.access import actor_of, reviewer
from muniment.web.requests.once import once
from muniment.web.requests.pages import manage_page, problems_shown, show_problem
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager

PARAMETERS: Final = ("kind", "assignee", "state", "check", "q", "sort")
KINDS: Final[Mapping[str, Promise]] = {
    "listing": gettext_lazy("New listing"),
    "change": gettext_lazy("Change"),
    "claim": gettext_lazy("Listing claim"),
    "profile": gettext_lazy("Profile claim"),
    "suggestion": gettext_lazy("Suggested edit"),
}
STATES: Final[Mapping[str, Promise]] = {
    "open": gettext_lazy("Waiting for review"),
    "returned": gettext_lazy("Waiting for the owner"),
    "decided": gettext_lazy("Decided"),
}
CHECKS: Final[Mapping[str, Promise]] = {
    "website": gettext_lazy("Website"),
    "links": gettext_lazy("Links"),
    "duplicates": gettext_lazy("Duplicates"),
    "domain": gettext_lazy("Domain"),
    "numbers": gettext_lazy("Numbers"),
    "values": gettext_lazy("Values"),
    "missing": gettext_lazy("Missing fields"),
}
DECISIONS: Final[Mapping[str, Promise]] = {
    "approve": gettext_lazy("Approve"),
    "decline": gettext_lazy("Decline"),
    "assign": gettext_lazy("Assign"),
}
DONE: Final[Mapping[str, Promise]] = {
    "approve": gettext_lazy("Approved"),
    "decline": gettext_lazy("Declined"),
    "assign": gettext_lazy("Assigned"),
}
_LAST, _RESULTS = "review_last", "review_results"


def asked_filter(query: QueryDict) -> InboxFilter:
    """
    Return the filter of an address.

    Raises:
        BadRequest: a parameter has a value that it cannot have.
    """
    assignee = query.get("assignee", "")
    if assignee not in {"", "me", "none"} and not (assignee.isascii() and assignee.isdigit() and len(assignee) < 10):
        raise BadRequest(gettext("This assignee doesn't exist."), gettext("Choose one on the page."))
    return InboxFilter(
        kind=chosen(query, "kind", items.KINDS),
        state=cast("ItemState", chosen(query, "state", items.STATES) or "open"),
        assignee=assignee,
        check=chosen(query, "check", ("attention", "passed", *NAMES)),
        words=query.get("q", "").strip()[: items.MAX_WORDS],
        newest=chosen(query, "sort", ("oldest", "newest")) == "newest",
    )


def query_of(request: HttpRequest) -> str:
    """Return the parameters of the inbox in a request's address, with the question mark; "" without any."""
    kept = {name: request.GET.get(name, "") for name in PARAMETERS}
    text = urlencode({name: value for name, value in kept.items() if value})
    return f"?{text}" if text else ""


def review_page(request: HttpRequest, template: str, context: JSONObject, *, status: int = 0) -> HttpResponse:
    """Render a page of the inbox or of an item, with the reviewer's settings and what was decided last."""
    last = request.session.pop(_LAST, None)
    own = reviewers.get_settings(actor_of(request))
    shown = {"tab": "queue", "query": query_of(request), "shortcuts": own.shortcuts, "last": last, **context}
    if subject := context.get("subject"):
        shown["has_next"] = items.next_item(actor_of(request), asked_filter(request.GET), subject) is not None
    return manage_page(request, template, shown, status=status)


def go_on(request: HttpRequest, subject: str, said: str, name: str, *, undo: bool) -> HttpResponse:
    """
    Lead to the next item of the inbox's filter, which says what was decided.

    Args:
        undo: the decision can be taken back.
    """
    actor, found = actor_of(request), asked_filter(request.GET)
    count = items.count_queue(actor, found)
    left = gettext("Nothing left to review.")
    if count:
        left = ngettext("%(left)s item left.", "%(left)s items left.", count) % {"left": number(count)}
    request.session[_LAST] = {
        "said": str(said),
        "name": name,
        "subject": subject if undo else "",
        "address": items.address_of(subject),
        "left": left,
    }
    following = items.next_item(actor, found, subject)
    return HttpResponseRedirect(f"{following.address if following else '/review'}{query_of(request)}")


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the items that a filter finds, by default all that wait, oldest first."""
    actor, given = actor_of(request), asked_filter(request.GET)
    found = items.list_queue(actor, given, page=asked_page(request.GET), page_size=PAGE_SIZE)
    counts = items.count_kinds(actor, given)
    reviewers = items.list_reviewers(actor)
    context = {
        "found": found,
        "rows": [{"item": each, "what": what(each), "checks": shown_checks(each)} for each in found.items],
        "pager": pager(request, (*PARAMETERS, "page"), found),
        "given": given,
        "is_filtered": given != InboxFilter(newest=given.newest),
        "kinds": [(kind, label, counts.get(kind, 0)) for kind, label in KINDS.items()],
        "states": STATES.items(),
        "checks": CHECKS.items(),
        "reviewers": [(str(each.pk), each) for each in reviewers if each.pk != actor.account_id],
    }
    return review_page(request, "review/home.html", context)


def what(item: QueueItem) -> str:
    """Return what an item asks for."""
    if item.kind == "change":
        return gettext("Change to %(fields)s") % {
            "fields": ", ".join(item.fields if language() == SOURCE else map(label_of, item.fields))
        }
    return gettext("Listing claim, domain verified") if item.is_proven else str(KINDS[item.kind])


def shown_checks(item: QueueItem) -> JSONObject | None:
    """Return the outcome of an item's checks as a state and words; None for an item that is not open."""
    if item.decision:
        return None
    if item.attention is None:
        return {"tone": "", "state": gettext("Pending"), "names": ""}
    if item.attention:
        names = ", ".join(str(CHECKS[name]) for name in item.attention if name in CHECKS)
        return {"tone": "wait", "state": gettext("Check"), "names": names}
    return {"tone": "good", "state": gettext("Pass"), "names": ""}


@reviewer("POST")
def take(request: HttpRequest) -> HttpResponse:
    """Assign an item to the reviewer, or unassign it."""
    actor, subject = actor_of(request), request.POST.get("subject", "")[:220]
    page = asked_page(request.POST)
    where = query_of(request)
    if page > 1:
        where += f"{'&' if where else '?'}page={page}"
    act = items.unassign if request.POST.get("do") == "leave" else items.assign
    with problems_shown(request, Conflict):
        act(actor, subject)
    on_item = request.POST.get("from") == "item" and deciding.is_subject(subject)
    return HttpResponseRedirect(f"{items.address_of(subject) if on_item else '/review'}{where}")


@reviewer("GET", "HEAD")
def skip(request: HttpRequest) -> HttpResponse:
    """Lead to the item behind another one."""
    subject = request.GET.get("after", "")[:220]
    following = items.next_item(actor_of(request), asked_filter(request.GET), subject)
    return HttpResponseRedirect(f"{following.address if following else '/review'}{query_of(request)}")


@reviewer("POST")
def reopen(request: HttpRequest) -> HttpResponse:
    """Take a decision back, and lead to the item."""
    subject = request.POST.get("subject", "")[:220]
    if not deciding.is_subject(subject):
        raise NotFound(gettext("This item doesn't exist."), gettext("Open items are at /review."))
    try:
        deciding.reopen(actor_of(request), subject)
    except Conflict as refusal:
        show_problem(request, refusal)
    else:
        request.session[_LAST] = {"said": gettext("Decision undone. The item is waiting for review again.")}
    return HttpResponseRedirect(f"{items.address_of(subject)}{query_of(request)}")


@reviewer("POST")
@once
def several(request: HttpRequest) -> HttpResponse:
    """Ask for the note or the assignee for the selected items; then decide on them, or assign them."""
    actor, post = actor_of(request), request.POST
    do = post.get("do", "")
    if do not in DECISIONS:
        raise BadRequest(gettext("The form has no decision."), gettext("Use one of the buttons on the page."))
    note_fault = ""
    selected = [_chosen(value) for value in dict.fromkeys(post.getlist("item"))]
    if post.get("confirmed"):
        try:
            return _act(request, selected, do)
        except NoteMissing as refusal:
            note_fault = told(refusal)
        except BadRequest as refusal:
            show_problem(request, refusal)
    elif not selected:
        show_problem(request, BadRequest(gettext("No item is selected."), gettext("Select the items first.")))
        return HttpResponseRedirect(f"/review{query_of(request)}")
    here = items.find_items(actor, [each.subject for each in selected[: deciding.MAX_TOGETHER + 1]])
    context = {
        "do": do,
        "action": DECISIONS[do],
        "selected": [{"item": each, "what": what(each), "checks": shown_checks(each)} for each in here],
        "values": post.getlist("item"),
        "gone": len(selected) - len(here),
        "note": post.get("note", ""),
        "note_fault": note_fault,
        "replies": reviewers.list_replies(actor),
        "reviewers": items.list_reviewers(actor),
        "crumbs": [(gettext("Review"), f"/review{query_of(request)}"), (gettext("Selected items"), "")],
    }
    return review_page(request, "review/several.html", context)


def _act(request: HttpRequest, selected: list[Chosen], do: str) -> HttpResponse:
    actor, post = actor_of(request), request.POST
    names = {each.subject: each.name for each in items.find_items(actor, [each.subject for each in selected])}
    if do == "assign":
        to = number_of(post.get("to", ""))
        if to is None and post.get("to"):
            raise BadRequest(gettext("This account is not a reviewer's."), gettext("Choose a reviewer."))
        found = deciding.assign_several(actor, selected, to)
    else:
        note = reviewers.with_reply(actor, post.get("note", ""), number_of(post.get("reply", "")))
        found = deciding.decide_several(actor, selected, cast("Decision", do), note)
    request.session[_RESULTS] = {"do": do, "lines": list(map(partial(_line, names), found))}
    return HttpResponseRedirect(f"/review/several/done{query_of(request)}")


def _line(names: Mapping[str, str], result: Result) -> JSONObject:
    refusal = result.problem
    return {
        "name": names.get(result.subject, result.subject.partition(":")[2]),
        "address": items.address_of(result.subject) if deciding.is_subject(result.subject) else "",
        "problem": told(refusal) if refusal else "",
    }


@reviewer("GET", "HEAD")
def results(request: HttpRequest) -> HttpResponse:
    """Show what became of each of the selected items."""
    found: Any = request.session.get(_RESULTS)
    if not found:
        return HttpResponseRedirect("/review")
    lines = found["lines"]
    context = {
        "lines": lines,
        "done": sum(not line["problem"] for line in lines),
        "word": DONE[found["do"]],
        "crumbs": [(gettext("Review"), f"/review{query_of(request)}"), (gettext("Results"), "")],
    }
    return review_page(request, "review/results.html", context)


def number_of(text: str) -> int | None:
    """Return the number of a saved reply, a version or an account in a form; None without one."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def _chosen(value: str) -> Chosen:
    subject, _, version = value[:240].partition("@")
    return Chosen(subject, number_of(version))
