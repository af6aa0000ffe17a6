"""Whether the applied fields are in use: how far a job has come that publishes all documents with them."""

from datetime import datetime
from typing import Final, NamedTuple

import msgspec

from muniment import config, declared_fields
from muniment.durable_files import replacing
from muniment.jobs import queue
from muniment.jobs.models import Job, State
from muniment.registry.declared.stored import mark_of
from muniment.registry.models import Company, Framework, Person
from muniment.registry.settings.tables import RegistryVersion
from muniment.schema.declared.faults import FieldsError
from muniment.store.published import mark_in

KIND: Final = "registry.fields_declared"
_FILE: Final = "fields-progress.json"
"""A file in the data folder, because the transaction that renders the documents shows nothing before its end."""


class FieldsProgress(NamedTuple):
    """
    Whether the fields of the latest version are in use.

    Args:
        since: when they came into use, if that is known.
        done: the documents rendered so far, if this node renders them.
        error: why they are not in use.
    """

    is_in_use: bool
    since: datetime | None
    done: int
    total: int
    error: str = ""


def enqueue(*, again: bool) -> None:
    """Enqueue the job that publishes all documents with other fields, in the caller's transaction."""
    queue.enqueue(KIND, {"again": again}, priority=-10)


def tell(done: int) -> None:
    """Keep how many documents are rendered, for the pages of this node."""
    with replacing(config.current().data / _FILE) as file:
        file.write(msgspec.json.encode(done))


def forget() -> None:
    (config.current().data / _FILE).unlink(missing_ok=True)


def progress_of(epoch: str) -> FieldsProgress:
    """Return how far the latest version is in use, where the published documents have this *epoch*."""
    jobs = Job.objects.filter(kind=KIND).order_by("-created_at")
    last, is_waiting = jobs.first(), jobs.filter(state__in=queue.UNFINISHED).exists()
    if not is_waiting and mark_in(epoch) == _latest_mark():
        return FieldsProgress(is_in_use=True, since=last.finished_at if last else None, done=0, total=0)
    total = sum(model.objects.filter(published=True).count() for model in (Company, Person, Framework))
    error = ""
    # While a job waits, an error of the one before it may be overcome.
    if last is not None and not is_waiting and last.state in {State.FAILED, State.CANCELED}:
        error = last.error or last.state
    return FieldsProgress(is_in_use=False, since=None, done=min(_done(), total), total=total, error=error)


def _latest_mark() -> str:
    row = RegistryVersion.objects.order_by("-number").first()
    try:
        return mark_of(declared_fields.read(row.document.get("fields", ())) if row else ())
    except FieldsError:  # of a later version
        return ""


def _done() -> int:
    try:
        return msgspec.json.decode((config.current().data / _FILE).read_bytes(), type=int)
    except (OSError, msgspec.DecodeError):
        return 0
