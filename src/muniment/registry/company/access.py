"""
Access to listings and to the operations of reviewers, and which listing a name means.

Owners and agents say what a listing or a framework is called, not its slug.
"""

import difflib
import unicodedata
from collections.abc import Sequence
from typing import Any, Final

from django.db import connection
from django.db.models import QuerySet

from muniment.kernel.actor import Actor
from muniment.kernel.ids import MAX_SLUG_CHARACTERS, slug_from_name
from muniment.kernel.phrases.phrase import Joined, Phrase, either
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry.models import Company, Framework, Ownership, Person
from muniment.store.search_text import squeeze


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
    hint = Phrase("GET /api/v1/companies lists the slugs.")
    near = near_listings(slug)
    if near:
        hint = Phrase("Did you mean {near}?", near=either(near))
    return NotFound(Phrase("No listing has the slug {slug!r}.", slug=slug[:200]), hint)


def owners_of(slugs: Sequence[str]) -> dict[str, set[int]]:
    """Return the accounts that own listings, by slug."""
    owners: dict[str, set[int]] = {}
    for slug, account in Ownership.objects.filter(company__slug__in=slugs).values_list("company__slug", "account_id"):
        owners.setdefault(slug, set()).add(account)
    return owners


def no_entry(slug: str, number: int) -> NotFound:
    return NotFound(
        Phrase("{slug!r} has no history entry {number}.", slug=slug[:200], number=number),
        'See its history: get_my_company with parts ["history"], or its page at /manage.',
    )


class NoteMissing(BadRequest):
    """The decision is told to people with a reason, and none was given."""


def require_note(note: str, hint: str) -> str:
    """
    Return the note of a decision, stripped.

    Args:
        hint: what to write, and who reads it.

    Raises:
        NoteMissing: it is blank.
    """
    text = note.strip()
    if not text:
        raise NoteMissing("Write a note first.", hint)
    return text


def require_reviewer(actor: Actor, task: str) -> None:
    """Raise Forbidden unless *actor* acts as a reviewer; *task* is what only reviewers can do."""
    if not actor.decides:
        raise Forbidden(
            Phrase("Only reviewers can {task}.", task=Phrase(task)), "Ask the operator of this registry for the role."
        )


def require_account(actor: Actor, message: str) -> int:
    """Return the actor's account; raise Forbidden with *message* if there is none."""
    if actor.account_id is None:
        raise Forbidden(message, "Sign in first.")
    return actor.account_id


def owned(actor: Actor, slug: str, *, lock: bool = False, version: int | None = None) -> Company:
    """
    Return a listing that *actor* owns; reviewers have access to every listing.

    Args:
        version: the version that it must have; None for any.

    Raises:
        NotFound: unknown, or not the actor's.
        Conflict: it has another version.
    """
    # SQL, because every operation of an owner begins with it: the ORM takes 0.2 ms to compose a query.
    is_reviewer = actor.decides
    statement = "SELECT * FROM registry_company WHERE slug = %s"
    parameters: list[Any] = [Company._meta.get_field("slug").get_prep_value(slug)]  # noqa: SLF001 - Django's public name
    if not is_reviewer:
        if actor.account_id is None:
            raise no_company(slug)
        statement += (
            " AND EXISTS (SELECT 1 FROM registry_ownership WHERE company_id = registry_company.id AND account_id = %s)"
        )
        parameters.append(actor.account_id)
    if lock and connection.features.has_select_for_update:
        statement += " FOR UPDATE"
    for company in Company.objects.raw(statement, parameters):
        if version is not None:
            expect_version(company, version)
        return company
    if is_reviewer:
        raise no_listing(slug)
    raise no_company(slug, near_companies(actor, slug))


def is_own_listing(actor: Actor, slug: str) -> bool:
    """Return whether *actor* is an owner of a listing; the role of a reviewer does not count."""
    if actor.account_id is None:
        return False
    return Ownership.objects.filter(account=actor.account_id, company__slug=slug).exists()


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


MAX_COMPARED: Final = 1_000
"""Listings of an account, or frameworks, whose names are compared."""
_NEAR: Final = 3
_BEGINNING: Final = 3
"""Characters that a slug and what was asked have in common."""


def company_slug(actor: Actor, text: str) -> str:
    """Return the slug of the actor's own listing that *text* names, by its slug or its exact name; or *text* itself."""
    return _slug(_own(actor), text)


def framework_slug(text: str) -> str:
    """Return the slug of the public framework that *text* names, by its slug or its exact name; or *text* itself."""
    return _slug(Framework.objects.filter(published=True), text)


def near_companies(actor: Actor, text: str) -> list[str]:
    """Return the actor's own listings whose slug or name is like *text*, each with both."""
    rows = list(_own(actor).order_by("pk").values_list("slug", "name")[:MAX_COMPARED])
    asked = squeeze(text)
    near: list[tuple[float, str]] = []
    for slug, name in rows:
        likeness = max(_likeness(asked, slug), _likeness(asked, name))
        if likeness >= 0.6:
            near.append((likeness, f"{slug} ({name})"))
    near.sort(key=lambda listing: -listing[0])
    return [words for _, words in near[:_NEAR]]


def _likeness(asked: str, text: str) -> float:
    return difflib.SequenceMatcher(None, asked, squeeze(text)).ratio()


def near_listings(text: str) -> list[str]:
    """Return the listings of anyone whose slug is like *text* and begins like it, each with its slug and name."""
    asked = slug_from_name(text[:MAX_SLUG_CHARACTERS])
    begun = Company.objects.filter(slug__startswith=asked[:_BEGINNING]).order_by("slug")
    names = dict(begun.values_list("slug", "name")[:MAX_COMPARED])
    return [f"{slug} ({names[slug]})" for slug in difflib.get_close_matches(asked, names, _NEAR)]


def _own(actor: Actor) -> QuerySet[Company]:
    if actor.account_id is None:
        return Company.objects.none()
    return Company.objects.filter(ownerships__account_id=actor.account_id)


def _slug(rows: QuerySet[Company] | QuerySet[Framework], text: str) -> str:
    """Return the slug of the only one of *rows* with a name; a *text* in the form of a slug is one."""
    text = unicodedata.normalize("NFC", text)  # as slugs are stored; some systems take characters apart
    if slug_from_name(text) == text:
        return text
    asked = squeeze(text)
    if not asked:
        return text
    held = list(rows.order_by("pk").values_list("slug", "name")[:MAX_COMPARED])
    if any(slug == text for slug, _ in held):
        return text
    meant = {slug for slug, name in held if asked in {squeeze(slug), squeeze(name)}}
    return meant.pop() if len(meant) == 1 else text
