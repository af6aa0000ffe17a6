"""Invitations to create an account: the operators' page, and the page of the link."""

from typing import Any, Final

from allauth.account.utils import perform_login
from django import forms
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts.models import Account
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, MethodNotAllowed, NotFound
from muniment.registry.inviting import accounts
from muniment.registry.models.review import AccountInvitation
from muniment.web.context import address
from muniment.web.requests.access import account_of, actor_of, confirm_first, confirmed, operator
from muniment.web.requests.once import fresh_token, once
from muniment.web.requests.pages import problems_shown, show_problem
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, pager
from muniment.web.views.operate.accounts import ROLES
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/invitations"
STATES: Final = {
    "open": (gettext_lazy("Open"), "wait"),
    "accepted": (gettext_lazy("Accepted"), "good"),
    "revoked": (gettext_lazy("Revoked"), ""),
    "expired": (gettext_lazy("Expired"), ""),
}


class InvitationForm(forms.Form):
    """Whom to invite, as what."""

    email = forms.EmailField(
        label=gettext_lazy("Email"), max_length=254, widget=forms.EmailInput({"autocomplete": "off"})
    )
    role = forms.ChoiceField(label=gettext_lazy("Role"), choices=list(ROLES.items()))
    own = forms.CharField(
        label=gettext_lazy("Listing to own"),
        help_text=gettext_lazy("The last part of the address of the listing's page, such as tarnwick-tidal."),
        max_length=200,
        required=False,
    )


class InvitedForm(forms.Form):
    """The password of an invited person."""

    password = forms.CharField(
        label=gettext_lazy("Password"),
        help_text=gettext_lazy("At least ten characters. Leave it empty to sign in by codes that we email."),
        max_length=200,
        strip=False,
        required=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


@operator()
@confirmed()
@once
def invitations(request: HttpRequest) -> HttpResponse:
    """List invitations, and invite a person."""
    form = InvitationForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        values = form.cleaned_data
        try:
            invitation = accounts.invite_person(
                actor_of(request), values["email"], role=values["role"], own=values["own"], base_url=address(request)
            )
        except NotFound as refusal:
            form.add_error("own", f"{refusal.message} {refusal.hint}")
        except (BadRequest, Conflict) as refusal:
            form.add_error("email", f"{refusal.message} {refusal.hint}")
        else:
            messages.success(request, gettext("Invitation sent to %(email)s.") % {"email": invitation.email})
            return HttpResponseRedirect(HOME)
    page = accounts.list_invitations(actor_of(request), page=asked_page(request.GET), page_size=PAGE_SIZE)
    context = {
        "form": form,
        "found": page,
        "lines": [(row, ROLES.get(row.role, row.role), *STATES[row.state]) for row in page.items],
        "pager": pager(request, ("page",), page),
        "crumbs": [(gettext("Accounts"), "/operate/accounts"), (gettext("Invitations"), "")],
    }
    return operate_page(request, "accounts", "operate/invitations.html", context)


@operator("POST")
@confirmed(lambda **_: HOME)
@once
def act(request: HttpRequest, number: str, action: str) -> HttpResponse:
    """Mail the link of an invitation again, or revoke it."""
    with problems_shown(request, Conflict):
        if action == "resend":
            sent = accounts.resend_invitation(actor_of(request), int(number), base_url=address(request))
            messages.success(request, gettext("A new link was sent to %(email)s.") % {"email": sent.email})
        else:
            revoked = accounts.revoke_invitation(actor_of(request), int(number))
            messages.success(request, gettext("The invitation of %(email)s is revoked.") % {"email": revoked.email})
    return HttpResponseRedirect(HOME)


@once
def accept(request: HttpRequest, token: str) -> HttpResponse:
    """Show what an invitation gives; create the account, or give it to the signed-in one."""
    if request.method not in {"GET", "HEAD", "POST"}:
        raise MethodNotAllowed(str(request.method), "GET, HEAD, POST")
    invitation = accounts.find_invitation(token)
    if request.user.is_authenticated:
        return _with_account(request, token, invitation)
    if accounts.has_account(invitation):
        return _shown(request, invitation, needs_sign_in=True)
    form = InvitedForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            account = accounts.accept_as_new(token, form.cleaned_data["password"])
        except BadRequest as refusal:
            form.add_error("password", f"{refusal.message} {refusal.hint}")
        except Conflict as refusal:
            form.add_error(None, f"{refusal.message} {refusal.hint}")
        else:
            home = _home_of(account, invitation)
            response: HttpResponse = perform_login(request, account, redirect_url=home)
            return response
    return _shown(request, invitation, form=form)


def _with_account(request: HttpRequest, token: str, invitation: AccountInvitation) -> HttpResponse:
    if request.method == "POST":
        confirmation = confirm_first(request)
        if confirmation is not None:
            return confirmation
        try:
            account = accounts.accept_as(actor_of(request), token)
        except Forbidden as refusal:
            show_problem(request, refusal)
        else:
            messages.success(request, gettext("Invitation accepted."))
            return HttpResponseRedirect(_home_of(account, invitation))
    return _shown(request, invitation, is_other=not accounts.is_invited(account_of(request), invitation))


def _shown(request: HttpRequest, invitation: AccountInvitation, **context: Any) -> HttpResponse:
    form = context.get("form")
    shown = {"invitation": invitation, "role": ROLES[invitation.role], "once": fresh_token(), **context}
    status = 422 if form is not None and form.errors else 200
    return render(request, "setup/invited.html", shown, status=status)


def _home_of(account: Account, invitation: AccountInvitation) -> str:
    if invitation.company is not None:
        return f"/manage/companies/{invitation.company.slug}"
    return {"reviewer": "/review", "operator": "/operate"}.get(account.role, "/manage")
