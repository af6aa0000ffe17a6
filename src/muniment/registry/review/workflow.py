"""
The review workflow of a listing: from draft to published, the reviewers' decisions, and what owners take back.

Each operation is one transaction: it checks the expected state under a lock, writes the history, and mails the owners.
All raise NotFound for a listing that is unknown or not the actor's, and Conflict if the listing is in another state or
has another version, because someone else decided first. The reviewers' operations raise Forbidden unless the actor is a
reviewer, and NoteMissing without a note where the owner needs one. The owners' operations raise Forbidden for a
reviewer who does not own the listing.

Source: decisions, section 5, listings.
"""

from typing import Final, NamedTuple

from django.conf import settings
from django.db import transaction
from django.db.models import ProtectedError

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry import history, provenance
from muniment.registry.company import listings
from muniment.registry.company.access import expect_version, owned, require_note, require_reviewer
from muniment.registry.company.changes import (
    CompanyChange,
    read_change,
    refuse_broken_rules,
    refuse_company,
    refuse_step,
)
from muniment.registry.company.listings import compare, publish_company, write
from muniment.registry.models import Company, PendingChange, Person, State, Taking, UnlistedBy
from muniment.registry.people import naming
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.review import notifications
from muniment.registry.review.notifications import announce

_TASK: Final = "decide on listings"
_NOTE_OPTIONAL: Final = {"approved", "relisted", "review reopened"}
_EVENTS: Final = {"unlisted": Event.UNLISTED, "relisted": Event.RELISTED}
DELETABLE: Final = (State.DRAFT, State.CHANGES_REQUESTED, State.REJECTED)
"""States of a listing that was never public and that no reviewer is deciding on."""


class Step(NamedTuple):
    """The states that a step starts from, the one it leads to, and the side that unlists the listing by it."""

    starts: tuple[str, ...]
    end: str
    unlisted_by: str = ""


STEPS: Final[dict[str, Step]] = {
    "submitted": Step((State.DRAFT, State.CHANGES_REQUESTED), State.SUBMITTED),
    "submission withdrawn": Step((State.SUBMITTED,), State.DRAFT),
    "approved": Step((State.SUBMITTED,), State.PUBLISHED),
    "changes requested": Step((State.SUBMITTED,), State.CHANGES_REQUESTED),
    "rejected": Step((State.SUBMITTED,), State.REJECTED),
    "review reopened": Step((State.REJECTED, State.CHANGES_REQUESTED), State.SUBMITTED),
    "unlisted": Step((State.PUBLISHED, State.UNLISTED), State.UNLISTED, UnlistedBy.REVIEWER),
    "relisted": Step((State.UNLISTED,), State.PUBLISHED),
    "unlisted by owner": Step((State.PUBLISHED,), State.UNLISTED, UnlistedBy.OWNER),
    "relisted by owner": Step((State.UNLISTED,), State.PUBLISHED),
}
_WITHOUT_NOTE: Final = {
    *("submitted", "submission withdrawn", "approved", "review reopened", "relisted", "relisted by owner"),
}


def move_company(actor: Actor, slug: str, step: str, *, expected_version: int | None = None, note: str = "") -> Company:
    """
    Take a step with a listing that *actor* owns or reviews.

    Raises:
        NotFound: unknown, or not the actor's.
        Conflict: it is in another state, or has another version.
        Forbidden: an owner publishes again what a reviewer took down.
    """
    with transaction.atomic():
        company = owned(actor, slug, lock=True, version=expected_version)
        taken = STEPS[step]
        _check(company, step)
        refuse_step(actor, company, taken.end)
        old, new = {"state": str(company.state)}, {"state": str(taken.end)}
        if old == new:  # a reviewer takes down what its owner has unlisted
            old, new = {"unlistedBy": company.unlisted_by}, {"unlistedBy": taken.unlisted_by}
        company.state, company.unlisted_by = taken.end, taken.unlisted_by
        company.reviewer_note = "" if step in _WITHOUT_NOTE else note
        if step == "submitted":  # one that is reopened keeps its place in the queue
            company.submitted_at = now()
        if step == "approved" and company.listed_on is None:
            company.listed_on = now().date()
        company.version += 1
        company.updated_at = now()
        if step in {"approved", "relisted"}:
            company.reviewed_at = company.updated_at
            provenance.reviewed(company)
        company.save()
        if taken.end == State.SUBMITTED:
            announce(f"company:{slug}", company)
        if step == "approved":
            naming.add_named_people(actor, company)
        naming.tell_people(company)
        if old.get("state") == State.SUBMITTED:
            Taking.objects.filter(subject=f"company:{slug}").delete()
        history.entry(actor, step, before=old, after=new, company=company, note=note).save()
        publish_company(company, AffectedRows(), changed={"state"})
        notifications.notify_owners(company, step, note)
        return company


def _check(company: Company, step: str) -> None:
    by_owner = company.state == State.UNLISTED and company.unlisted_by == UnlistedBy.OWNER
    taken_down = company.state == State.UNLISTED and not by_owner
    if step == "relisted by owner" and taken_down:
        raise Forbidden(
            "A reviewer unlisted this listing, so its owners cannot publish it again.",
            "Ask the operator of this registry.",
        )
    if company.state not in STEPS[step].starts or (step == "unlisted" and taken_down):
        state = company.get_state_display().lower()
        if step == "submission withdrawn":
            raise Conflict(
                Phrase(
                    "{slug!r} is {state}, so there is no submission to withdraw.",
                    slug=company.slug,
                    state=Phrase(state),
                ),
                "To withdraw a change that waits for review, set the field to its published value.",
            )
        hint = marked("Reload it: someone else may have decided.")
        if step == "submitted" and company.state == State.PUBLISHED:
            hint = marked(
                "Save your changes without submitting. Changes that need review go to a reviewer by themselves."
            )
        raise Conflict(
            Phrase(
                "{slug!r} is {state} and cannot be {step}.",
                slug=company.slug,
                state=Phrase(state),
                step=Phrase(step.removeprefix("review ")),
            ),
            hint,
        )


def _note_to_owner(note: str) -> str:
    return require_note(note, "Say what the owner should know or change: we email it to them.")


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


def confirm_company(actor: Actor, slug: str) -> Company:
    """
    Record that a reviewer looked at a published listing and found it right; its page shows the day.

    Its version stays, so that no owner who edits it now is interrupted.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: unknown.
        Conflict: it is not published.
    """
    require_reviewer(actor, _TASK)
    with transaction.atomic():
        company = owned(actor, slug, lock=True)
        if company.state != State.PUBLISHED:
            raise Conflict(
                Phrase("{slug!r} is not published.", slug=slug), "Decide on its submission first, or publish it again."
            )
        company.reviewed_at = now()
        provenance.reviewed(company)
        company.save(update_fields=["reviewed_at", "provenance"])
        history.entry(actor, "reviewed again", before={}, after={}, company=company).save()
        publish_company(company, AffectedRows(), changed=set())
        record(
            Event.SUBMISSION_DECIDED,
            actor=actor,
            subject=f"companies/{company.slug}",
            detail={"decision": "reviewed again"},
        )
    return company


def _decide(actor: Actor, slug: str, step: str, note: str, *, expected_version: int | None = None) -> Company:
    require_reviewer(actor, _TASK)
    if step not in _NOTE_OPTIONAL:
        note = _note_to_owner(note)
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
        announce(f"change:{change_id}", company)
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
        pending.note = note if approve else _note_to_owner(note)
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
