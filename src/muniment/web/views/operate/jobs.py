"""Background jobs and messages: what waits, runs or failed; try again, cancel; send a test message."""

from collections.abc import Callable
from operator import itemgetter
from typing import Final, NamedTuple

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from muniment import config
from muniment.accounts.job_actions import cancel_job, list_jobs, retry_job, send_test_message
from muniment.jobs import handlers
from muniment.jobs.models import Job, State
from muniment.jobs.queue import UNFINISHED
from muniment.kernel.actor import Actor
from muniment.kernel.phrases.storing import shortened
from muniment.kernel.problems import Conflict, Problem
from muniment.mail.delivery import mail_status
from muniment.mail.outgoing import KIND
from muniment.masking import masked
from muniment.web.requests.access import account_of, actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Words, problems_shown
from muniment.web.requests.pagination import PAGE_SIZE, asked_page, chosen, pager
from muniment.web.views.operate.frame import operate_page
from muniment.web.wording.jobs import job_kind, message_kind

STATES: Final[dict[str, tuple[Words, tuple[str, ...]]]] = {
    "open": (gettext_lazy("Waiting and running"), UNFINISHED),
    "failed": (pgettext_lazy("job", "Failed"), (State.FAILED,)),
    "ended": (gettext_lazy("Ended"), (State.SUCCEEDED, State.CANCELED)),
}
TONES: Final = {State.RUNNING: "wait", State.SUCCEEDED: "good", State.FAILED: "bad"}
_WRITTEN: Final = gettext_lazy("Written to the folder")
MOST_CHARACTERS: Final = 300
_OF_DELIVERY: Final = ("the mail server ", "the secret key ", "the message ")
"""The beginnings of the reasons that delivery gives itself; another error could quote the message."""


class JobLine(NamedTuple):
    """A job as the pages show it: without its payload and its result."""

    job: Job
    tone: str
    what: str
    recipient: str
    reason: str
    word: Words
    can_retry: bool
    can_cancel: bool


class JobAction(NamedTuple):
    """An action of an operator on a job."""

    act: Callable[[Actor, str], None]
    done: Words


ACTIONS: Final = {
    "retry": JobAction(retry_job, gettext_lazy("The job is tried again now.")),
    "cancel": JobAction(cancel_job, gettext_lazy("The job is canceled, or stops at its next step.")),
}


@operator("GET", "HEAD")
def jobs(request: HttpRequest) -> HttpResponse:
    """List jobs by state and kind."""
    kinds = tuple(handlers.kinds())
    context = _listed(request, chosen(request.GET, "kind", kinds), ("state", "kind", "page"))
    named = sorted([(kind, job_kind(kind)) for kind in kinds], key=itemgetter(1))
    return operate_page(request, "jobs", "operate/jobs.html", {**context, "kinds": named})


@operator("POST")
@once
def act(request: HttpRequest, job_id: str, action: str) -> HttpResponse:
    """Try a job again, or cancel it."""
    with problems_shown(request, Conflict):
        ACTIONS[action].act(actor_of(request), job_id)
        messages.success(request, str(ACTIONS[action].done))
    if request.POST.get("from") == "mail":
        return HttpResponseRedirect("/operate/mail")
    return HttpResponseRedirect("/operate/jobs")


@operator()
@once
def mail(request: HttpRequest) -> HttpResponse:
    """Show where mail goes and what was not delivered; send a test message to the operator."""
    address = account_of(request).email
    if request.method == "POST":
        with problems_shown(request, Problem):
            send_test_message(actor_of(request))
            messages.success(request, gettext("A test message to %(email)s is on its way.") % {"email": address})
        return HttpResponseRedirect("/operate/mail")
    settings = config.current()
    context = {
        **_listed(request, KIND, ("state", "page")),
        "status": mail_status(),
        "server": masked(settings.mail_url),
        "folder": settings.data / "mail",
        "sender": settings.mail_from,
        "address": address,
    }
    return operate_page(request, "mail", "operate/mail.html", context)


def _listed(request: HttpRequest, kind: str, parameters: tuple[str, ...]) -> dict[str, object]:
    state = chosen(request.GET, "state", tuple(STATES)) or "open"
    found = list_jobs(
        actor_of(request), states=STATES[state][1], kind=kind, page=asked_page(request.GET), page_size=PAGE_SIZE
    )
    return {
        "lines": [_line(job) for job in found.items],
        "found": found,
        "pager": pager(request, parameters, found),
        "given": {"state": state, "kind": kind},
        "states": [(name, label) for name, (label, _) in STATES.items()],
    }


def _outcome(job: Job) -> Words:
    """Return what became of a message; empty while it waits or if it failed."""
    if job.state != State.SUCCEEDED:
        return ""
    return gettext_lazy("Sent") if config.current().mail_url else _WRITTEN


def _reason(error: str) -> str:
    """Return the last line of an error; of a traceback, it is the exception."""
    *earlier, last = error.strip().splitlines()
    reason = last if earlier else error
    return shortened(masked(reason), MOST_CHARACTERS)


def _line(job: Job) -> JobLine:
    tone = TONES.get(State(job.state), "")
    recipient = ""
    word: Words = ""
    if job.kind == KIND:
        what = message_kind(str(job.payload.get("kind", "")))
        recipient = ", ".join(job.payload.get("to", ()))
        word = _outcome(job)
        if word == _WRITTEN:
            tone = "wait"
        has_reason = job.error.startswith(_OF_DELIVERY)
    else:
        what = job_kind(job.kind)
        has_reason = bool(job.error)
    handler = handlers.handler(job.kind)
    # Where a failure released something that the job needs, it cannot be tried again.
    is_retried = job.state == State.FAILED and handler is not None and handler.ended is None
    reason = _reason(job.error) if has_reason else ""
    return JobLine(
        job=job,
        tone=tone,
        what=what,
        recipient=recipient,
        reason=reason,
        word=word,
        can_retry=job.state == State.QUEUED or is_retried,
        can_cancel=job.state in UNFINISHED,
    )
