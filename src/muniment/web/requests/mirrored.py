"""What a mirror answers to everything that is not a public page: where its origin is."""

from collections.abc import Callable
from typing import Final

from django.http import HttpRequest, HttpResponse

from muniment import config
from muniment.kernel.problems import AtOrigin
from muniment.web.requests.errors import problem_page

OWN: Final = ("/language", "/fonts/", "/accounts/menu")
"""Paths of the mirror itself: what belongs to a visitor of public pages, and to its operator's colors."""


class OnlyPublic:
    """Refuses what signs in, reads private rows or changes anything; it is inside the middleware of public pages."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self._get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if path.startswith(OWN):
            return self._get_response(request)
        return problem_page(request, AtOrigin(config.current().mirrored, path))
