"""Pages for signed-in accounts, and Problems shown as notices."""

import contextlib
from collections.abc import Iterator

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound, Problem
from muniment.web.requests.once import fresh_token


def manage_page(request: HttpRequest, template: str, context: JSONObject, *, status: int = 0) -> HttpResponse:
    """Render a page for a signed-in account; without a *status*, 422 if its ``form`` has errors, else 200."""
    form = context.get("form")
    status = status or (422 if isinstance(form, BaseForm) and form.errors else 200)
    return render(request, template, {"room": "manage", "once": fresh_token(), **context}, status=status)


def show_problem(request: HttpRequest, problem: Problem) -> None:
    messages.error(request, f"{problem.message} {problem.hint}")


@contextlib.contextmanager
def problems_shown(request: HttpRequest, *kinds: type[Problem]) -> Iterator[None]:
    """Show Problems of *kinds* as notices; by default all but NotFound."""
    try:
        yield
    except Problem as problem:
        if isinstance(problem, kinds) if kinds else not isinstance(problem, NotFound):
            show_problem(request, problem)
        else:
            raise
