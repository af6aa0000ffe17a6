"""
Publish people once after a long import, instead of with each batch that has a company of theirs.

The import notes them in the transaction that publishes the companies (`AffectedRows.later`), and publishes them after
its last row. If it is interrupted, the next import or the job here does so. A note is made and removed under the lock
of the edition: the transaction that removes one reads the positions that it was made for.
"""

from collections.abc import Iterator
from typing import Final

from django.db import transaction

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.registry.models import Person, WaitingPerson
from muniment.registry.publishing.publisher import AffectedRows, lock, lock_people, publish

EVERY_S: Final = 900
"""The longest wait, besides that for other jobs."""
CHUNK: Final = 500
"""People in one transaction, for whose end other writers wait."""


def publish_waiting() -> Iterator[int]:
    """Publish the people who wait, each chunk in a transaction of its own; yield how many it had."""
    while keys := list(WaitingPerson.objects.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        with transaction.atomic():
            people = Person.objects.filter(pk__in=keys)
            lock_people(keys)
            lock()
            waiting = dict(WaitingPerson.objects.filter(pk__in=keys).order_by("pk").values_list("pk", "is_dated"))
            undated = [key for key, is_dated in waiting.items() if not is_dated]
            people.filter(pk__in=undated).update(updated_at=now())
            WaitingPerson.objects.filter(pk__in=keys).delete()
            publish(AffectedRows().person(*waiting))
        yield len(waiting)


def _publish(run: JobRun) -> dict[str, int]:
    people = 0
    for count in publish_waiting():
        run.check()
        people += count
    return {"people": people}


HANDLER: Final = Handler(kind="registry.people_waiting", work=_publish, lease_s=120)
