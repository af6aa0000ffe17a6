"""An owner's listings: overview, creating one in short steps, editing, history, funding."""

from collections.abc import Iterable, Mapping
from typing import Final

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.problems import Conflict
from muniment.languages.translated import told, translated
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.history import LaterChanges
from muniment.registry.inbox import items
from muniment.registry.models import Ownership, PendingChange, UnlistedBy
from muniment.registry.names.operations import list_former_names
from muniment.registry.people.positions import list_unlinked
from muniment.registry.people.profiles import get_profile
from muniment.registry.review import invitations, workflow
from muniment.registry.review.duplicates import host_of
from muniment.web.authoring.checks import missing_of
from muniment.web.presenters import differences
from muniment.web.presenters.company import former_name, rounds_of
from muniment.web.requests.access import actor_of, signed_in
from muniment.web.requests.kept_forms import form_data
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, ask, manage_page
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager, whole_number

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


OF_OWNERS: Final = ("owner added", "owner left", "owner removed")
SHORT_LINES: Final = 2
SHORT: Final = 80
"""Maximum characters of a line, or of a value, of a change that the history shows unfolded."""


@signed_in("GET", "HEAD")
def home(request: HttpRequest) -> HttpResponse:
    """Show the owner's listings and those that need attention."""
    actor = actor_of(request)
    mine = listings.list_companies(actor, page=asked_page(request.GET))
    attention = [company for company in mine.items if company.state in {"draft", "changes_requested"}]
    context = {
        "mine": mine,
        "attention": attention,
        "profile": get_profile(actor),
        "waiting": items.count_queue(actor) if actor.is_reviewer else 0,
        "pager": pager(request, ("page",), mine),
    }
    return manage_page(request, "manage/home.html", context)


@signed_in("GET", "HEAD")
def company(request: HttpRequest, slug: str) -> HttpResponse:
    """Show one listing: its state, pending changes and actions."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    owners = Ownership.objects.filter(company__slug=slug).select_related("account").order_by("since")
    typed = form_data(request)
    facts, rounds = mine.bundle["company"], rounds_of(mine.bundle)
    pending = {}
    for name, value in mine.pending_changes.items():
        pending[name] = {"before": facts.get(name), "after": value}
    rounds_not_closed = [row for row in rounds if row["state"] != "closed"]
    state = "unlisted by owner" if mine.unlisted_by == UnlistedBy.OWNER else mine.state
    unlinked_people = list_unlinked(actor, slug) if mine.state == "published" else []
    invited = typed.get("email", "") if typed else ""
    context = {
        **frame(mine, "overview"),
        "state_words": STATES[state],
        "deletable": mine.state in workflow.DELETABLE,
        "owners": owners,
        "is_owner": any(owner.account_id == actor.account_id for owner in owners),
        "rounds": rounds,
        "open_round": rounds_not_closed[0] if rounds_not_closed else None,
        "pending": differences.lines_of(pending),
        "pending_since": PendingChange.objects.filter(company__slug=slug, decision="").first(),
        "invitations": _open_invitations(actor, slug),
        "host": host_of(str(facts.get("website") or "")),
        "missing": missing_of(facts),
        "former_names": [{**entry, "shown": former_name(entry)} for entry in list_former_names(actor, slug)],
        "is_reviewer": actor.is_reviewer,
        "names": unlinked_people,
        "invited": invited,
    }
    return manage_page(request, "manage/company.html", context)


def _open_invitations(actor: Actor, slug: str) -> list[JSONObject]:
    """Return the invitations to co-own a listing, with the time at which each expires."""
    open_invitations = []
    for invitation in invitations.list_invitations(actor, slug):
        expires_at = invitation.invited_at + invitations.VALID_FOR
        open_invitations.append({"pk": invitation.pk, "email": invitation.email, "expires_at": expires_at})
    return open_invitations


@signed_in("GET", "HEAD")
def history(request: HttpRequest, slug: str) -> HttpResponse:
    """Show every change with its diff and a button to revert it."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    page = listings.company_history(actor, slug, page=asked_page(request.GET), page_size=PAGE_SIZE)
    room = differences.Room()
    entries = []
    for entry in page.items:
        lines = _with_owners(differences.lines_of_entry(entry, room), entry.action, slug)
        is_change = entry.action in {"updated", "reverted", "change approved", "imported"}
        had_values = not entry.is_loaded or any(key in entry.before for key in entry.after)
        row = {
            "entry": entry,
            "lines": lines,
            "is_short": _are_short(lines),
            "labels": differences.labels_of(entry),
            "can_revert": is_change and had_values,
        }
        entries.append(row)
    context = {**frame(mine, "history"), "entries": entries, "pager": pager(request, ("page",), page)}
    return manage_page(request, "manage/history.html", context)


