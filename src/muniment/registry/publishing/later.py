"""
Publish people once after a long import, instead of with each batch that has a company of theirs.

The import notes them in the transaction that publishes the companies (`AffectedRows.later`), and publishes them after
its last row. If it is interrupted, the next import or the job here does so. A note is made and removed under the lock
of the edition, so that whoever removes one reads the positions that it was made for.
"""

from collections.abc import Iterator
from typing import Final

from django.db import transaction

from muniment.jobs.handlers import Handler
from muniment.jobs.queue import JobRun
from muniment.registry.models import WaitingPerson
from muniment.registry.publishing.publisher import AffectedRows, lock, publish

EVERY_S: Final = 900
"""A person waits at most so long, and for the jobs before."""
CHUNK: Final = 1_000
"""People in one transaction, for whose end other writers wait."""


def publish_waiting() -> Iterator[int]:
    """Publish the people who wait, each chunk in a transaction of its own; yield how many it had."""
    while keys := list(WaitingPerson.objects.order_by("pk").values_list("pk", flat=True)[:CHUNK]):
        with transaction.atomic():
            lock()
            WaitingPerson.objects.filter(pk__in=keys).delete()
            publish(AffectedRows().person(*keys))
        yield len(keys)


def _publish(run: JobRun) -> dict[str, int]:
    people = 0
    for count in publish_waiting():
        run.check()
        people += count
    return {"people": people}


HANDLER: Final = Handler(kind="registry.people_waiting", work=_publish, lease_s=120)
