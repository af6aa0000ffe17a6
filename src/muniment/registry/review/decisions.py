"""
The review workflow of listings, from draft to published, and the reviewers' decisions.

Each decision is made once: it checks the expected state under a lock and is recorded in the history.

Source: decisions, section 5, listings.
"""

from typing import Final

from django.conf import settings
from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry import history
from muniment.registry.company.company_change import read_change
from muniment.registry.company.editing import compare, decides, expect_version, owned, publish_company, write
from muniment.registry.models import Company, PendingChange, State
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.review import notifications

_FROM: Final[dict[str, tuple[str, ...]]] = {
    "submitted": (State.DRAFT, State.CHANGES_REQUESTED),
    "approved": (State.SUBMITTED,),
    "changes requested": (State.SUBMITTED,),
    "rejected": (State.SUBMITTED,),
    "unlisted": (State.PUBLISHED,),
    "relisted": (State.UNLISTED,),
}
_TO: Final = {
    "submitted": State.SUBMITTED,
    "approved": State.PUBLISHED,
    "changes requested": State.CHANGES_REQUESTED,
    "rejected": State.REJECTED,
    "unlisted": State.UNLISTED,
    "relisted": State.PUBLISHED,
}


def _require_reviewer(actor: Actor) -> None:
    if not decides(actor):
        raise Forbidden("Only reviewers can decide on listings.", "Ask the operator of this registry for the role.")


def _require_note(note: str) -> str:
    if not note.strip():
        raise BadRequest("The note is empty.", "Say what the owner should know or change.")
    return note.strip()


def submit_company(actor: Actor, slug: str, *, expected_version: int | None = None) -> Company:
    """
    Submit a draft, or a listing with requested changes, for review.

    Raises:
        NotFound: unknown, or not owned.
        Conflict: it is in another state, or has another version.
    """
    return _move(actor, slug, "submitted", expected_version=expected_version)


def approve_company(actor: Actor, slug: str, *, expected_version: int | None = None, note: str = "") -> Company:
    """
    Publish a submitted listing; without a listing date it is listed today.

    Args:
        actor: a reviewer.
        expected_version: the version that the reviewer looked at.

    Raises:
        Forbidden: the actor is not a reviewer.
        Conflict: another reviewer decided first, or the owner changed it.
    """
    _require_reviewer(actor)
    return _move(actor, slug, "approved", expected_version=expected_version, note=note)


def request_changes(actor: Actor, slug: str, note: str) -> Company:
    """
    Return a submitted listing to its owner, with a note.

    Raises:
        Forbidden: the actor is not a reviewer.
        Conflict: another reviewer decided first.
    """
    _require_reviewer(actor)
    return _move(actor, slug, "changes requested", note=_require_note(note))


def reject_company(actor: Actor, slug: str, note: str) -> Company:
    """
    Decline a submitted listing, with a note.

    Raises:
        Forbidden: the actor is not a reviewer.
        Conflict: another reviewer decided first.
    """
    _require_reviewer(actor)
    return _move(actor, slug, "rejected", note=_require_note(note))


def unlist_company(actor: Actor, slug: str, note: str) -> Company:
    """
    Remove a published listing from everything public: the API, counts, positions, search, programs.

    Raises:
        Forbidden: the actor is not a reviewer.
        Conflict: it is not published.
    """
    _require_reviewer(actor)
    return _move(actor, slug, "unlisted", note=_require_note(note))


def relist_company(actor: Actor, slug: str, *, note: str = "") -> Company:
    """
    Publish an unlisted listing again, in its old place.

    Raises:
        Forbidden: the actor is not a reviewer.
        Conflict: it is not unlisted.
    """
    _require_reviewer(actor)
    return _move(actor, slug, "relisted", note=note)


def _move(actor: Actor, slug: str, step: str, *, expected_version: int | None = None, note: str = "") -> Company:
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        expect_version(company, expected_version)
        if company.state not in _FROM[step]:
            raise Conflict(
                f"{slug!r} is {company.get_state_display().lower()} and cannot be {step}.",
                "Reload it: someone else may have decided.",
            )
        before, company.state = company.state, _TO[step]
        company.reviewer_note = "" if step in {"submitted", "approved", "relisted"} else note
        company.submitted_at = now() if step == "submitted" else company.submitted_at
        if step == "approved" and company.listed_on is None:
            company.listed_on = now().date()
        company.version += 1
        company.updated_at = now()
        company.save()
        history.entry(
            actor, step, before={"state": before}, after={"state": company.state}, company=company, note=note
        ).save()
        publish_company(company, AffectedRows(), changed={"state"})
        transaction.on_commit(lambda: notifications.notify_owners(company, step, note))
        return company


def decide_change(actor: Actor, change_id: int, *, approve: bool, note: str = "") -> PendingChange:
    """
    Approve or decline the pending change of a published listing.

    Args:
        actor: a reviewer.
        change_id: the pending change; reviewers decide on what they saw, so a replaced change is a conflict.
        approve: publish the fields, or keep the current ones.
        note: shown to the owner; required to decline.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown change.
        Conflict: another reviewer decided first, or the owner withdrew it.
    """
    _require_reviewer(actor)
    with transaction.atomic():
        found = Company.objects.select_for_update(of=("self",)).filter(pending_changes=change_id).first()
        if found is None:
            raise NotFound(f"Change {change_id} not found.", "Pending changes are at /review.")
        company: Company = found  # locked before its change, in the same order as owners' edits
        pending = PendingChange.objects.select_for_update().get(pk=change_id)
        if pending.decision:
            raise Conflict(f"This change is already {pending.decision}.", "Pending changes are at /review.")
        pending.decision = "approved" if approve else "rejected"
        pending.note = note if approve else _require_note(note)
        pending.decided_at, pending.decided_by_id = now(), actor.account_id
        pending.save()
        step = "change approved" if approve else "change refused"
        difference = compare(company, read_change(pending.changes, settings.SCHEMA)) if approve else None
        if difference:
            write(actor, company, difference, step, note=note)
        else:
            history.entry(actor, step, before={}, after={}, company=company, note=note).save()
        transaction.on_commit(lambda: notifications.notify_owners(company, step, note))
        return pending
