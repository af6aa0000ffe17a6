"""Actions of operators on jobs: list them, try one again, cancel one, or send a test message."""

from collections.abc import Sequence

from django.db import transaction
from django.utils.translation import gettext

from muniment.accounts.operations import account_of, require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.jobs import handlers, queue
from muniment.jobs.models import Job, State
from muniment.kernel.actor import Actor
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, NotFound
from muniment.mail import outgoing
from muniment.mail.outgoing import KIND
from muniment.mail.receivers import in_language_of


def retry_job(actor: Actor, job_id: str) -> None:
    """
    Let a waiting job be tried at once, or queue a failed one again.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: no such job.
        Conflict: the job is running or has ended, or its failure was cleaned up after.
    """
    require_operator(actor)
    with transaction.atomic():
        job = _found(job_id)
        if job.state == State.FAILED:
            _revive(job)
            record(Event.JOB_RETRIED, actor=actor, detail=_named(job))
            return
        if job.state != State.QUEUED:
            raise Conflict(
                Phrase("The job is {state}.", state=Phrase(job.state)), "Only a waiting job can be tried again."
            )
        job.run_at = queue.clock()
        job.save(update_fields=["run_at"])
        record(Event.JOB_RETRIED, actor=actor, detail=_named(job))
        transaction.on_commit(queue.work_signal.notify)


def cancel_job(actor: Actor, job_id: str) -> None:
    """
    Cancel a job: at once if it waits, at its next step if it runs. What it holds is released; a message loses its text.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: no such job.
        Conflict: the job has ended.
    """
    require_operator(actor)
    with transaction.atomic():
        job = _found(job_id)
        if not queue.cancel(job.pk):
            raise Conflict(
                Phrase("The job is {state}.", state=Phrase(job.state)),
                "Only a waiting or a running job can be canceled.",
            )
        record(Event.JOB_DROPPED, actor=actor, detail=_named(job))


def send_test_message(actor: Actor) -> None:
    """Send a message to the operator's own address; raise Forbidden for others."""
    require_operator(actor)
    with transaction.atomic():
        account = account_of(actor)
        with in_language_of(account):
            text = gettext("Mail of this registry arrives.")
            outgoing.send(account.email, gettext("Test message"), text, kind="test")
        record(Event.TEST_MESSAGE_SENT, actor=actor)


def list_jobs(
    actor: Actor, *, states: Sequence[str] = (), kind: str = "", page: int = 1, page_size: int = 25
) -> Page[Job]:
    """List jobs, the newest first; *states* and *kind* restrict them."""
    require_operator(actor)
    found = Job.objects.order_by("-created_at", "-pk").defer("result", "progress")
    if states:
        found = found.filter(state__in=states)
    if kind:
        found = found.filter(kind=kind)
    return Page.of(found, page, page_size)


def _revive(job: Job) -> None:
    """
    Queue a failed job again, with all its attempts.

    Raises:
        Conflict: its failure was cleaned up after, as that of a message or a report run.
    """
    found = handlers.handler(job.kind)
    if found is None or found.ended is not None:
        raise Conflict("This job cannot be tried again.", "Start its work again where it was requested.")
    job.state, job.run_at, job.finished_at, job.excused = State.QUEUED, queue.clock(), None, job.attempt
    job.kills = 0
    job.save(update_fields=["state", "run_at", "finished_at", "excused", "kills"])
    transaction.on_commit(queue.work_signal.notify)


def _found(job_id: str) -> Job:
    job = Job.objects.select_for_update().filter(pk=job_id).first()
    if job is None:
        raise NotFound(Phrase("Job {id} not found.", id=job_id[:40]), "The list of jobs shows those that are kept.")
    return job


def _named(job: Job) -> dict[str, str]:
    """Return what the log keeps of a job: neither its text nor its recipient, who can be erased."""
    kind = job.payload.get("kind", "") if job.kind == KIND else ""
    return {"job": job.pk, "kind": f"{job.kind} {kind}".strip()}
