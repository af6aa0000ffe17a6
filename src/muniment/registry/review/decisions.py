"""
The review workflow of listings, from draft to published, and the reviewers' decisions.

Each decision is made once: it checks the expected state under a lock and is recorded in the history. It raises
Forbidden unless the actor is a reviewer, Conflict if the listing is in another state, because another reviewer decided
first, or has another version, and BadRequest without a note where the owner needs one.

Source: decisions, section 5, listings.
"""

from typing import Final

from django.conf import settings
from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry import history
from muniment.registry.company.access import expect_version, owned, require_reviewer
from muniment.registry.company.company_change import read_change
from muniment.registry.company.editing import compare, publish_company, write
from muniment.registry.models import Company, PendingChange, State
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.review import notifications

_TASK: Final = "decide on listings"
_STEPS: Final[dict[str, tuple[tuple[str, ...], State]]] = {
    "submitted": ((State.DRAFT, State.CHANGES_REQUESTED), State.SUBMITTED),
    "approved": ((State.SUBMITTED,), State.PUBLISHED),
    "changes requested": ((State.SUBMITTED,), State.CHANGES_REQUESTED),
    "rejected": ((State.SUBMITTED,), State.REJECTED),
    "unlisted": ((State.PUBLISHED,), State.UNLISTED),
    "relisted": ((State.UNLISTED,), State.PUBLISHED),
}
"""The states that a step starts from, and the one it leads to."""


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
        expected_version: the version that the reviewer looked at.
    """
    return _decide(actor, slug, "approved", note, expected_version=expected_version)


def request_changes(actor: Actor, slug: str, note: str) -> Company:
    """Return a submitted listing to its owner, with a note."""
    return _decide(actor, slug, "changes requested", note)


def reject_company(actor: Actor, slug: str, note: str) -> Company:
    """Decline a submitted listing, with a note."""
    return _decide(actor, slug, "rejected", note)


def unlist_company(actor: Actor, slug: str, note: str) -> Company:
    """Remove a published listing from everything public: the API, counts, positions, search, programs."""
    return _decide(actor, slug, "unlisted", note)


def relist_company(actor: Actor, slug: str, *, note: str = "") -> Company:
    """Publish an unlisted listing again, in its old place."""
    return _decide(actor, slug, "relisted", note)


def _decide(actor: Actor, slug: str, step: str, note: str, *, expected_version: int | None = None) -> Company:
    require_reviewer(actor, _TASK)
    note = note if step in {"approved", "relisted"} else _require_note(note)
    return _move(actor, slug, step, expected_version=expected_version, note=note)


def _move(actor: Actor, slug: str, step: str, *, expected_version: int | None = None, note: str = "") -> Company:
    starts, end = _STEPS[step]
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        expect_version(company, expected_version)
        if company.state not in starts:
            raise Conflict(
                f"{slug!r} is {company.get_state_display().lower()} and cannot be {step}.",
                "Reload it: someone else may have decided.",
            )
        old, new = {"state": company.state}, {"state": end}
        company.state = end
        company.reviewer_note = "" if step in {"submitted", "approved", "relisted"} else note
        company.submitted_at = now() if step == "submitted" else company.submitted_at
        if step == "approved" and company.listed_on is None:
            company.listed_on = now().date()
        company.version += 1
        company.updated_at = now()
        company.save()
        history.entry(actor, step, before=old, after=new, company=company, note=note).save()
        publish_company(company, AffectedRows(), changed={"state"})
        transaction.on_commit(lambda: notifications.notify_owners(company, step, note))
        return company


def decide_change(actor: Actor, change_id: int, *, approve: bool, note: str = "") -> PendingChange:
    """
    Approve or decline the pending change of a published listing.

    Args:
        change_id: reviewers decide on what they saw, so a replaced change is a conflict.
        note: shown to the owner; required to decline.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown change.
        Conflict: another reviewer decided first, or the owner withdrew it.
    """
    require_reviewer(actor, _TASK)
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
