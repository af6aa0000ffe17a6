"""The first page of the console: what waits for an operator, and the health of the instance."""

import re
from typing import Final, NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from muniment import __version__
from muniment.jobs.models import State
from muniment.jobs.queue import queue_statuses
from muniment.kernel.actor import Actor
from muniment.kernel.phrases.storing import unpacked
from muniment.languages.translated import translated
from muniment.mail.delivery import mail_status
from muniment.registry.imports import uploads
from muniment.registry.inbox import deciding
from muniment.registry.inbox.items import count_queue
from muniment.registry.models import Company
from muniment.scrub import checks, health, instance
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.pages import Words
from muniment.web.views.operate.frame import operate_page
from muniment.web.views.operate.listings import GAPS


class TodoFigure(NamedTuple):
    """A number of the overview, and the page where it is worked on."""

    label: str
    value: int
    address: str = ""


class ShownFinding(NamedTuple):
    """A result of a check with the words and the color of its state."""

    what: str
    says: str
    state: Words
    tone: str
    needs_attention: bool


_STATES: Final[dict[str, tuple[Words, str]]] = {
    "FAIL": (pgettext_lazy("check", "Failed"), "bad"),
    "WARN": (gettext_lazy("Warning"), "wait"),
    "OK": (gettext_lazy("OK"), "good"),
    "off": (gettext_lazy("Off"), ""),
    "partly off": (gettext_lazy("Partly off"), "wait"),
    "not set up": (gettext_lazy("Not set up"), "wait"),
    "none yet": (gettext_lazy("None yet"), "wait"),
}


def _shown(found: health.HealthFinding) -> ShownFinding:
    state = found.mark
    # What is well may be off or not set up, which an operator reads rather than OK.
    if found.mark == "OK" and found.state in _STATES:
        state = found.state
    words, tone = _STATES.get(state, _STATES["WARN"])
    subject, text = _sentence(unpacked(found.what)), _sentence(unpacked(found.says))
    return ShownFinding(subject, text, words, tone, needs_attention=tone in {"bad", "wait"})


def _sentence(stored: str) -> str:
    """Return a text of `muniment doctor` in the reader's language, begun like a sentence unless it begins with code."""
    text = translated(stored)
    return capfirst(text) if re.match(r"[^\W\d_]+[,;:]?(\s|$)", text) else text


@operator("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """Show what waits, what the record lacks, and the health of the instance."""
    actor = actor_of(request)
    waiting, lacking = _waiting(actor), _lacking(actor)
    if request.method == "GET":  # HEAD asks for nothing to be done
        health.ask_for_health(every_s=health.FRESH_S)
    last_health = health.last_health()
    findings = [_shown(finding) for finding in last_health.findings]
    context = {
        "waiting": [figure for figure in waiting if figure.value],
        "lacking": [figure for figure in lacking if figure.value],
        "listings": Company.objects.filter(published=True).count(),
        "version": __version__,
        "health": last_health,
        "attention": [finding for finding in findings if finding.needs_attention],
        "passed": [finding for finding in findings if not finding.needs_attention],
    }
    return operate_page(request, "overview", "operate/overview.html", context)


def _waiting(actor: Actor) -> list[TodoFigure]:
    """Return how much waits for a reviewer, for a job or for the operator."""
    unfinished_jobs = failed_jobs = 0
    for status in queue_statuses():
        if status.state == State.FAILED:
            failed_jobs += status.jobs
        else:
            unfinished_jobs += status.jobs
    mail = mail_status()
    damaged = instance.stored().open(checks.checks())
    return [
        TodoFigure(gettext("Items to review"), count_queue(actor), "/review"),
        TodoFigure(gettext("Unfinished jobs"), unfinished_jobs, "/operate/jobs"),
        TodoFigure(gettext("Failed jobs"), failed_jobs, "/operate/jobs?state=failed"),
        TodoFigure(gettext("Unsent messages"), mail.waiting, "/operate/mail"),
        TodoFigure(gettext("Failed messages"), mail.failed, "/operate/mail?state=failed"),
        TodoFigure(gettext("Damaged items"), len(damaged), "/operate/storage"),
    ]


def _lacking(actor: Actor) -> list[TodoFigure]:
    """Return how many listings have each gap, and how many imports were begun and not finished."""
    figures = []
    for name, count in deciding.count_gaps(actor).items():
        figures.append(TodoFigure(str(GAPS[name]), count, f"/operate/listings?gap={name}"))
    unfinished_imports = uploads.list_open(actor)
    figures.append(TodoFigure(gettext("Unfinished imports"), len(unfinished_imports), "/operate/import"))
    return figures
