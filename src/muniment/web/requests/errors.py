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

from muniment.kernel.problems import Internal, Problem
from muniment.store.database.retry import RETRY_AFTER_S, attempted, is_away

log = logging.getLogger(__name__)
_TITLES = {
    400: "That does not work",
    403: "Not allowed",
    404: "Nothing is here",
    405: "Not this way",
    409: "It has moved on",
    413: "Too large",
    429: "Too many at once",
    500: "Something broke on this side",
    503: "Not up just now",
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
            return attempted(view, request, *args, **kwargs)
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
            "problem_title": _TITLES.get(int(status), "That does not work"),
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
    return page(request, HTTPStatus.NOT_FOUND, "No page has this address.", "Check the address, or search.")


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer what the account may not do."""
    return page(request, HTTPStatus.FORBIDDEN, "This needs a role that you do not have.", "Ask the operator for it.")


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer a request that cannot be read."""
    return page(request, HTTPStatus.BAD_REQUEST, "The request cannot be read.", "Go back and try again.")


def csrf_refused(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Answer a form that did not come from our own page, or whose page is too old."""
    return page(
        request,
        HTTPStatus.FORBIDDEN,
        "This form was not sent from a page of this site, or the page was open for too long.",
        "Go back, reload the page and send it again. Cookies must be allowed.",
    )


def server_error(request: HttpRequest) -> HttpResponse:
    """Answer what broke: nothing but the request's id. A database that is away is no fault of ours to mend."""
    error = sys.exc_info()[1]
    if isinstance(error, DatabaseError | InterfaceError) and is_away(error):
        return _without_database()
    problem = Internal(request_id(request) or "without an id")
    return page(request, HTTPStatus.INTERNAL_SERVER_ERROR, problem.message, problem.hint)


def _without_database() -> HttpResponse:
    """Answer where even what surrounds a page asks the database."""
    text = "The database does not answer. Public pages go on; try again in a few seconds."
    response = HttpResponse(f'<!doctype html><html lang="en"><title>Not up just now</title><h1>{text}</h1></html>')
    response.status_code = HTTPStatus.SERVICE_UNAVAILABLE
    response["Retry-After"] = str(RETRY_AFTER_S)
    response["Cache-Control"] = "no-store"
    return response
