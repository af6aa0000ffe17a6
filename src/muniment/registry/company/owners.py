"""Owners of a listing: add one, leave, and how many listings an account may prepare."""

from typing import Final

from django.db import transaction

from muniment.accounts.models import Account
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.step_up import require_confirmed
from muniment.kernel.actor import Actor
from muniment.kernel.fairness import MAX_DRAFTS
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict
from muniment.registry import history
from muniment.registry.company.access import no_company, owned
from muniment.registry.company.editing import publish_owners
from muniment.registry.models import Company, Invitation, Ownership, State

_UNPUBLISHED: Final = (State.DRAFT, State.SUBMITTED, State.CHANGES_REQUESTED, State.REJECTED)


def add_owner(actor: Actor, slug: str, account_id: int) -> None:
    """
    Make an account an owner of a listing that *actor* owns or reviews.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    with transaction.atomic():
        make_owner(actor, owned(actor, slug, lock=True), account_id)


def make_owner(actor: Actor, company: Company, account_id: int) -> None:
    """Make an account an owner, on the authority of the caller."""
    _, created = Ownership.objects.get_or_create(account_id=account_id, company=company)
    if created:
        history.entry(actor, "owner added", before={}, after={"owner": account_id}, company=company).save()
        publish_owners(company)
        subject = f"companies/{company.slug}"
        record(Event.OWNERSHIP_GAINED, account=account_id, actor=actor, subject=subject, name=company.name)
        _tell_others(Event.OWNER_ADDED, actor, company, account_id)


def leave_company(actor: Actor, slug: str) -> None:
    """
    Stop owning a listing; invitations that the account sent are void.

    The last owner can leave too: a published listing stays published and can be claimed.

    Raises:
        NotFound: unknown, or not owned.
        Forbidden: the actor has to confirm its identity first.
    """
    require_confirmed(actor)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        deleted, _ = Ownership.objects.filter(company=company, account=actor.account_id).delete()
        if not deleted:
            raise no_company(slug)
        Invitation.objects.filter(company=company, invited_by=actor.account_id, accepted_at__isnull=True).delete()
        history.entry(actor, "owner left", before={"owner": actor.account_id}, after={}, company=company).save()
        publish_owners(company)
        subject = f"companies/{company.slug}"
        record(Event.OWNERSHIP_ENDED, account=actor.account_id, actor=actor, subject=subject, name=company.name)
        _tell_others(Event.OWNER_LEFT, actor, company, actor.account_id)


def _tell_others(event: Event, actor: Actor, company: Company, owner_id: int | None) -> None:
    """Record what changed for the other owners."""
    others = Ownership.objects.filter(company=company).exclude(account=owner_id).order_by("pk")
    for account_id in others.values_list("account_id", flat=True):
        subject = f"companies/{company.slug}"
        record(event, account=account_id, actor=actor, subject=subject, detail={"owner": owner_id}, name=company.name)


def make_room_for_draft(account_id: int) -> None:
    """Refuse another draft beyond the limit. In the caller's transaction: the lock serializes those of one account."""
    Account.objects.select_for_update().get(pk=account_id)
    unpublished = Company.objects.filter(ownerships__account_id=account_id, state__in=_UNPUBLISHED)
    if unpublished.count() >= MAX_DRAFTS:
        raise Conflict(
            Phrase(
                "You have {count} listings that are not published yet; at most {limit} are allowed.",
                count=unpublished.count(),
                limit=MAX_DRAFTS,
            ),
            "Delete drafts that you no longer need at /manage, or submit them and wait for the reviewers' decisions.",
        )
