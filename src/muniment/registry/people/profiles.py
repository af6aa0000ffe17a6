"""
A person's own profile: joined to an account after a reviewer agrees, edited by that account alone.

Source: decisions, section 5; tools, get_my_profile and update_my_profile.
"""

from dataclasses import dataclass
from typing import Any

from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.kernel.texts import text_fault
from muniment.kernel.wire import UNSET, Unset
from muniment.registry import history
from muniment.registry.company.company_change import BadFields
from muniment.registry.company.editing import decides
from muniment.registry.exchange.batch import give_slug
from muniment.registry.exchange.rows import Fault, kind_of
from muniment.registry.models import Company, Person
from muniment.registry.publishing.publisher import Touched, publish

LIMITS = {"name": 200, "bio": 20_000}


@dataclass(frozen=True, slots=True, kw_only=True)
class ProfileChange:
    """The fields of a profile that its person edits."""

    name: str | Unset = UNSET
    bio: str | Unset | None = UNSET


@dataclass(frozen=True, slots=True)
class ProfileUpdate:
    """What an update did, or in a dry run would do."""

    person: Person
    applied: list[str]
    diff: dict[str, dict[str, Any]]


def get_profile(actor: Actor) -> Person | None:
    """Give the person joined to the actor's account, or None."""
    return Person.objects.filter(account_id=actor.account_id).first() if actor.account_id else None


def update_profile(actor: Actor, change: ProfileChange, *, dry_run: bool = False) -> ProfileUpdate:
    """
    Change the profile of the actor's own person; it is public at once.

    Raises:
        BadRequest: no person is joined to the account; a value that its field does not take.
    """
    values = _read(change)
    with transaction.atomic():
        found = Person.objects.select_for_update().filter(account_id=actor.account_id) if actor.account_id else None
        person = found.first() if found is not None else None
        if person is None:
            raise BadRequest(
                "No person is joined to this account.", "Claim or make your profile at /manage/profile first."
            )
        after = {key: value for key, value in values.items() if getattr(person, key) != value}
        before = {key: getattr(person, key) for key in after}
        if after and not dry_run:
            for key, value in after.items():
                setattr(person, key, value)
            person.version += 1
            person.updated_at = now()
            person.save()
            history.entry(
                actor,
                "updated",
                before=history.wire_values(before, ""),
                after=history.wire_values(after, ""),
                person=person,
            ).save()
            publish_person(person, renamed="name" in after)
        diff = {key: {"before": before[key] or None, "after": value or None} for key, value in after.items()}
        return ProfileUpdate(person, list(after), diff)


def _read(change: ProfileChange) -> dict[str, str]:
    faults, values = [], {}
    for key, limit in LIMITS.items():
        value = getattr(change, key)
        if value is UNSET:
            continue
        if value is not None and not isinstance(value, str):
            faults.append(Fault(key, f"is {kind_of(value)}, not a text"))
        elif key == "name" and not (value or "").strip():
            faults.append(Fault(key, "is empty"))
        elif value and (fault := text_fault(value)):
            faults.append(Fault(key, fault))
        elif value and len(value) > limit:
            faults.append(Fault(key, f"has {len(value):,} characters, at most {limit:,} are taken"))
        else:
            values[key] = (value or "").strip() if key == "name" else value or ""
    if faults:
        raise BadFields(faults, "A profile takes a name and a bio.")
    return values


def publish_person(person: Person, *, renamed: bool) -> None:
    """Publish a person, and with a new name the companies that show it."""
    touched = Touched()
    if renamed:
        touched.person_with_companies(person.pk)
        Company.objects.filter(pk__in=list(touched.companies)).update(updated_at=person.updated_at)
    publish(touched.person(person.pk))


def create_profile(actor: Actor, change: ProfileChange) -> Person:
    """
    Make a profile for the actor's account; it becomes public when a reviewer lists it or a listing names it.

    Raises:
        Forbidden: nobody is signed in.
        Conflict: the account has a profile.
        BadFields: a value that its field does not take.
    """
    if actor.account_id is None:
        raise Forbidden("A profile belongs to an account.", "Sign in first.")
    values = _read(change)
    if "name" not in values:
        raise BadFields([Fault("name", "is missing")], "A profile takes a name and a bio.")
    try:
        with transaction.atomic():
            slug = give_slug("person", values["name"])
            person = Person.objects.create(slug=slug, document_id=new_id(), account_id=actor.account_id, **values)
            history.entry(
                actor, "created", before={}, after=history.wire_values(dict(values), ""), person=person
            ).save()
            return person
    except IntegrityError:
        raise Conflict("This account has a profile already.", "Edit it at /manage/profile.") from None


def join_person(actor: Actor, slug: str, account_id: int) -> Person:
    """
    Join a person to an account, as a claim asked for; the person is then public.

    Raises:
        Forbidden: the actor is no reviewer.
        NotFound: nobody has the slug.
        Conflict: the person or the account is joined to another.
    """
    if not decides(actor):
        raise Forbidden("Only reviewers join people to accounts.", "Ask the operator of this registry for the role.")
    with transaction.atomic():
        person = Person.objects.select_for_update().filter(slug=slug).first()
        if person is None:
            raise NotFound(f"Nobody here has the slug {slug[:200]!r}.", "GET /api/v1/people lists the slugs of people.")
        taken = Person.objects.filter(account_id=account_id).exclude(pk=person.pk).exists()
        if taken or person.account_id not in {None, account_id}:
            raise Conflict("The person or the account is joined to another.", "Part the two first.")
        person.account_id, person.listed, person.updated_at = account_id, True, now()
        person.version += 1
        person.save()
        history.entry(actor, "joined", before={}, after={"account": account_id}, person=person).save()
        publish_person(person, renamed=False)
        return person
