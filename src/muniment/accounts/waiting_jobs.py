"""What an operator does with jobs that wait: try one again now, or drop a message."""

from django.db import transaction

from muniment.accounts.operations import require_operator
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.jobs import queue
from muniment.jobs.models import Job, State
from muniment.kernel.actor import Actor
from muniment.kernel.problems import Conflict, NotFound
from muniment.mail.outgoing import KIND


def retry_job(actor: Actor, job_id: str) -> None:
    """
    Let a waiting job be tried at once.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: no such job.
        Conflict: the job is running or has ended.
    """
    require_operator(actor)
    with transaction.atomic():
        job = _found(job_id)
        if job.state != State.QUEUED:
            raise Conflict(f"The job is {job.state}.", "Only a waiting job can be tried again.")
        job.run_at = queue.clock()
        job.save(update_fields=["run_at"])
        record(Event.JOB_RETRIED, actor=actor, detail=_named(job))
        transaction.on_commit(queue.work_signal.notify)


def drop_job(actor: Actor, job_id: str) -> None:
    """
    Drop a message that waits; its text is deleted.

    Raises:
        Forbidden: the actor is not an operator.
        NotFound: no such job.
        Conflict: the job is not a message, or has ended.
    """
    require_operator(actor)
    with transaction.atomic():
        job = _found(job_id)
        if job.kind != KIND:
            raise Conflict("Only messages can be dropped.", "Cancel a report run on the page of its owner.")
        if not queue.cancel(job.pk):
            raise Conflict(f"The message is {job.state}.", "Only a waiting message can be dropped.")
        record(Event.JOB_DROPPED, actor=actor, detail=_named(job))


def _found(job_id: str) -> Job:
    job = Job.objects.select_for_update().filter(pk=job_id).first()
    if job is None:
        raise NotFound(f"Job {job_id[:40]} not found.", "The list of jobs shows those that are kept.")
    return job


def _named(job: Job) -> dict[str, str]:
    """Return what the log keeps of a job: neither its text nor its recipient, who can be erased."""
    kind = job.payload.get("kind", "") if job.kind == KIND else ""
    return {"job": job.pk, "kind": f"{job.kind} {kind}".strip()}
