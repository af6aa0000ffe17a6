"""
The first page of the set-up: a link from the machine, and the operator's account.

The link is exchanged at once for a cookie, so that its secret stays neither in the address bar nor in a referrer.
"""

from typing import Final

from allauth.account.utils import perform_login
from django import forms
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts import first_run
from muniment.accounts.models import Account
from muniment.kernel.problems import BadRequest, Conflict, MethodNotAllowed, NotFound
from muniment.web.requests.access import account_of

COOKIE: Final = "muniment_setup"
PAGE: Final = "/setup"
STEPS: Final = "/operate/setup"
REFERRER: Final = {"Referrer-Policy": "no-referrer"}


class FirstAccountForm(forms.Form):
    """The operator's address and password."""

    email = forms.EmailField(
        label=gettext_lazy("Email"),
        help_text=gettext_lazy("You sign in with it. It is not shown to visitors."),
        max_length=254,
        widget=forms.EmailInput({"autocomplete": "username"}),
    )
    password = forms.CharField(
        label=gettext_lazy("Password"),
        help_text=gettext_lazy("At least ten characters that are hard to guess."),
        max_length=200,
        strip=False,
        widget=forms.PasswordInput({"autocomplete": "new-password"}),
    )


def open_link(request: HttpRequest, token: str) -> HttpResponse:
    """Bind the link to this browser."""
    if request.method != "GET":  # a HEAD, such as of a link checker, uses nothing up
        raise MethodNotAllowed(str(request.method), "GET")
    if _is_operator(request):
        return HttpResponseRedirect(STEPS)
    secret = first_run.open_link(token, request.COOKIES.get(COOKIE, ""))
    response = HttpResponseRedirect(PAGE, headers=REFERRER)
    response.set_cookie(
        COOKIE,
        secret,
        max_age=int(first_run.VALID_FOR.total_seconds()),
        path=PAGE,
        secure=settings.SESSION_COOKIE_SECURE,
        httponly=True,
        samesite="Lax",
    )
    return response


def first_account(request: HttpRequest) -> HttpResponse:
    """Show the form of the operator's account, or create it, sign in and continue with the other steps."""
    if request.method not in {"GET", "HEAD", "POST"}:
        raise MethodNotAllowed(str(request.method), "GET, HEAD, POST")
    if _is_operator(request):
        return HttpResponseRedirect(STEPS)
    browser = request.COOKIES.get(COOKIE, "")
    _require_link(browser)
    form = FirstAccountForm(request.POST if request.method == "POST" else None)
    if request.method == "POST" and form.is_valid():
        try:
            account = first_run.create_operator(browser, form.cleaned_data["email"], form.cleaned_data["password"])
        except (BadRequest, Conflict) as refusal:
            field = "password"
            if isinstance(refusal, Conflict) or "email address" in refusal.message:
                field = "email"
            form.add_error(field, f"{refusal.message} {refusal.hint}")
        else:
            response: HttpResponse = perform_login(request, account, redirect_url=STEPS)
            response.delete_cookie(COOKIE, path=PAGE)
            return response
    return render(request, "setup/account.html", {"form": form}, status=422 if form.errors else 200)


def _require_link(browser: str) -> None:
    """Raise NotFound if a browser has not opened the set-up link, or the registry has an operator already."""
    if first_run.may_set_up(browser):
        return
    if first_run.has_operator():
        raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))
    raise NotFound(
        gettext("This page needs the set-up link."),
        gettext("Open the link that the start of muniment serve prints, or get one with: muniment setup-link."),
    )


def _is_operator(request: HttpRequest) -> bool:
    return request.user.is_authenticated and account_of(request).role == Account.Role.OPERATOR
