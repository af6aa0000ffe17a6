"""
Access to pages: sign-in required (as Django's login_required), a confirmed identity, reviewers or operators only.

A form that is submitted after the session ended, or before the identity is confirmed, is kept for its account.
"""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.accounts.security import step_up
from muniment.accounts.security.signals import BROWSER_COOKIE
from muniment.kernel import fairness
from muniment.kernel.actor import Actor
from muniment.kernel.problems import Forbidden, MethodNotAllowed, NotFound
from muniment.web.requests.kept_forms import keep_form, tell

View = Callable[..., HttpResponse]
AUTHOR = BROWSER_COOKIE


def is_from_this_site(request: HttpRequest) -> bool:
    """Return whether a form without a token is not another site's, as browsers say."""
    return request.headers.get("Sec-Fetch-Site", "same-origin") in {"same-origin", "none"}


def account_of(request: HttpRequest) -> Account:
    """
    Return the signed-in account.

    Raises:
        Forbidden: no account is signed in.
    """
    account = request.user
    if not isinstance(account, Account):
        raise Forbidden(gettext("You need an account to do this."), gettext("Sign in first."))
    return account


def actor_of(request: HttpRequest) -> Actor:
    actor = account_of(request).actor("web")
    return actor if step_up.is_confirmed(request) else replace(actor, confirmed=False)


def signed_in(*methods: str, may_see: Callable[[Actor], bool] | None = None) -> Callable[[View], View]:
    """
    Require a signed-in account, and redirect others to sign-in.

    Args:
        may_see: accounts of which it is false get 404, whatever the method.
    """
    allowed = methods or ("GET", "HEAD", "POST")

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def enter(request: HttpRequest, **where: Any) -> HttpResponse:
            # Before the method is judged: a 405 would tell an account that the page exists.
            if may_see and request.user.is_authenticated and not may_see(actor_of(request)):
                raise _not_in_account()
            if request.method not in allowed:
                raise MethodNotAllowed(str(request.method), ", ".join(allowed))
            if not request.user.is_authenticated:
                return _to_sign_in(request, can_return="GET" in allowed)
            try:
                response = view(request, **where)
            except NotFound as refusal:
                if actor_of(request).is_reviewer:  # to whom every listing is known
                    raise NotFound(refusal.message, gettext("Check the address or search.")) from refusal
                raise _not_in_account() from refusal
            return _with_author(request, response)

        return enter

    return decorate


def _not_in_account() -> NotFound:
    return NotFound(
        gettext("Not found in your account."),
        gettext("It doesn't exist, or it belongs to another account. Your listings are at /manage."),
    )


def confirm_first(request: HttpRequest, page: str = "") -> HttpResponse | None:
    """
    Redirect to where the account confirms its identity, and from there to *page*; None if it did within 15 minutes.

    Args:
        page: for which a submitted form is kept, by default this address.
    """
    if step_up.is_confirmed(request):
        return None
    here = page or request.get_full_path()
    answer = HttpResponseRedirect(f"{reverse('account_reauthenticate')}?{urlencode({'next': here})}")
    if request.method != "POST":
        return answer
    if keep_form(request, page or request.path, author=str(request.user.pk), confirming=True):
        messages.info(request, gettext("We kept what you entered."))
    return tell(answer)


def _by_post(request: HttpRequest) -> bool:
    return request.method == "POST"


def confirmed(
    page: Callable[..., str] | None = None, *, when: Callable[[HttpRequest], bool] = _by_post
) -> Callable[[View], View]:
    """
    Require a confirmed identity where *when* holds; by default, for forms.

    Args:
        page: returns the page to come back to from the view's arguments; by default the address itself.
    """

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def enter(request: HttpRequest, **where: Any) -> HttpResponse:
            if when(request):
                back = page(**where) if page else ""
                confirmation = confirm_first(request, back)
                if confirmation:
                    return confirmation
            return view(request, **where)

        return enter

    return decorate


def reviewer(*methods: str) -> Callable[[View], View]:
    """Require a reviewer; other accounts get 404."""
    return signed_in(*methods, may_see=lambda actor: actor.is_reviewer)


def operator(*methods: str) -> Callable[[View], View]:
    """Require an operator; other accounts get 404."""
    return signed_in(*methods, may_see=lambda actor: actor.role == "operator")


def _to_sign_in(request: HttpRequest, *, can_return: bool) -> HttpResponse:
    """Redirect a visitor to sign-in, and from there back to the page."""
    here = request.get_full_path() if can_return or request.method != "POST" else page_of_form(request)
    answer = HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': here})}")
    if request.method != "POST":
        return answer
    author = author_of(request)
    if author is not None and can_return:
        fairness.current().take("writes", author)
        if keep_form(request, request.path, author=author):
            messages.info(request, gettext("You were signed out. We kept what you entered. Sign in to continue."))
            return tell(answer)
    messages.info(request, gettext("You were signed out, so nothing was changed. Sign in and try again."))
    return answer


def page_of_form(request: HttpRequest) -> str:
    """Return the page of this instance that the form was on, according to the Referer header."""
    came = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came, {request.get_host()}):
        return "/manage"
    parts = urlsplit(came)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def author_of(request: HttpRequest) -> str | None:
    """
    Return the key of the account that this browser's open forms belong to; None without one.

    Signing in changes the CSRF secret, so a form of an earlier account is rejected before it gets here.
    """
    told: str | None = request.get_signed_cookie(AUTHOR, default=None)
    return told


def _with_author(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Set the cookie that names the account of this browser's forms, which outlives the session."""
    author = str(request.user.pk)
    if author_of(request) != author:
        response.set_signed_cookie(
            AUTHOR,
            author,
            max_age=settings.CSRF_COOKIE_AGE,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response