def _with_owners(lines: list[differences.DiffLine], action: str, slug: str) -> list[differences.DiffLine]:
    """Name the accounts of present owners, which the history keeps by number; those of former ones stay private."""
    if action not in OF_OWNERS:
        return lines
    keys = [text for text in _texts(lines) if text.isdecimal()]
    owners = Ownership.objects.filter(company__slug=slug, account_id__in=keys).select_related("account")
    emails = {str(owner.account_id): owner.account.email for owner in owners}
    former = gettext("a former owner")

    def named(text: str) -> str:
        return emails.get(text, former) if text else ""

    return [differences.line(line.label, named(line.was), named(line.now)) for line in lines]


def _are_short(lines: list[differences.DiffLine]) -> bool:
    """Return whether the lines of a change are read faster than opened."""
    if not 0 < len(lines) <= SHORT_LINES:
        return False
    return all(len(text) <= SHORT and "\n" not in text for text in _texts(lines))


def _texts(lines: list[differences.DiffLine]) -> list[str]:
    """Return the values before and after the change of each line."""
    texts = []
    for line in lines:
        texts += [line.was, line.now]
    return texts


@signed_in("POST")
@once
def revert(request: HttpRequest, slug: str, entry: int) -> HttpResponse:
    """Revert a change; ask first if it replaces what later changes wrote."""
    actor, back = actor_of(request), f"/manage/companies/{slug}/history"
    try:
        done = listings.revert_company(actor, slug, entry, overwrite=request.POST.get("overwrite") == "yes")
    except LaterChanges as later:
        tried = listings.revert_company(actor, slug, entry, dry_run=True)
        crumbs = [(gettext("Manage"), "/manage"), (tried.company.name, f"/manage/companies/{slug}")]
        return ask_to_overwrite(request, later, tried.diff, back=back, crumbs=crumbs)
    say(request, done, gettext("Reverted."))
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
            listings.close_funding_round(actor, slug, closed=post.get("closed") or None)
            messages.success(request, gettext("Round closed."))
        elif post.get("do") == "publish":
            listings.publish_funding_round(actor, slug, post.get("round", ""))
            messages.success(request, gettext("The round's name and target are public."))
        else:
            target, opened = post.get("target") or None, post.get("opened") or None
            listings.open_funding_round(actor, slug, name=post.get("name", ""), target=target, opened=opened)
            messages.success(request, gettext("Round opened."))
    except Conflict as refusal:
        messages.error(request, told(refusal))
    except BadFields as refusal:
        messages.error(request, f"{translated(refusal.message)} ")
    return HttpResponseRedirect(f"/manage/companies/{slug}#funding")


def frame(mine: OwnedCompany, tab: str) -> JSONObject:
    """Return the context of the header of a listing's pages."""
    return {
        "mine": mine,
        "facts": mine.bundle["company"],
        "tab": tab,
        "crumbs": [(gettext("Manage"), "/manage"), (mine.name, "")],
    }


def asked_version(request: HttpRequest) -> int | None:
    """Return the version that the form was rendered from; None without one."""
    return version_of(request.POST)


def version_of(form: QueryDict) -> int | None:
    return whole_number(form.get("version", ""))


def say(request: HttpRequest, update: listings.CompanyUpdate | None, saved: str = "") -> None:
    """Add the messages about an update: what was withdrawn, what waits for others, and what was saved."""
    saved = saved or gettext("Saved.")
    if update is None:
        messages.info(request, gettext("No changes to save."))
        return
    if update.withdrawn:
        withdrawn = gettext("Your request to change %(fields)s was withdrawn.")
        messages.warning(request, withdrawn % {"fields": _labels(update.withdrawn)})
    if update.replaced:
        replaced = gettext("Your earlier request to change %(fields)s was replaced.")
        messages.warning(request, replaced % {"fields": _labels(update.replaced)})
    if update.awaiting_people:
        asked = gettext("Asked to confirm their position: %(slugs)s. Until then only the name is shown.")
        messages.info(request, asked % {"slugs": ", ".join(update.awaiting_people)})
    if update.awaiting_review:
        pending = ngettext(
            "Your new %(fields)s is pending review.", "Pending review: %(fields)s.", len(update.awaiting_review)
        )
        messages.warning(request, f"{saved} {pending % {'fields': _labels(update.awaiting_review)}}")
    elif update.applied or update.withdrawn:
        messages.success(request, saved)
    else:
        messages.info(request, gettext("No changes to save."))


def _labels(fields: Iterable[str]) -> str:
    return ", ".join(differences.label_of(field).lower() for field in fields)
