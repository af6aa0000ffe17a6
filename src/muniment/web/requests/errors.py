"""Error pages: what is wrong, what to do, and the request id. JSON errors are not made here."""

import sys
from collections.abc import Callable
from typing import Any, Final, cast
from urllib.parse import parse_qsl

from allauth.account.internal.flows.reauthentication import STATE_SESSION_KEY
from allauth.account.middleware import AccountMiddleware
from allauth.core.exceptions import ImmediateHttpResponse, ReauthenticationRequired
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError, InterfaceError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.http.request import RawPostDataException
from django.shortcuts import render
from django.templatetags.static import static
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.problems import Internal, LimitReached, Problem, TooMany, Unavailable
from muniment.languages.offered import base_direction
from muniment.languages.speaking import language
from muniment.languages.translated import sentence, translated
from muniment.store.database.faults import disk_fault, notice
from muniment.store.database.retry import RETRY_AFTER_S, is_unavailable, with_retry
from muniment.web.requests.kept_forms import MAX_KEPT_BYTES

SAFE: Final = frozenset({"GET", "HEAD", "OPTIONS"})
MAX_FIELDS: Final = 1_000
_TITLES = {
    400: gettext_lazy("Invalid request"),
    403: gettext_lazy("Not allowed"),
    404: gettext_lazy("Page not found"),
    405: gettext_lazy("Method not allowed"),
    409: gettext_lazy("Not possible now"),
    413: gettext_lazy("Too large"),
    429: gettext_lazy("Too many requests"),
    500: gettext_lazy("Something went wrong"),
    503: gettext_lazy("Temporarily unavailable"),
}


_CODES = {404: "not_found", 405: "method_not_allowed"}


class ProblemMiddleware:
    """Turn the Problems of views into pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response
        self._accounts = AccountMiddleware(get_response)

    def __call__(self, request: HttpRequest) -> HttpResponse:
        return self.get_response(request)

    def process_view(
        self, request: HttpRequest, view: Callable[..., HttpResponse], args: Any, kwargs: Any
    ) -> HttpResponse | None:
        """Call the view, and retry it when the database rolled it back."""
        try:
            return answered(request, view, *args, **kwargs)
        except (ImmediateHttpResponse, ReauthenticationRequired) as detour:
            if request.method != "POST":
                # What another form left behind is not submitted when this page is confirmed.
                request.session.pop(STATE_SESSION_KEY, None)
            # Django calls process_exception only for views that it calls itself.
            return cast("HttpResponse", self._accounts.process_exception(request, detour))

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        """Return a Problem's page; leave other exceptions to Django."""
        if isinstance(exception, Problem):
            return problem_page(request, exception)
        return None


def answered(request: HttpRequest, view: Callable[..., HttpResponse], *args: Any, **kwargs: Any) -> HttpResponse:
    """Return what a view answers, or the page of its Problem; retry it when the database rolled it back."""
    try:
        return with_retry(view, request, *args, **kwargs)
    except Problem as problem:
        return problem_page(request, problem)
    except PermissionDenied:
        # A library's page of a method that is switched off. Django would log it with a trace, which anyone can cause.
        return forbidden(request)


def problem_page(request: HttpRequest, problem: Problem) -> HttpResponse:
    """Return the page of a Problem; of one that passes, with the submitted form, so that nothing typed is lost."""
    hint = translated(problem.hint)
    passes = isinstance(problem, LimitReached | TooMany | Unavailable)
    if not passes or request.method in SAFE:
        return page(request, problem.status, translated(problem.message), hint, problem)
    fields = _form_fields(request)
    if fields is None:
        hint = f"{hint} {gettext('Then reload this page to submit the form again.')}"
        return page(request, problem.status, translated(problem.message), hint, problem)
    again = {"address": request.get_full_path(), "fields": fields}
    return page(request, problem.status, translated(problem.message), hint, problem, again=again)


def _form_fields(request: HttpRequest) -> list[tuple[str, str]] | None:
    """Return the fields of a submitted form; None if they can't or should not be put into a page."""
    # A file cannot be put into a page, and a password or a code should not be.
    if request.content_type != "application/x-www-form-urlencoded" or request.path.startswith("/accounts/"):
        return None
    length = request.META.get("CONTENT_LENGTH") or "0"
    if int(length) > MAX_KEPT_BYTES:
        return None
    try:
        # The CSRF token stays the one that was sent, so a form of another site is refused when it comes again.
        fields = parse_qsl(request.body.decode(), keep_blank_values=True, max_num_fields=MAX_FIELDS)
    except (ValueError, RawPostDataException):
        return None
    has_password = any("password" in name for name, _ in fields)
    return None if has_password else fields


