"""
What owners take back: a draft, a submission, a change that waits, a published listing.

Each operation is one transaction, is recorded in the history and mailed to the owners. It raises NotFound for a listing
that is unknown or not the actor's, Forbidden for a reviewer who does not own it, and Conflict in another state.

Source: decisions, section 5, listings.
"""

from typing import Final

from django.db import transaction
from django.db.models import ProtectedError

from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Conflict, Forbidden
from muniment.registry.company import listings
from muniment.registry.company.access import expect_version, owned
from muniment.registry.company.changes import CompanyChange
from muniment.registry.models import Company, Person, State, Taking
from muniment.registry.review import notifications
from muniment.registry.review.steps import move_company

DELETABLE: Final = (State.DRAFT, State.CHANGES_REQUESTED, State.REJECTED)
"""States of a listing that was never public and that no reviewer is deciding on."""


def delete_draft(actor: Actor, slug: str, *, expected_version: int | None = None) -> None:
    """
    Delete a listing that was never public, with its history. Its slug is not given again.

    Raises:
        Conflict: it was submitted or published; documents, report runs or programs refer to it.
    """
    with transaction.atomic():
        company = _own(actor, slug)
        expect_version(company, expected_version)
        if company.state not in DELETABLE or company.publication_number is not None:
            raise Conflict(
                Phrase(
                    "{slug!r} is {state} and cannot be deleted.",
                    slug=slug,
                    state=Phrase(company.get_state_display().lower()),
                ),
                "Withdraw the submission first." if company.state == State.SUBMITTED else "Unlist it instead.",
            )
        owners = notifications.addresses_of(company)
        name = company.name
        named = list(Person.objects.filter(positions__company=company).values_list("pk", flat=True))
        try:
            company.delete()
        except ProtectedError:
            raise Conflict(
                "Documents, report runs or programs belong to this draft, so it cannot be deleted.",
                "Leave the listing instead: then only reviewers can open it.",
            ) from None
        of_draft = Person.objects.filter(pk__in=named, listed=False, account=None, publication_number=None)
        of_draft.filter(positions=None).delete()  # the draft alone named them
        Taking.objects.filter(subject=f"company:{slug}").delete()
        notifications.notify_about_deletion(name, owners)


def withdraw_submission(actor: Actor, slug: str, *, expected_version: int | None = None) -> Company:
    """Take a submitted listing out of the review queue: it is a draft again."""
    return _take_step(actor, slug, "submission withdrawn", expected_version=expected_version)


def withdraw_change(actor: Actor, slug: str) -> None:
    """Withdraw what an owner wants to change and a reviewer has not decided on: the published values stay."""
    with transaction.atomic():
        _own(actor, slug)
        if actor.is_reviewer:
            raise Forbidden("Reviewers decide on changes.", "Decide on this one in the queue at /review.")
        mine = listings.get_company(actor, slug)
        published = {name: mine.bundle["company"].get(name) for name in mine.pending_changes}
        if not published:
            raise Conflict("No change of this listing is waiting for a reviewer.", "See the history of the listing.")
        listings.update_company(actor, slug, CompanyChange(published))


def unlist_own_company(actor: Actor, slug: str) -> Company:
    """Remove a published listing from everything public, until an owner publishes it again."""
    return _take_step(actor, slug, "unlisted by owner")


def relist_own_company(actor: Actor, slug: str) -> Company:
    """
    Publish a listing again that an owner unlisted, in its old place.

    Raises:
        Forbidden: a reviewer took it down.
    """
    return _take_step(actor, slug, "relisted by owner")


def _take_step(actor: Actor, slug: str, step: str, *, expected_version: int | None = None) -> Company:
    with transaction.atomic():
        _own(actor, slug)
        return move_company(actor, slug, step, expected_version=expected_version)


def _own(actor: Actor, slug: str) -> Company:
    company = owned(actor, slug, lock=True)
    if not company.ownerships.filter(account=actor.account_id).exists():
        raise Forbidden("Only owners can do this.", "Reviewers decide on listings at /review.")
    return company
