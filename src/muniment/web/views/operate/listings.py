"""Moderation of companies and people in bulk: find, unlist with a reason, publish again; links to merge and erase."""

from typing import Final

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.registry.inbox import deciding
from muniment.registry.inbox.deciding import Result
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/listings"
KINDS: Final = {"companies": gettext_lazy("Companies"), "people": gettext_lazy("People")}
STATES: Final = {"public": gettext_lazy("Published"), "hidden": gettext_lazy("Not public")}
GAPS: Final = {
    "description": gettext_lazy("Without a summary"),
    "website": gettext_lazy("Without a website"),
    "type": gettext_lazy("Without a type"),
    "review": gettext_lazy("Not reviewed in the last year"),
    "profiles": gettext_lazy("With names that have no profile"),
}
STEPS: Final = {
    "unlist": gettext_lazy("Unlist"),
    "relist": gettext_lazy("Publish again"),
    "confirm": gettext_lazy("Mark as reviewed"),
}
DONE: Final = {
    "unlist": gettext_lazy("Unlisted"),
    "relist": gettext_lazy("Published again"),
    "confirm": gettext_lazy("Reviewed"),
}


@operator("GET", "HEAD")
def listings(request: HttpRequest) -> HttpResponse:
    """List companies or people by words and state."""
    query = request.GET
    kind, state = chosen(query, "kind", tuple(KINDS)) or "companies", chosen(query, "state", tuple(STATES))
    gap = chosen(query, "gap", tuple(GAPS)) if kind == "companies" else ""
    words = query.get("q", "").strip()[:200]
    found = deciding.list_rows(
        actor_of(request), kind, words, state=state, gap=gap, page=asked_page(query), page_size=PAGE_SIZE
    )
    context = {
        "found": found,
        "pager": pager(request, ("kind", "q", "state", "gap", "page"), found),
        "given": {"kind": kind, "q": words, "state": state, "gap": gap},
        "is_filtered": bool(words or state or gap),
        "kinds": KINDS.items(),
        "states": STATES.items(),
        "gaps": GAPS.items(),
    }
    return operate_page(request, "listings", "operate/listings.html", context)


@operator("POST")
@once
def several(request: HttpRequest) -> HttpResponse:
    """Show what would be moved, ask for the reason, and move it."""
    actor, post = actor_of(request), request.POST
    kind, do = post.get("kind", ""), post.get("do", "")
    if kind not in KINDS or do not in STEPS:
        raise BadRequest(gettext("The form has no decision."), gettext("Use one of the buttons on the page."))
    slugs = list(dict.fromkeys(value[:200] for value in post.getlist("slug")))
    rows = deciding.find_rows(actor, kind, slugs)
    context = {
        "do": do,
        "step": STEPS[do],
        "kind": kind,
        "rows": rows,
        "gone": len(slugs) - len(rows),
        "note": post.get("note", ""),
        "crumbs": [(gettext("Listings"), HOME), (gettext("Selected listings"), "")],
    }
    if post.get("confirmed"):
        with problems_shown(request, BadRequest):
            moved = deciding.move_several(actor, kind, do, slugs, post.get("note", ""))
            return _results(request, context, moved)
    return operate_page(request, "listings", "operate/several.html", context)


def _results(request: HttpRequest, context: JSONObject, moved: list[Result]) -> HttpResponse:
    """Show what became of each of the selected listings."""
    names = {row.slug: row.name for row in context["rows"]}
    lines = []
    for result in moved:
        slug = result.subject
        lines.append({"slug": slug, "name": names.get(slug, slug), "problem": result.problem})
    context = {**context, "lines": lines, "word": DONE[context["do"]]}
    return operate_page(request, "listings", "operate/moved.html", context)
