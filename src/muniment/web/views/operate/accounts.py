"""Accounts: find one, create one, change its role, disable it, remove its second factors, sign it out, delete it."""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from allauth.mfa.models import Authenticator
from allauth.usersessions.models import UserSession
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts import operations
from muniment.accounts.models import PersonalToken
from muniment.accounts.personal_data import delete_account
from muniment.accounts.tokens import revoke_all
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.oauth.clients import disconnect_all
from muniment.oauth.models import Grant
from muniment.registry.company.listings import add_owner
from muniment.registry.models import Ownership
from muniment.web.requests.access import actor_of, confirmed, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask, problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/accounts"
STATES: Final = {"active": gettext_lazy("Active"), "disabled": gettext_lazy("Disabled")}
ROLES: Final = {
    "owner": gettext_lazy("Owner"),
    "reviewer": gettext_lazy("Reviewer"),
    "operator": gettext_lazy("Operator"),
}
LISTINGS: Final = 20


class AccountAction(NamedTuple):
    """An action of an operator on an account, after a question."""

    act: Callable[[Actor, str], object]
    title: Words
    sentences: tuple[Words, ...]
    button: Words
    done: Words
    tone: str = "danger"


ACTIONS: Final = {
    "disable": AccountAction(
        lambda actor, email: operations.set_active(actor, email, active=False),
        gettext_lazy("Disable %(email)s?"),
        (
            gettext_lazy("All sessions, tokens and connected apps of this account stop working immediately."),
            gettext_lazy("Its listings stay public. You can enable the account again."),
        ),
        gettext_lazy("Disable account"),
        gettext_lazy("Account disabled."),
    ),
    "enable": AccountAction(
        lambda actor, email: operations.set_active(actor, email, active=True),
        gettext_lazy("Enable %(email)s?"),
        (gettext_lazy("The account can sign in again, and its tokens work until they expire."),),
        gettext_lazy("Enable account"),
        gettext_lazy("Account enabled."),
        "main",
    ),
    "factors": AccountAction(
        operations.remove_factors,
        gettext_lazy("Remove the second factors of %(email)s?"),
        (
            gettext_lazy("First make sure that it is the owner who asks."),
            gettext_lazy("Every second factor and passkey is removed. The owner is notified by email."),
        ),
        gettext_lazy("Remove second factors"),
        gettext_lazy("Second factors and passkeys removed."),
    ),
    "sign-out": AccountAction(
        operations.end_sessions,
        gettext_lazy("Sign %(email)s out everywhere?"),
        (gettext_lazy("Every browser session of the account ends. Tokens and connected apps continue to work."),),
        gettext_lazy("Sign out everywhere"),
        gettext_lazy("All sessions ended."),
    ),
    "tokens": AccountAction(
        lambda actor, email: (revoke_all(actor, email), disconnect_all(actor, email)),
        gettext_lazy("Revoke all tokens and apps of %(email)s?"),
        (
            gettext_lazy("Every personal access token and connected app of the account stops working at once."),
            gettext_lazy("The owner is notified by email, and can create and connect new ones."),
        ),
        gettext_lazy("Revoke tokens and apps"),
        gettext_lazy("Tokens revoked, apps disconnected."),
    ),
    "delete": AccountAction(
        delete_account,
        gettext_lazy("Delete %(email)s?"),
        (
            gettext_lazy("Credentials, sessions, requests and unpublished drafts are deleted. This cannot be undone."),
            gettext_lazy("Published listings stay and can be claimed. A public profile stays; erase it separately."),
        ),
        gettext_lazy("Delete account"),
        gettext_lazy("Account deleted."),
    ),
}


