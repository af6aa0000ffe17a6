"""
Which reviewer works on an item.

Assigning locks nothing: it informs the other reviewers. The decisions themselves prevent double decisions.
"""

from datetime import timedelta
from typing import Any, Final

from django.db import transaction
from django.db.models import QuerySet

from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Company, PendingChange, Petition, State, Taking

ASSIGNED_FOR: Final = timedelta(hours=4)
TASK: Final = "see the review queue"


def list_reviewers(actor: Actor) -> list[Account]:
    """Return the accounts that items can be assigned to, by email address."""
    require_reviewer(actor, TASK)
    roles = [Account.Role.REVIEWER, Account.Role.OPERATOR]
    return list(Account.objects.filter(role__in=roles, is_active=True).order_by("email")[:200])


def assign(actor: Actor, subject: str, *, to: int | None = None) -> None:
    """
    Assign an item.

    Args:
        to: the account of a reviewer; by default the actor's.

    Raises:
        Forbidden: the actor is not a reviewer.
        BadRequest: the account is not of a reviewer.
        Conflict: the item is not open, or no longer.
    """
    require_reviewer(actor, TASK)
    account_id = to or actor.account_id
    if account_id is None:
        return  # on the command line
    if to is not None and to not in {each.pk for each in list_reviewers(actor)}:
        raise BadRequest("This account is not a reviewer's.", "Choose a reviewer.")
    if not is_open(subject):
        raise Conflict("This is no longer in the review queue.", "Choose another item.")
    with transaction.atomic():
        Taking.objects.update_or_create(subject=subject, defaults={"account_id": account_id, "at": now()})


def is_open(subject: str) -> bool:
    """Return whether an item waits for a reviewer."""
    kind, _, key = subject.partition(":")
    if kind == "company":
        return Company.objects.filter(state=State.SUBMITTED, slug=key).exists()
    rows: dict[str, QuerySet[Any]] = {"change": PendingChange.objects.all(), "petition": Petition.objects.all()}
    is_number = key.isascii() and key.isdigit() and len(key) < 19
    return kind in rows and is_number and rows[kind].filter(decision="", pk=int(key)).exists()


def unassign(actor: Actor, subject: str) -> None:
    """Unassign an item; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, TASK)
    Taking.objects.filter(subject=subject).delete()


def assignee(subject: str) -> str:
    """Return the account that *subject* is assigned to; empty if unassigned."""
    found = Taking.objects.filter(subject=subject, at__gt=now() - ASSIGNED_FOR).select_related("account").first()
    return str(found.account) if found else ""
