"""The visitor's language: a choice in a cookie, else what the browser prefers, else the registry's default."""

from collections.abc import Callable
from typing import Final

from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.csrf import csrf_exempt

from muniment.accounts.models import Account
from muniment.kernel.problems import MethodNotAllowed
from muniment.languages.offered import COOKIE, chosen, offered
from muniment.languages.speaking import speaking
from muniment.web.requests.access import is_from_this_site
from muniment.web.requests.page_cache import name_language

YEAR_S: Final = 365 * 24 * 3600
_SPOKEN: Final = ("text/html",)


class LanguageMiddleware:
    """Answers each request in the visitor's language, and says which one it is where there are several."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        known = offered()
        code = known[0]
        if len(known) > 1:
            asked = request.META.get("HTTP_ACCEPT_LANGUAGE", "").encode("latin-1", "replace")
            code = chosen(asked, request.META.get("HTTP_COOKIE", "").encode("latin-1", "replace"), known)
        with speaking(code):
            response = self._get_response(request)
        is_page = response.get("Content-Type", "").startswith(_SPOKEN)
        if len(known) > 1 and is_page and "Content-Language" not in response:
            name_language(response, code)
        return response


@csrf_exempt
def choose(request: HttpRequest) -> HttpResponse:
    """
    Keep the chosen language in a cookie, and return to the page where it was chosen.

    The form is on pages that are the same bytes for everyone, so it has no token. Another site could at most change
    the language of the pages, and browsers say where a form comes from.
    """
    if request.method != "POST":
        raise MethodNotAllowed(str(request.method), "POST")
    response = HttpResponseRedirect(_back(request), status=303)
    code = request.POST.get("to", "")
    if code in offered() and is_from_this_site(request):
        response.set_cookie(COOKIE, code, max_age=YEAR_S, secure=settings.IS_HTTPS, httponly=True, samesite="Lax")
        if isinstance(request.user, Account):
            request.user.remember_language(code)
    return response


def _back(request: HttpRequest) -> str:
    """Return the page that the request comes from, if it is one of this site; else the front page."""
    before = request.headers.get("Referer", "")
    hosts = {request.get_host()}
    return before if url_has_allowed_host_and_scheme(before, hosts) else "/"
