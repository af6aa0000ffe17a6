"""
What a reviewer may know of the account behind a request: its age, its mail domain, and what became of earlier requests.

Counts and public names only: neither texts of earlier requests nor drafts.
"""

from dataclasses import dataclass
from datetime import date
from typing import Final

from muniment.accounts.operations import has_verified_email
from muniment.kernel.actor import Actor
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Company, Petition, State

LISTINGS_SHOWN: Final = 5


@dataclass(frozen=True, slots=True)
class Claimant:
    """
    An account that requests something.

    Args:
        since: the first day of the month in which the account was created.
        domain: of its email address.
        is_verified: it received a code there.
        listings: names and slugs of public listings that it owns, at most `LISTINGS_SHOWN`.
        owned: how many public listings it owns.
        approved: earlier requests and listings of it that reviewers approved.
        declined: those that reviewers declined.
    """

    since: date
    domain: str
    is_verified: bool
    listings: tuple[tuple[str, str], ...]
    owned: int
    approved: int
    declined: int


def claimant_of(actor: Actor, petition: Petition) -> Claimant:
    """Return what is known of the account behind a request; raise Forbidden if the actor is not a reviewer."""
    require_reviewer(actor, "see who makes a request")
    account = petition.account
    public = Company.objects.filter(ownerships__account=account, state=State.PUBLISHED).order_by("name", "pk")
    decided = Petition.objects.filter(account=account).exclude(pk=petition.pk)
    rejected = Company.objects.filter(ownerships__account=account, state=State.REJECTED)
    submitted = public.filter(submitted_at__isnull=False)
    return Claimant(
        since=account.joined_at.date().replace(day=1),
        domain=account.email.rpartition("@")[2],
        is_verified=has_verified_email(account),
        listings=tuple(public.values_list("name", "slug")[:LISTINGS_SHOWN]),
        owned=public.count(),
        approved=decided.filter(decision="approved").count() + submitted.count(),
        declined=decided.filter(decision="refused").count() + rejected.count(),
    )
