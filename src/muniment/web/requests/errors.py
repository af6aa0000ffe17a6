"""A refusal becomes a page: what is wrong, the way out, the request's id. JSON never comes from here."""

import logging
import sys
from collections.abc import Callable
from http import HTTPStatus
from typing import Any

from allauth.account.middleware import AccountMiddleware
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.problems import Internal, Problem
from muniment.store.database.retry import RETRY_AFTER_S, is_unavailable, with_retry

log = logging.getLogger(__name__)
_TITLES = {
    400: gettext_lazy("Invalid request"),
    403: gettext_lazy("Not allowed"),
    404: gettext_lazy("Page not found"),
    405: gettext_lazy("Method not allowed"),
    409: gettext_lazy("This was changed by someone else"),
    413: gettext_lazy("Too large"),
    429: gettext_lazy("Too many requests"),
    500: gettext_lazy("Something went wrong"),
    503: gettext_lazy("Temporarily unavailable"),
}


class ProblemMiddleware:
    """Answers the Problems that views let pass."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._accounts = AccountMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        """Answer."""
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Ask the view; again if the database took back what it did."""
        try:
            return with_retry(view, request, *args, **kwargs)
        except Problem as problem:
            return self.process_exception(request, problem)
        except (ImmediateHttpResponse, ReauthenticationRequired) as detour:
            # Django's own round among the middleware is made only for a view that Django itself asks.
            answer: HttpResponse = self._accounts.process_exception(request, detour)
            return answer

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Give a Problem's page; anything else stays what it is."""
        if not isinstance(exception, Problem):
            return None
        return page(request, exception.status, exception.message, exception.hint, exception)


def page(request: HttpRequest, status: int, message: str, hint: str, problem: Problem | None = None) -> HttpResponse:
    """Render the page of a refusal."""
    nearest = [{"label": label, "address": where} for label, where in getattr(problem, "nearest", ())]
    response = render(
        request,
        "problem.html",
        {
            "status": int(status),
            "problem_title": _TITLES.get(int(status), _TITLES[400]),
            "message": message,
            "hint": hint,
            "nearest": nearest,
            "request_id": request_id(request),
        },
        status=int(status),
    )
    for name, value in (problem.headers if problem else {}).items():
        response[name] = value
    response["Cache-Control"] = "no-store"
    return response


def request_id(request: HttpRequest) -> str:
    """Give the id under which the server knows the request, empty without one."""
    return str(request.META.get("HTTP_X_REQUEST_ID", ""))[:80]


def not_found(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer an address that no page has."""
    return page(
        request, HTTPStatus.NOT_FOUND, gettext("This page doesn't exist."), gettext("Check the address or search.")
    )


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer what the account may not do."""
    message = gettext("You don't have permission to view this page.")
    return page(request, HTTPStatus.FORBIDDEN, message, gettext("Ask the operator of this registry for access."))


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer a request that cannot be read."""
    return page(
        request, HTTPStatus.BAD_REQUEST, gettext("We couldn't read the request."), gettext("Go back and try again.")
    )


def csrf_refused(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer a form that did not come from our own page, or whose page is too old."""
    return page(
        request,
        HTTPStatus.FORBIDDEN,
        gettext("The form expired or was not sent from this site."),
        gettext("Allow cookies, go back, reload the page and submit the form again."),
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer what broke: nothing but the request's id. A database that is away is no fault of ours to mend."""
    error = sys.exc_info()[1]
    if isinstance(error, DatabaseError | InterfaceError) and is_unavailable(error):
        return _without_database()
    problem = Internal(request_id(request) or "without an id")
    return page(request, HTTPStatus.INTERNAL_SERVER_ERROR, problem.message, problem.hint)


def _without_database() -> HttpResponse:
    """Answer where even what surrounds a page asks the database."""
    text = gettext("The database is unavailable. Public pages still work. Try again in a few seconds.")
    response = HttpResponse(f'<!doctype html><html lang="en"><title>{_TITLES[503]}</title><h1>{text}</h1></html>')
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    response["Retry-After"] = str(RETRY_AFTER_S)
    response["Cache-Control"] = "no-store"
    return response
