"""The first page of the console: what waits for an operator, and the health of the instance."""

from typing import NamedTuple

from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext

from muniment import __version__
from muniment.jobs.models import State
from muniment.jobs.queue import queue_statuses
from muniment.mail.status import mail_status
from muniment.registry.inbox.items import count_queue
from muniment.scrub import checks, health, instance
from muniment.web.requests.access import actor_of, operator
from muniment.web.views.operate.frame import operate_page


class TodoFigure(NamedTuple):
    """A number of the overview, and the page where it is worked on."""

    label: str
    value: int
    address: str = ""


@operator("GET", "HEAD")
def overview(request: HttpRequest) -> HttpResponse:
    """Show what waits: reviews, jobs, mail and damage."""
    queue, mail = queue_statuses(), mail_status()
    waiting = sum(each.jobs for each in queue if each.state != State.FAILED)
    failed = sum(each.jobs for each in queue if each.state == State.FAILED)
    figures = [
        TodoFigure(gettext("Items to review"), count_queue(actor_of(request)), "/review"),
        TodoFigure(gettext("Unfinished jobs"), waiting, "/operate/jobs"),
        TodoFigure(gettext("Failed jobs"), failed, "/operate/jobs?state=failed"),
        TodoFigure(gettext("Unsent messages"), mail.waiting, "/operate/mail"),
        TodoFigure(gettext("Messages given up this week"), mail.failed, "/operate/mail?state=failed"),
        TodoFigure(gettext("Damaged items"), len(instance.stored().open(checks.checks())), "/operate/storage"),
    ]
    if request.method == "GET":
        health.ask_for_health(every_s=health.FRESH_S)
    context = {"figures": figures, "version": __version__, "health": health.last_health()}
    return operate_page(request, "overview", "operate/overview.html", context)
