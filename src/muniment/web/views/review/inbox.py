"""The reviewers' inbox: find items, assign them, decide on several, go to the next one."""

from collections.abc import Mapping
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
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager, whole_number

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
    if assignee not in {"", "me", "none"} and whole_number(assignee) is None:
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
    parameters = {}
    for name in PARAMETERS:
        value = request.GET.get(name, "")
        if value:
            parameters[name] = value
    return f"?{urlencode(parameters)}" if parameters else ""


def review_page(request: HttpRequest, template: str, context: JSONObject, *, status: int = 0) -> HttpResponse:
    """Render a page of the inbox or of an item, with the reviewer's settings and what was decided last."""
    last = request.session.pop(_LAST, None)  # shown once
    own = reviewers.get_settings(actor_of(request))
    page = {"tab": "queue", "query": query_of(request), "shortcuts": own.shortcuts, "last": last, **context}
    subject = context.get("subject")
    if subject:
        page["has_next"] = items.next_item(actor_of(request), asked_filter(request.GET), subject) is not None
    return manage_page(request, template, page, status=status)


def go_on(request: HttpRequest, subject: str, said: str, name: str, *, undo: bool) -> HttpResponse:
    """
    Lead to the next item of the inbox's filter, which says what was decided.

    Args:
        undo: the decision can be taken back.
    """
    count = items.count_queue(actor_of(request), asked_filter(request.GET))
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
    return _next_item(request, subject)


def _next_item(request: HttpRequest, subject: str) -> HttpResponse:
    """Lead to the item behind another one in the inbox's filter; to the inbox behind the last one."""
    following = items.next_item(actor_of(request), asked_filter(request.GET), subject)
    page = following.address if following else "/review"
    return HttpResponseRedirect(f"{page}{query_of(request)}")


@reviewer("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the items that a filter finds, by default all that wait, oldest first."""
    actor, inbox_filter = actor_of(request), asked_filter(request.GET)
    page = items.list_queue(actor, inbox_filter, page=asked_page(request.GET), page_size=PAGE_SIZE)
    counts = items.count_kinds(actor, inbox_filter)
    others = [(str(account.pk), account) for account in items.list_reviewers(actor) if account.pk != actor.account_id]
    context = {
        "found": page,
        "rows": [_row(item) for item in page.items],
        "pager": pager(request, (*PARAMETERS, "page"), page),
        "given": inbox_filter,
        "is_filtered": inbox_filter != InboxFilter(newest=inbox_filter.newest),
        "kinds": [(kind, label, counts.get(kind, 0)) for kind, label in KINDS.items()],
        "states": STATES.items(),
        "checks": CHECKS.items(),
        "reviewers": others,
    }
    return review_page(request, "review/home.html", context)


def _row(item: QueueItem) -> JSONObject:
    return {"item": item, "what": what(item), "checks": shown_checks(item)}


def what(item: QueueItem) -> str:
    """Return what an item asks for."""
    if item.kind == "change":
        fields = item.fields if language() == SOURCE else map(label_of, item.fields)
        return gettext("Change to %(fields)s") % {"fields": ", ".join(fields)}
    if item.is_proven:
        return gettext("Listing claim, domain verified")
    return str(KINDS[item.kind])


def shown_checks(item: QueueItem) -> JSONObject | None:
    """Return the outcome of an item's checks as a state and words; None for an item that is not open."""
    if item.decision:
        return None
    if item.attention is None:
        return {"tone": "", "state": gettext("Pending"), "names": ""}
    if item.attention:
        names = [str(CHECKS[name]) for name in item.attention if name in CHECKS]
        return {"tone": "wait", "state": gettext("Check"), "names": ", ".join(names)}
    return {"tone": "good", "state": gettext("Pass"), "names": ""}


@reviewer("POST")
def take(request: HttpRequest) -> HttpResponse:
    """Assign an item to the reviewer, or unassign it."""
    actor, subject = actor_of(request), request.POST.get("subject", "")[:220]
    page = asked_page(request.POST)
    query = query_of(request)
    if page > 1:
        query += "&" if query else "?"
        query += f"page={page}"
    act = items.unassign if request.POST.get("do") == "leave" else items.assign
    with problems_shown(request, Conflict):
        act(actor, subject)
    address = "/review"
    if request.POST.get("from") == "item" and deciding.is_subject(subject):
        address = items.address_of(subject)
    return HttpResponseRedirect(f"{address}{query}")


@reviewer("GET", "HEAD")
def skip(request: HttpRequest) -> HttpResponse:
    """Lead to the item behind another one."""
    return _next_item(request, request.GET.get("after", "")[:220])


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
    open_items = items.find_items(actor, [chosen_item.subject for chosen_item in selected[: deciding.MAX_TOGETHER + 1]])
    context = {
        "do": do,
        "action": DECISIONS[do],
        "selected": [_row(item) for item in open_items],
        "values": post.getlist("item"),
        "gone": len(selected) - len(open_items),
        "note": post.get("note", ""),
        "note_fault": note_fault,
        "replies": reviewers.list_replies(actor),
        "reviewers": items.list_reviewers(actor),
        "crumbs": [(gettext("Review"), f"/review{query_of(request)}"), (gettext("Selected items"), "")],
    }
    return review_page(request, "review/several.html", context)


def _act(request: HttpRequest, selected: list[Chosen], do: str) -> HttpResponse:
    actor, post = actor_of(request), request.POST
    # Named before the decision: decided items are not found any more.
    open_items = items.find_items(actor, [chosen_item.subject for chosen_item in selected])
    names = {item.subject: item.name for item in open_items}
    if do == "assign":
        reviewer_id = whole_number(post.get("to", ""))
        if reviewer_id is None and post.get("to"):
            raise BadRequest(gettext("This account is not a reviewer's."), gettext("Choose a reviewer."))
        outcomes = deciding.assign_several(actor, selected, reviewer_id)
    else:
        note = reviewers.with_reply(actor, post.get("note", ""), whole_number(post.get("reply", "")))
        outcomes = deciding.decide_several(actor, selected, cast("Decision", do), note)
    request.session[_RESULTS] = {"do": do, "lines": [_line(names, outcome) for outcome in outcomes]}
    return HttpResponseRedirect(f"/review/several/done{query_of(request)}")


def _line(names: Mapping[str, str], result: Result) -> JSONObject:
    address = items.address_of(result.subject) if deciding.is_subject(result.subject) else ""
    problem = told(result.problem) if result.problem else ""
    name = names.get(result.subject, result.subject.partition(":")[2])
    return {"name": name, "address": address, "problem": problem}


@reviewer("GET", "HEAD")
def results(request: HttpRequest) -> HttpResponse:
    """Show what became of each of the selected items."""
    stored: Any = request.session.get(_RESULTS)
    if not stored:
        return HttpResponseRedirect("/review")
    lines = stored["lines"]
    context = {
        "lines": lines,
        "done": sum(not line["problem"] for line in lines),
        "word": DONE[stored["do"]],
        "crumbs": [(gettext("Review"), f"/review{query_of(request)}"), (gettext("Results"), "")],
    }
    return review_page(request, "review/results.html", context)


def _chosen(value: str) -> Chosen:
    subject, _, version = value[:240].partition("@")
    return Chosen(subject, whole_number(version))
