"""Pages for signed-in accounts, and Problems shown as notices."""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.contrib import messages
from django.forms import BaseForm
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import NotFound, Problem
from muniment.languages.translated import told
from muniment.web.requests.once import fresh_token


def manage_page(request: HttpRequest, template: str, context: JSONObject, *, status: int = 0) -> HttpResponse:
    """Render a page for a signed-in account; without a *status*, 422 if its ``form`` has errors, else 200."""
    form = context.get("form")
    if not status:
        status = 422 if isinstance(form, BaseForm) and form.errors else 200
    return render(request, template, {"room": "manage", "once": fresh_token(), **context}, status=status)


Words = str | Promise
"""A text, or one that is translated when it is shown."""


@dataclass(frozen=True, slots=True)
class Question:
    """A question before an action: what it means, and the button that does it."""

    title: Words
    sentences: Sequence[Words]
    button: Words
    tone: str = "danger"


def ask(
    request: HttpRequest, question: Question, *, back: str, crumbs: list[tuple[str, str]], **context: Any
) -> HttpResponse:
    """Render a question, whose button posts to this address; *back* is the page without the action."""
    shown = {"question": question, "back": back, "crumbs": crumbs, **context}
    return manage_page(request, "manage/question.html", shown, status=409 if request.method == "POST" else 200)


def show_problem(request: HttpRequest, problem: Problem) -> None:
    messages.error(request, told(problem))


@contextlib.contextmanager
def problems_shown(request: HttpRequest, *kinds: type[Problem]) -> Iterator[None]:
    """Show Problems of *kinds* as notices; by default all but NotFound."""
    try:
        yield
    except Problem as problem:
        is_shown = isinstance(problem, kinds) if kinds else not isinstance(problem, NotFound)
        if not is_shown:
            raise
        show_problem(request, problem)
