"""
Limits of a signed-in account on the pages: changes per minute, and CPU time; and of the forms of visitors.

A request over a limit is refused before its form is read and before a view runs. The page offers to submit the form
again, with everything that was entered.
"""

import re
from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse, JsonResponse

from muniment.kernel import fairness
from muniment.kernel.fairness import ACCOUNT
from muniment.kernel.problems import TooLarge, TooMany
from muniment.languages.translated import in_words
from muniment.web.requests import errors
from muniment.web.requests.access import author_of
from muniment.web.requests.errors import SAFE

_OF_ACCOUNTS: Final = re.compile(r"/(?:manage|review|operate|accounts|oauth|reports)(?:/|$)")
"""Pages for accounts. Other pages are the same for everybody, and are limited by address."""
_ALWAYS: Final = re.compile(r"/(?:accounts/logout|manage/security)/?")
"""Pages that an account reaches over its limits."""
_CHANGES_NOTHING: Final = re.compile(r"/review/frameworks/[^/]+/validate|/manage/companies/[^/]+/preview(?:/live)?")
MAX_VISITOR_FORM_BYTES: Final = 64 << 10
"""Maximum form size of a signed-out visitor. A browser whose account was signed out may send more: it pays for it."""
_LIMITED_THEMSELVES: Final = re.compile(r"/oauth/(?:token|register|revoke)/?")
"""Paths that answer in the form of OAuth, check no form token, and limit their own body."""
_FORMS: Final = frozenset({"application/x-www-form-urlencoded", "multipart/form-data"})


class LimitsMiddleware:
    """Refuse requests of an account over its limits, and tell the server whose CPU time a request uses."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        is_change = request.method not in SAFE
        # Whether an account is signed in is looked up in its session, which other requests do without.
        if (is_change or _OF_ACCOUNTS.match(request.path)) and request.user.is_authenticated:
            refusal = _limit_account(request, is_change=is_change)
        elif is_change and _is_large_form(request) and not _LIMITED_THEMSELVES.fullmatch(request.path):
            refusal = _limit_large_form(request)
        else:
            refusal = None
        return self.get_response(request) if refusal is None else refusal


def _limit_account(request: HttpRequest, *, is_change: bool) -> HttpResponse | None:
    """Charge a request to its account; return the page of a refusal if that is over a limit."""
    account = str(request.user.pk)
    if not _ALWAYS.fullmatch(request.path):
        try:
            fairness.current().check("page_cpu", account)
            if is_change and not _CHANGES_NOTHING.fullmatch(request.path):
                fairness.current().take("writes", account)
        except TooMany as refusal:
            return _refused(request, refusal)
    request.META[ACCOUNT] = account
    return None


def _limit_large_form(request: HttpRequest) -> HttpResponse | None:
    """Charge a large form to the account that the browser last had; return the page of a refusal without one."""
    # Reading so many fields takes half a second, and the check of the token reads them before it refuses.
    author = author_of(request)
    if author is None:
        refused = TooLarge("The form is larger than 64 KB.", "Sign in first, or shorten the form.")
        return errors.problem_page(request, refused)
    try:
        fairness.current().check("page_cpu", author)
    except TooMany as refusal:
        return errors.problem_page(request, refusal)
    request.META[ACCOUNT] = author
    return None


def _is_large_form(request: HttpRequest) -> bool:
    """Return whether the body is a form, larger than what visitors have to send."""
    length = int(request.META.get("CONTENT_LENGTH") or "0")
    return request.content_type in _FORMS and length > MAX_VISITOR_FORM_BYTES


def _refused(request: HttpRequest, refusal: TooMany) -> HttpResponse:
    if request.method not in SAFE and request.headers.get("Accept", "").startswith("application/json"):
        headers = {**refusal.headers, "Cache-Control": "no-store"}
        return JsonResponse(in_words(refusal), status=refusal.status, headers=headers)
    return errors.problem_page(request, refusal)
