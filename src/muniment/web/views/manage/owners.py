"""Owners of a listing: invite, accept an invitation, leave; and what they take back."""

from collections.abc import Callable
from typing import Final, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.actor import Actor
from muniment.kernel.problems import Conflict, Forbidden, TooMany
from muniment.registry.company import listings
from muniment.registry.company.changes import BadFields
from muniment.registry.company.listings import OwnedCompany
from muniment.registry.models import Ownership
from muniment.registry.names.operations import hide_former_name, remove_former_name, show_former_name
from muniment.registry.review import invitations, workflow
from muniment.web.context import address
from muniment.web.requests.access import actor_of, confirmed, reviewer, signed_in
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask, manage_page, problems_shown


@signed_in("POST")
@confirmed(lambda slug: f"/manage/companies/{slug}")
@once
def invite(request: HttpRequest, slug: str) -> HttpResponse:
    email = request.POST.get("email", "")
    with problems_shown(request, BadFields, Conflict, TooMany):
        invitations.invite_owner(actor_of(request), slug, email, base_url=address(request))
        messages.success(request, gettext("Invitation sent to %(email)s.") % {"email": email})
    return HttpResponseRedirect(f"/manage/companies/{slug}")


@signed_in("POST")
@once
def revoke(request: HttpRequest, slug: str, key: int) -> HttpResponse:
    revoked = invitations.revoke_invitation(actor_of(request), slug, key)
    messages.success(request, gettext("Invitation of %(email)s revoked.") % {"email": revoked.email})
    return HttpResponseRedirect(f"/manage/companies/{slug}")


@signed_in()
def invitation(request: HttpRequest, token: str) -> HttpResponse:
    if request.method == "POST":
        company = invitations.accept_invitation(actor_of(request), token)
        messages.success(request, gettext("You now co-own the listing of %(name)s.") % {"name": company.name})
        return HttpResponseRedirect(f"/manage/companies/{company.slug}")
    found = invitations.find_invitation(token)
    context = {"invitation": found, "expires_at": found.invited_at + invitations.VALID_FOR}
    return manage_page(request, "manage/invitation.html", context)


@signed_in()
@confirmed(when=lambda _: True)
@once
def leave(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask whether to leave a listing, and leave it."""
    actor = actor_of(request)
    mine = listings.get_company(actor, slug)
    if request.method == "POST":
        listings.leave_company(actor, slug)
        messages.success(request, gettext("You've left this listing."))
        return HttpResponseRedirect("/manage")
    return _ask(request, mine, _question_of_leaving(mine))


def _question_of_leaving(mine: OwnedCompany) -> Question:
    sentences = [gettext("You'll no longer be able to edit it. Invitations that you sent stop working.")]
    if Ownership.objects.filter(company__slug=mine.slug).count() == 1:
        after = gettext("You are the last owner. The listing is not public, so only reviewers can open it after that.")
        if mine.published:
            after = gettext("You are the last owner. The listing stays public, and anyone can ask to claim it.")
        sentences.append(after)
    title = gettext("Leave the listing of %(name)s?") % {"name": mine.name}
    return Question(title, sentences, gettext("Leave listing"))


class Step(NamedTuple):
    """A step that owners take with a listing, and what it means."""

    take: Callable[[Actor, str], object]
    title: Words
    sentences: tuple[Words, ...]
    button: Words
    done: Words
    tone: str = "danger"


STEPS: Final = {
    "delete": Step(
        workflow.delete_draft,
        gettext_lazy("Delete the draft of %(name)s?"),
        (
            gettext_lazy("The draft and its history are deleted. This cannot be undone."),
            gettext_lazy("Its address is not given to another listing."),
        ),
        gettext_lazy("Delete draft"),
        gettext_lazy("Draft deleted."),
    ),
    "withdraw": Step(
        workflow.withdraw_submission,
        gettext_lazy("Withdraw the submission of %(name)s?"),
        (gettext_lazy("The listing leaves the review queue and is a draft again. You can submit it again later."),),
        gettext_lazy("Withdraw submission"),
        gettext_lazy("Submission withdrawn. The listing is a draft again."),
        "main",
    ),
    "withdraw-change": Step(
        workflow.withdraw_change,
        gettext_lazy("Withdraw the pending change of %(name)s?"),
        (gettext_lazy("The published values stay, and the request leaves the review queue."),),
        gettext_lazy("Withdraw change"),
        gettext_lazy("Change withdrawn."),
        "main",
    ),
    "unlist": Step(
        workflow.unlist_own_company,
        gettext_lazy("Unlist %(name)s?"),
        (
            gettext_lazy("It is removed from all public pages, the search and the API, and its programs close."),
            gettext_lazy("You can still edit it, and publish it again at any time."),
        ),
        gettext_lazy("Unlist listing"),
        gettext_lazy("Unlisted. The listing is no longer public."),
    ),
    "relist": Step(
        workflow.relist_own_company,
        gettext_lazy("Publish %(name)s again?"),
        (gettext_lazy("The listing goes live as it is now, in its former place."),),
        gettext_lazy("Publish again"),
        gettext_lazy("The listing is public again."),
        "main",
    ),
}


@signed_in()
@once
def take_step(request: HttpRequest, slug: str, step: str) -> HttpResponse:
    """Ask before a step that takes a listing back, and take it."""
    actor, chosen = actor_of(request), STEPS[step]
    mine = listings.get_company(actor, slug)
    where = f"/manage/companies/{slug}"
    if request.method != "POST":
        title = chosen.title % {"name": mine.name}
        return _ask(request, mine, Question(title, chosen.sentences, chosen.button, chosen.tone))
    with problems_shown(request, Conflict, Forbidden):
        chosen.take(actor, slug)
        messages.success(request, str(chosen.done))
        where = "/manage" if step == "delete" else where
    return HttpResponseRedirect(where)


_NAME_CHANGES: Final = {"hide": hide_former_name, "show": show_former_name}


@signed_in("POST")
@once
def change_name(request: HttpRequest, slug: str) -> HttpResponse:
    """Hide a former name of a listing, or show it again."""
    change = _NAME_CHANGES.get(request.POST.get("do", ""), show_former_name)
    with problems_shown(request, Forbidden):
        change(actor_of(request), slug, request.POST.get("name", ""))
        messages.success(request, gettext("Former names changed."))
    return HttpResponseRedirect(f"/manage/companies/{slug}#former")


@reviewer()
@once
def remove_name(request: HttpRequest, slug: str) -> HttpResponse:
    """Ask whether to remove a former name for good, and remove it."""
    actor, name = actor_of(request), (request.POST or request.GET).get("name", "")
    if request.method == "POST":
        remove_former_name(actor, slug, name)
        messages.success(request, gettext("Former name removed."))
        return HttpResponseRedirect(f"/manage/companies/{slug}#former")
    sentences = (
        gettext("The name leaves every public page, the search, the API, the history and new backups and exports."),
        gettext("This cannot be undone. Backups from before keep it until you delete them."),
    )
    title = gettext("Remove the former name %(name)s?") % {"name": name}
    return _ask(request, listings.get_company(actor, slug), Question(title, sentences, gettext("Remove")), name=name)


def _ask(request: HttpRequest, mine: OwnedCompany, question: Question, **context: str) -> HttpResponse:
    here = f"/manage/companies/{mine.slug}"
    crumbs = [(gettext("Manage"), "/manage"), (mine.name, here), (str(question.title), "")]
    return ask(request, question, back=here, crumbs=crumbs, **context)