@operator()
@confirmed()
@once
def accounts(request: HttpRequest) -> HttpResponse:
    """List accounts, and create one that signs in by an emailed code."""
    actor, query = actor_of(request), request.GET
    if request.method == "POST":
        with problems_shown(request, BadRequest, Conflict):
            email, role = request.POST.get("email", ""), request.POST.get("role", "")
            created = operations.create_account(actor, email[:254], role=role)
            messages.success(request, gettext("Account created. It signs in by a code that we email."))
            return HttpResponseRedirect(_address(created.pk))
    role, state = chosen(query, "role", tuple(ROLES)), chosen(query, "state", tuple(STATES))
    words = query.get("q", "").strip()[:200]
    found = operations.search_accounts(
        actor, words, role=role, state=state, page=asked_page(query), page_size=PAGE_SIZE
    )
    context = {
        "found": found,
        "pager": pager(request, ("q", "role", "state", "page"), found),
        "given": {"q": words, "role": role, "state": state},
        "is_filtered": bool(words or role or state),
        "roles": ROLES.items(),
        "states": STATES.items(),
        "email": request.POST.get("email", ""),
    }
    return operate_page(request, "accounts", "operate/accounts.html", context)


@operator("GET", "HEAD")
def account(request: HttpRequest, number: int) -> HttpResponse:
    """Show an account and what an operator can do with it."""
    found = operations.get_account(actor_of(request), number)
    owned = Ownership.objects.filter(account=found).select_related("company").order_by("company__name")
    context: dict[str, Any] = {
        "account": found,
        "is_own": found.pk == actor_of(request).account_id,
        "roles": ROLES.items(),
        "factors": Authenticator.objects.filter(user=found).count(),
        "sessions": UserSession.objects.filter(user=found).count(),
        "tokens": PersonalToken.objects.filter(account=found, revoked_at=None).count(),
        "apps": Grant.objects.filter(account=found, revoked_at=None, refresh_expires_at__gt=now()).count(),
        "owned": owned[:LISTINGS],
        "more": max(0, owned.count() - LISTINGS),
        "crumbs": [(gettext("Accounts"), HOME), (str(found), "")],
    }
    return operate_page(request, "accounts", "operate/account.html", context)


@operator("POST")
@confirmed(lambda number: f"{HOME}/{number}")
@once
def change_role(request: HttpRequest, number: int) -> HttpResponse:
    """Change the role of an account."""
    actor = actor_of(request)
    with problems_shown(request, BadRequest, Conflict):
        found = operations.set_role(actor, _email(actor, number), request.POST.get("role", ""))
        messages.success(request, gettext("The role is now: %(role)s.") % {"role": ROLES[found.role]})
    return HttpResponseRedirect(_address(number))


@operator()
@confirmed(when=lambda _: True)
@once
def act(request: HttpRequest, number: str, action: str) -> HttpResponse:
    """Ask before an action on an account, and take it."""
    actor, chosen_action = actor_of(request), ACTIONS[action]
    back = _address(int(number))
    found = operations.get_account(actor, int(number))
    if request.method == "POST":
        with problems_shown(request, Conflict):
            chosen_action.act(actor, found.email)
            messages.success(request, str(chosen_action.done))
            if action == "delete":
                back = HOME
        return HttpResponseRedirect(back)
    title = str(chosen_action.title) % {"email": found.email}
    crumbs = [(gettext("Accounts"), HOME), (str(found), back), (str(chosen_action.button), "")]
    question = Question(title, chosen_action.sentences, chosen_action.button, chosen_action.tone)
    return ask(request, question, back=back, crumbs=crumbs)


@operator("POST")
@confirmed(lambda number: f"{HOME}/{number}")
@once
def give_listing(request: HttpRequest, number: int) -> HttpResponse:
    """Make the account an owner of a listing."""
    actor, slug = actor_of(request), request.POST.get("slug", "").strip()[:200]
    found = operations.get_account(actor, number)
    try:
        add_owner(actor, slug, found.pk)
    except NotFound:
        messages.error(request, gettext("There is no listing with the slug %(slug)s.") % {"slug": slug})
    else:
        messages.success(request, gettext("%(email)s now owns %(slug)s.") % {"email": found.email, "slug": slug})
    return HttpResponseRedirect(_address(number))


def _email(actor: Actor, number: int) -> str:
    return operations.get_account(actor, number).email


def _address(number: int) -> str:
    return f"{HOME}/{number}"