def page(
    request: HttpRequest, status: int, message: str, hint: str, problem: Problem | None = None, **context: Any
) -> HttpResponse:
    """Return an error page; *context* is added to that of the template. A program that asks for JSON gets JSON."""
    if asks_for_json(request):
        return json_error(status, message, hint, problem)
    context |= {
        "status": int(status),
        "problem_title": _title(status, problem),
        "message": message,
        "hint": hint,
        "elsewhere": getattr(problem, "address", ""),
        "nearest": [{"label": label, "address": where} for label, where in getattr(problem, "nearest", ())],
        "request_id": request_id(request),
    }
    response = render(request, "problem.html", context, status=int(status))
    _add_headers(response, problem)
    return response


def _add_headers(response: HttpResponse, problem: Problem | None) -> None:
    if problem:
        for name, value in problem.headers.items():
            response[name] = value
    response["Cache-Control"] = "no-store"


def _title(status: int, problem: Problem | None) -> Any:
    if isinstance(problem, LimitReached):
        return gettext("Limit reached")
    return _TITLES.get(int(status), _TITLES[400])


def asks_for_json(request: HttpRequest) -> bool:
    accepted = request.headers.get("Accept", "").lower()
    return "application/json" in accepted and "text/html" not in accepted


def json_error(status: int, message: str, hint: str, problem: Problem | None) -> HttpResponse:
    """Return an error as the API gives it."""
    usual_code = "bad_request" if status < 500 else "internal_error"
    code: str = _CODES.get(int(status), usual_code)
    if problem:
        code = problem.code
    response = JsonResponse({"error": {"code": code, "message": str(message), "hint": str(hint)}}, status=int(status))
    _add_headers(response, problem)
    response["Access-Control-Allow-Origin"] = "*"
    return response


def request_id(request: HttpRequest) -> str:
    """Return the server's id of the request, or an empty string."""
    return str(request.META.get("HTTP_X_REQUEST_ID", ""))[:80]


def not_found(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    return page(request, 404, gettext("This page doesn't exist."), gettext("Check the address or search."))


def forbidden(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    message = gettext("You don't have permission to view this page.")
    return page(request, 403, message, gettext("Ask the operator of this registry for access."))


def too_many(request: HttpRequest) -> HttpResponse:
    """Return allauth's page for an account or an address that tries too often."""
    return page(request, 429, gettext("You tried this too often."), gettext("Wait a few minutes, then try again."))


def bad_request(request: HttpRequest, exception: Any = None) -> HttpResponse:  # noqa: ARG001 - Django's signature
    return page(request, 400, gettext("We couldn't read the request."), gettext("Go back and try again."))


def csrf_refused(request: HttpRequest, reason: str = "") -> HttpResponse:  # noqa: ARG001 - Django's signature
    """Return the page for a form from another site, or one that has expired."""
    message = gettext("The form expired or was not sent from this site.")
    return page(request, 403, message, gettext("Allow cookies, go back, reload the page and submit the form again."))


def server_error(request: HttpRequest) -> HttpResponse:
    """Return the 500 page with the request id, or 503 when the database is unavailable."""
    error = sys.exc_info()[1]
    is_away = isinstance(error, DatabaseError | InterfaceError) and is_unavailable(error)
    if error is not None and (is_away or disk_fault(error)):
        notice(error)
        # Without the base template, which would query the database.
        cause = gettext("The database is unavailable. Public pages still work. Try again in a few seconds.")
        text = f"{sentence(disk_fault(error))} {cause}" if disk_fault(error) else cause
        body = (
            f'<!doctype html><html lang="{language()}" dir="{base_direction(language())}"><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f'<title>{_TITLES[503]}</title><link rel="stylesheet" href="{static("web/muniment.css")}">'
            f'<main class="frame"><div class="text stack"><p class="quiet mono">503</p><h1>{_TITLES[503]}</h1>'
            f'<p class="lead">{text}</p><div class="actions"><a class="button" href="/companies">'
            f"{gettext('Browse companies')}</a></div></div></main></html>"
        )
        headers = {"Retry-After": str(RETRY_AFTER_S), "Cache-Control": "no-store"}
        return HttpResponse(body, status=503, headers=headers)
    problem = Internal(request_id(request) or "without an id")
    return page(request, 500, translated(problem.message), translated(problem.hint))
