"""Access to listings and to the operations of reviewers."""

from collections.abc import Sequence
from typing import Any

from django.db import connection

from muniment.kernel.actor import Actor
from muniment.kernel.phrases.phrase import Joined, Phrase, either
from muniment.kernel.problems import Conflict, Forbidden, NotFound
from muniment.registry.models import Company, Ownership, Person
from muniment.registry.names.asked import near_companies, near_listings


def no_company(slug: str, near: Sequence[str] = ()) -> NotFound:
    """
    Return the error for a listing that is unknown or not the actor's; it does not reveal which.

    Args:
        near: listings of the actor's own that may be meant.
    """
    hint = Phrase("Call list_my_companies for the slugs of your companies.")
    meant = [Phrase("Did you mean {near}?", near=either(near))] if near else []
    return NotFound(
        Phrase("You have no company with the slug {slug!r}.", slug=slug[:200]),
        Joined(" ", [*meant, hint]),
    )


def no_listing(slug: str) -> NotFound:
    """Return the error for a listing that is unknown to an actor who decides on all of them."""
    near = near_listings(slug)
    return NotFound(
        Phrase("No listing has the slug {slug!r}.", slug=slug[:200]),
        Phrase("Did you mean {near}?", near=either(near)) if near else Phrase("GET /api/v1/companies lists the slugs."),
    )


def no_entry(slug: str, number: int) -> NotFound:
    return NotFound(
        Phrase("{slug!r} has no history entry {number}.", slug=slug[:200], number=number),
        'See its history: get_my_company with parts ["history"], or its page at /manage.',
    )


def decides(actor: Actor) -> bool:
    """Return whether *actor* acts as a reviewer: on pages or the command line, never through a token or an app."""
    return actor.is_reviewer and actor.via in {"web", "command", "system"}


def require_reviewer(actor: Actor, task: str) -> None:
    """Raise Forbidden unless *actor* acts as a reviewer; *task* is what only reviewers can do."""
    if not decides(actor):
        raise Forbidden(
            Phrase("Only reviewers can {task}.", task=Phrase(task)), "Ask the operator of this registry for the role."
        )


def require_account(actor: Actor, message: str) -> int:
    """Return the actor's account; raise Forbidden with *message* if there is none."""
    if actor.account_id is None:
        raise Forbidden(message, "Sign in first.")
    return actor.account_id


def owned(actor: Actor, slug: str, *, lock: bool = False) -> Company:
    """
    Return a listing that *actor* owns; reviewers have access to every listing.

    Raises:
        NotFound: unknown, or not the actor's.
    """
    statement = "SELECT * FROM registry_company WHERE slug = %s"
    parameters: list[Any] = [Company._meta.get_field("slug").get_prep_value(slug)]  # noqa: SLF001 - Django's public name
    if not decides(actor):
        if actor.account_id is None:
            raise no_company(slug)
        statement += (
            " AND EXISTS (SELECT 1 FROM registry_ownership WHERE company_id = registry_company.id AND account_id = %s)"
        )
        parameters.append(actor.account_id)
    if lock and connection.features.has_select_for_update:
        statement += " FOR UPDATE"
    for company in Company.objects.raw(statement, parameters):
        return company
    raise no_listing(slug) if decides(actor) else no_company(slug, near_companies(actor, slug))


def owns(actor: Actor, slug: str) -> bool:
    """Return whether *actor* is an owner of a listing; the role of a reviewer does not count."""
    held = Ownership.objects.filter(account=actor.account_id, company__slug=slug)
    return actor.account_id is not None and held.exists()


def expect_version(row: Company | Person, expected: int | None) -> None:
    """
    Prevent a lost update.

    Raises:
        Conflict: the listing or profile has another version.
    """
    if expected is not None and row.version != expected:
        raise Conflict(
            Phrase(
                "{slug!r} is at version {version}, not {expected}: it has changed since.",
                slug=row.slug,
                version=row.version,
                expected=expected,
            ),
            Phrase(
                "Read it again, and repeat the change with expectedVersion {version} if it still fits.",
                version=row.version,
            ),
        )
