"""
Moderation queue of the reviewers, oldest first, and who is working on each item.

Assigning an item locks nothing: it informs the other reviewers. The decisions themselves prevent double decisions.
Every operation raises Forbidden if the actor is not a reviewer.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet, Value
from django.db.models.functions import Coalesce

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import Conflict
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Company, DomainProof, PendingChange, Petition, State, Taking

ASSIGNED_FOR = timedelta(hours=4)
_TASK = "see the review queue"


@dataclass(frozen=True, slots=True)
class QueueItem:
    """An item of the queue. *subject* identifies it: ``company:slug``, ``change:7``, ``petition:7``."""

    subject: str
    what: str
    name: str
    since: datetime
    by: str
    taken_by: str
    taken_by_me: bool

    @property
    def address(self) -> str:
        kind, _, key = self.subject.partition(":")
        return f"/review/{_PAGES[kind]}/{key}"


_PAGES = {"company": "companies", "change": "changes", "petition": "requests"}
_REQUESTS = {"claim": "listing claim", "profile": "profile claim", "suggestion": "suggested edit"}


def count_queue(actor: Actor) -> int:
    """Count the items in the queue."""
    require_reviewer(actor, _TASK)
    return _open_items().count()


def list_queue(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[QueueItem]:
    """Return the items in the queue, oldest first."""
    require_reviewer(actor, _TASK)
    found = Page.of(_open_items().order_by("since", "of", "pk"), page, page_size)
    described = _describe(found.items)
    subjects = [subject for subject, *_ in described.values()]
    fresh = Taking.objects.filter(at__gt=now() - ASSIGNED_FOR, subject__in=subjects).select_related("account")
    takings = {taking.subject: taking for taking in fresh}
    items = []
    for of, key, since in found.items:
        if (of, key) not in described:
            continue  # decided in the meantime
        subject, what, name, by = described[of, key]
        taking = takings.get(subject)
        mine = taking is not None and taking.account_id == actor.account_id
        items.append(QueueItem(subject, what, name, since, by, str(taking.account) if taking else "", mine))
    return found.with_items(items)


def _open_items() -> QuerySet[Any, tuple[str, int, datetime]]:
    """Return the kind, the key and the start time of every open item."""
    since = {"company": Coalesce("submitted_at", "updated_at"), "change": F("asked_at"), "petition": F("asked_at")}
    companies, *others = (
        found.annotate(of=Value(of), since=since[of]).values_list("of", "pk", "since")
        for of, found in _open_by_kind().items()
    )
    everything: QuerySet[Any, tuple[str, int, datetime]] = companies.union(*others, all=True)
    return everything


def _open_by_kind() -> dict[str, QuerySet[Any]]:
    return {
        "company": Company.objects.filter(state=State.SUBMITTED),
        "change": PendingChange.objects.filter(decision=""),
        "petition": Petition.objects.filter(decision=""),
    }


def _describe(here: list[tuple[str, int, datetime]]) -> dict[tuple[str, int], tuple[str, str, str, str]]:
    """Return subject, description, name and requester of each item, by kind and key."""
    keys: dict[str, list[int]] = {"company": [], "change": [], "petition": []}
    for of, key, _ in here:
        keys[of].append(key)
    described: dict[tuple[str, int], tuple[str, str, str, str]] = {}
    for company in Company.objects.filter(pk__in=keys["company"]).prefetch_related("owners"):
        by = ", ".join(str(owner) for owner in company.owners.all())
        described["company", company.pk] = (f"company:{company.slug}", "new listing", company.name, by)
    for change in PendingChange.objects.filter(pk__in=keys["change"]).select_related("company", "account"):
        what = f"change to {', '.join(change.changes)}"
        described["change", change.pk] = (f"change:{change.pk}", what, change.company.name, str(change.account or ""))
    asked = Petition.objects.filter(pk__in=keys["petition"]).select_related("account", "company", "person")
    proven = set(
        DomainProof.objects.filter(
            company__in=[each.company_id for each in asked if each.kind == Petition.RequestKind.CLAIM],
            state=DomainProof.ProofState.VERIFIED,
        ).values_list("company_id", "account_id")
    )
    for petition in asked:
        name, what = str(petition.company or petition.person), _REQUESTS[petition.kind]
        if petition.kind == Petition.RequestKind.CLAIM and (petition.company_id, petition.account_id) in proven:
            what += ", domain verified"
        described["petition", petition.pk] = (f"petition:{petition.pk}", what, name, str(petition.account))
    return described


def assign(actor: Actor, subject: str) -> None:
    """Assign an item to the actor; raise Conflict if it is not open, or no longer."""
    require_reviewer(actor, _TASK)
    if actor.account_id is None:
        return  # on the command line
    if not _is_open(subject):
        raise Conflict("This is no longer in the review queue.", "Choose another item.")
    with transaction.atomic():
        Taking.objects.update_or_create(subject=subject, defaults={"account_id": actor.account_id, "at": now()})


def _is_open(subject: str) -> bool:
    kind, _, key = subject.partition(":")
    found = _open_by_kind().get(kind)
    if found is None:
        return False
    if kind == "company":
        return found.filter(slug=key).exists()
    return key.isascii() and key.isdigit() and len(key) < 19 and found.filter(pk=int(key)).exists()


def unassign(actor: Actor, subject: str) -> None:
    """Unassign an item."""
    require_reviewer(actor, _TASK)
    Taking.objects.filter(subject=subject).delete()


def assignee(subject: str) -> str:
    """Return the account that *subject* is assigned to; empty if unassigned."""
    found = Taking.objects.filter(subject=subject, at__gt=now() - ASSIGNED_FOR).select_related("account").first()
    return str(found.account) if found else ""
