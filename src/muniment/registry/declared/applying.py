"""The job that publishes all documents with the fields that an operator has just declared, while the servers serve."""

from typing import Final

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.registry.declared import progress
from muniment.registry.declared.current import look
from muniment.registry.publishing import publisher


def _apply(run: JobRun) -> dict[str, bool]:
    look()
    try:
        return {"renewed": publisher.apply_fields(progress.tell, again=bool(run.payload.get("again")))}
    finally:
        progress.forget()


HANDLER: Final = Handler(kind=progress.KIND, work=_apply, lease_s=600)
