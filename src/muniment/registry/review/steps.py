"""
The steps of a listing from state to state: who unlisted it, its history, mail to its owners, publication.

Source: decisions, section 5, listings.
"""

from typing import Final, NamedTuple

from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase, marked
from muniment.kernel.problems import Conflict, Forbidden
from muniment.registry import history, provenance
from muniment.registry.company.access import expect_version, owned
from muniment.registry.company.listings import publish_company
from muniment.registry.inbox.waiting import announce
from muniment.registry.models import Company, State, Taking, UnlistedBy
from muniment.registry.people import consent
from muniment.registry.plugged.checking import refuse_step
from muniment.registry.publishing.publisher import AffectedRows
from muniment.registry.review import notifications


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
        company = owned(actor, slug, lock=True)
        expect_version(company, expected_version)
        taken = STEPS[step]
        _check(company, step)
        refuse_step(actor, company, taken.end)
        old, new = {"state": str(company.state)}, {"state": str(taken.end)}
        if old == new:
            old, new = {"unlistedBy": company.unlisted_by}, {"unlistedBy": taken.unlisted_by}
        company.state, company.unlisted_by = taken.end, taken.unlisted_by
        company.reviewer_note = "" if step in _WITHOUT_NOTE else note
        company.submitted_at = now() if step == "submitted" else company.submitted_at
        if step == "approved" and company.listed_on is None:
            company.listed_on = now().date()
        company.version += 1
        company.updated_at = now()
        if step in {"approved", "relisted"}:
            company.reviewed_at = company.updated_at
            provenance.reviewed(company)
        company.save()
        if taken.end == State.SUBMITTED:
            announce(f"company:{slug}")
        if step == "approved":
            consent.add_named_people(actor, company)
        consent.tell_people(company)
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
            hint = marked("Change it without submitting it: what needs review waits for a reviewer by itself.")
        raise Conflict(
            Phrase(
                "{slug!r} is {state} and cannot be {step}.",
                slug=company.slug,
                state=Phrase(state),
                step=Phrase(step.removeprefix("review ")),
            ),
            hint,
        )
