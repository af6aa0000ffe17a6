"""
Access to pages: sign-in required (as Django's login_required), reviewers only, and forms kept across a sign-in.

A form that is submitted after the session ended is kept in the session, for the account that submitted it.
"""

import functools
from collections.abc import Callable
from typing import Any
from urllib.parse import urlencode, urlsplit

from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.utils.translation import gettext

from muniment.accounts.models import Account
from muniment.accounts.security.signals import BROWSER_COOKIE
from muniment.kernel.actor import Actor
from muniment.kernel.problems import Forbidden, MethodNotAllowed, NotFound

View = Callable[..., HttpResponse]
KEPT_FORM = "kept_form"
AUTHOR = BROWSER_COOKIE
MAX_KEPT_BYTES = 200_000


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
    return account_of(request).actor("web")


def signed_in(*methods: str) -> Callable[[View], View]:
    """Require a signed-in account, and redirect others to sign-in."""
    allowed = methods or ("GET", "HEAD", "POST")

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def enter(request: HttpRequest, **where: Any) -> HttpResponse:
            if request.method not in allowed:
                raise MethodNotAllowed(str(request.method), ", ".join(allowed))
            if not request.user.is_authenticated:
                return _to_sign_in(request, can_return="GET" in allowed)
            _forget_anothers_form(request)
            try:
                response = view(request, **where)
            except NotFound as refusal:
                raise NotFound(
                    gettext("Not found in your account."), gettext("Your listings are at /manage.")
                ) from refusal
            return _with_author(request, response)

        return enter

    return decorate


def reviewer(*methods: str) -> Callable[[View], View]:
    """Require a reviewer; other accounts get 404."""

    def decorate(view: View) -> View:
        @functools.wraps(view)
        def enter(request: HttpRequest, **where: Any) -> HttpResponse:
            if not actor_of(request).is_reviewer:
                raise NotFound(gettext("This page doesn't exist."), gettext("Check the address."))
            return view(request, **where)

        return signed_in(*methods)(enter)

    return decorate


def _to_sign_in(request: HttpRequest, *, can_return: bool) -> HttpResponse:
    """Redirect a visitor to sign-in, and from there back to the page."""
    here = request.get_full_path()
    if request.method == "POST" and not can_return:
        here = page_of_form(request)
        messages.info(request, gettext("You were signed out, so nothing was changed. Sign in and try again."))
    elif request.method == "POST":
        body = request.POST.copy()
        body.pop("csrfmiddlewaretoken", None)
        body.pop("once", None)
        typed = body.urlencode()
        if len(typed) <= MAX_KEPT_BYTES:
            request.session[KEPT_FORM] = {"path": request.path, "typed": typed, "author": _author(request)}
            messages.info(request, gettext("You were signed out. We kept what you entered. Sign in to continue."))
    return HttpResponseRedirect(f"{reverse('account_login')}?{urlencode({'next': here})}")


def page_of_form(request: HttpRequest) -> str:
    """Return the page of this instance that the form was on, according to the Referer header."""
    came = request.headers.get("Referer", "")
    if not url_has_allowed_host_and_scheme(came, {request.get_host()}):
        return "/manage"
    parts = urlsplit(came)
    return f"{parts.path}?{parts.query}" if parts.query else parts.path


def _author(request: HttpRequest) -> str | None:
    """
    Return the key of the account that this browser's open forms belong to; None without one.

    Signing in changes the CSRF secret, so a form of an earlier account is rejected before it gets here.
    """
    told: str | None = request.get_signed_cookie(AUTHOR, default=None)
    return told


def _with_author(request: HttpRequest, response: HttpResponse) -> HttpResponse:
    """Set the cookie that names the account of this browser's forms, which outlives the session."""
    author = str(request.user.pk)
    if _author(request) != author:
        response.set_signed_cookie(
            AUTHOR,
            author,
            max_age=settings.CSRF_COOKIE_AGE,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Lax",
        )
    return response


def _forget_anothers_form(request: HttpRequest) -> None:
    """Drop a kept form of another account, or of a version that did not store the account."""
    kept = request.session.get(KEPT_FORM)
    if kept and kept.get("author", "") not in {None, str(request.user.pk)}:
        del request.session[KEPT_FORM]


def form_data(request: HttpRequest) -> QueryDict | None:
    """Return the submitted form or, once, the form of this page that was submitted before signing in."""
    if request.method == "POST":
        return request.POST
    kept = request.session.get(KEPT_FORM)
    if request.method != "GET" or not kept or kept["path"] != request.path:
        return None
    del request.session[KEPT_FORM]
    return QueryDict(kept["typed"])
