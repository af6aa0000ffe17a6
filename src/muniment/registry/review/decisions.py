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

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, NotFound
from muniment.registry import history
from muniment.registry.company.access import require_reviewer
from muniment.registry.company.changes import read_change, refuse_broken_rules
from muniment.registry.company.listings import compare, write
from muniment.registry.inbox.waiting import announce
from muniment.registry.models import Company, PendingChange
from muniment.registry.plugged.checking import refuse_company
from muniment.registry.review import notifications
from muniment.registry.review.steps import move_company

_TASK: Final = "decide on listings"
_WITHOUT_NOTE: Final = {"approved", "relisted", "review reopened"}
_EVENTS: Final = {"unlisted": Event.UNLISTED, "relisted": Event.RELISTED}


def _require_note(note: str) -> str:
    if not note.strip():
        raise BadRequest("Write a note first.", "Say what the owner should know or change: we email it to them.")
    return note.strip()


def submit_company(actor: Actor, slug: str, *, expected_version: int | None = None) -> Company:
    """
    Submit a draft, or a listing with requested changes, for review.

    Raises:
        NotFound: unknown, or not owned.
        Conflict: it is in another state, or has another version.
    """
    return move_company(actor, slug, "submitted", expected_version=expected_version)


def approve_company(actor: Actor, slug: str, *, expected_version: int | None = None, note: str = "") -> Company:
    """
    Publish a submitted listing; without a listing date it is listed today.

    Args:
        expected_version: the version that the reviewer looked at.
    """
    return _decide(actor, slug, "approved", note, expected_version=expected_version)


def request_changes(actor: Actor, slug: str, note: str, *, expected_version: int | None = None) -> Company:
    """Return a submitted listing to its owner, with a note."""
    return _decide(actor, slug, "changes requested", note, expected_version=expected_version)


def reject_company(actor: Actor, slug: str, note: str, *, expected_version: int | None = None) -> Company:
    """Decline a submitted listing, with a note."""
    return _decide(actor, slug, "rejected", note, expected_version=expected_version)


def reopen_company(actor: Actor, slug: str) -> Company:
    """Return a listing to the queue that was declined, or for which changes were requested; its place stays."""
    return _decide(actor, slug, "review reopened", "")


def unlist_company(actor: Actor, slug: str, note: str) -> Company:
    """
    Remove a published listing from everything public: the API, counts, positions, search, programs.

    A listing that an owner unlisted can be taken down too: then its owners cannot publish it again.
    """
    return _decide(actor, slug, "unlisted", note)


def relist_company(actor: Actor, slug: str, *, note: str = "") -> Company:
    """Publish an unlisted listing again, in its old place."""
    return _decide(actor, slug, "relisted", note)


def _decide(actor: Actor, slug: str, step: str, note: str, *, expected_version: int | None = None) -> Company:
    require_reviewer(actor, _TASK)
    note = note if step in _WITHOUT_NOTE else _require_note(note)
    with transaction.atomic():
        company = move_company(actor, slug, step, expected_version=expected_version, note=note)
        event = _EVENTS.get(step, Event.SUBMISSION_DECIDED)
        detail = {} if step in _EVENTS else {"decision": step}
        record(event, actor=actor, subject=f"companies/{company.slug}", detail=detail)
    return company


def reopen_change(actor: Actor, change_id: int) -> PendingChange:
    """
    Return a declined change to the queue.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown change.
        Conflict: it was not declined, another change waits, or the listing has the values by now.
    """
    require_reviewer(actor, _TASK)
    with transaction.atomic():
        company = Company.objects.select_for_update(of=("self",)).filter(pending_changes=change_id).first()
        if company is None:
            raise NotFound(Phrase("Change {number} not found.", number=change_id), "Pending changes are at /review.")
        pending = PendingChange.objects.select_for_update().get(pk=change_id)
        if pending.decision != "rejected":
            raise Conflict("This change was not declined, so it can't be reopened.", "Open items are at /review.")
        if PendingChange.objects.filter(company=company, decision="").exists():
            raise Conflict("The owner has requested another change.", "Decide on that one: it is at /review.")
        if not compare(company, read_change(pending.changes, settings.SCHEMA)):
            raise Conflict("The listing already has these values.", "There is nothing to decide.")
        pending.decision, pending.note, pending.decided_at, pending.decided_by = "", "", None, None
        pending.save()
        detail = {"change": change_id, "decision": "reopened"}
        record(Event.CHANGE_DECIDED, actor=actor, subject=f"companies/{company.slug}", detail=detail)
        history.entry(actor, "change reopened", before={}, after={}, company=company).save()
        notifications.notify_owners(company, "change reopened", "")
        announce(f"change:{change_id}")
        return pending


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
            raise NotFound(Phrase("Change {number} not found.", number=change_id), "Pending changes are at /review.")
        company: Company = found  # locked before its change, in the same order as owners' edits
        pending = PendingChange.objects.select_for_update().get(pk=change_id)
        if pending.decision:
            raise Conflict(
                Phrase("This change is already {decision}.", decision=Phrase(pending.decision)),
                "Pending changes are at /review.",
            )
        pending.decision = "approved" if approve else "rejected"
        pending.note = note if approve else _require_note(note)
        pending.decided_at, pending.decided_by_id = now(), actor.account_id
        pending.save()
        detail = {"change": change_id, "decision": pending.decision}
        record(Event.CHANGE_DECIDED, actor=actor, subject=f"companies/{company.slug}", detail=detail)
        step = "change approved" if approve else "change refused"
        difference = compare(company, read_change(pending.changes, settings.SCHEMA)) if approve else None
        if difference:
            refuse_broken_rules(company, difference)
            refuse_company(actor, company, difference.columns, difference.lists)
            difference.columns["reviewed_at"] = now()
            write(actor, company, difference, step, note=note)
        else:
            history.entry(actor, step, before={}, after={}, company=company, note=note).save()
        notifications.notify_owners(company, step, note)
        return pending
