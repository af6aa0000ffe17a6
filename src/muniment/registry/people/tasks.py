"""The jobs of erasures, and of positions that are older than the consent of their person."""

from functools import partial
from typing import Final

from muniment.jobs import handlers
from muniment.jobs.queue import JobRun
from muniment.registry.models import Person, Position, State
from muniment.registry.people.erasing import ERASED
from muniment.registry.publishing.redaction import compact_database, compact_if_sparse, replace_due_tombstones
from muniment.registry.review import notifications

UPGRADED: Final = "registry.consent_introduced"
"""The job that an upgrade enqueues once."""


def tell_holders(run: JobRun) -> int:
    """Mail everybody whose profile shows positions from before their consent was needed, once, how to end them."""
    holders = Person.objects.filter(account__isnull=False, positions__company__state=State.PUBLISHED).distinct()
    for person in holders.select_related("account").order_by("pk"):
        run.step(f"person-{person.pk}", partial(_tell_holder, person))
    return len(run.kept("person-"))


def _tell_holder(person: Person) -> bool:
    places = Position.objects.filter(person=person, company__state=State.PUBLISHED).order_by("company__name", "rank")
    named = places.values_list("title", "company__name")
    titles = [f"{title}, {name}" if title else name for title, name in named]
    notifications.notify_of_positions(person, titles)
    return True


handlers.register(handlers.Handler(kind=ERASED, work=lambda _: compact_database(), lease_s=600))
handlers.register(
    handlers.Handler(kind="registry.tombstones_due", work=lambda _: replace_due_tombstones()), every_s=3_600
)
handlers.register(
    handlers.Handler(kind="registry.file_sparse", work=lambda _: compact_if_sparse(), lease_s=600), every_s=3_600
)
handlers.register(handlers.Handler(kind=UPGRADED, work=tell_holders))
