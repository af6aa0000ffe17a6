"""
A person's own profile: joined to an account after a reviewer agrees, edited by that account alone.

Source: decisions, section 5; tools, get_my_profile and update_my_profile.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import new_id, now
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry import history
from muniment.registry.company.company_change import BadFields, Edit, read_fields
from muniment.registry.company.editing import Difference, compare_field, decides
from muniment.registry.exchange.batch import give_slug
from muniment.registry.models import Company, Person
from muniment.registry.publishing.publisher import Touched, publish
from muniment.schema.validation import Fault

HINT: Final = "A profile has a name and a bio."


class ProfileChange(dict[str, Any]):
    """The fields of a profile that its person changes, by their names on the wire: an absent one stays."""


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
    edit = read_fields(change, settings.SCHEMA.profile_change, HINT)
    with transaction.atomic():
        found = Person.objects.select_for_update().filter(account_id=actor.account_id) if actor.account_id else None
        person = found.first() if found is not None else None
        if person is None:
            raise BadRequest(
                "No person is joined to this account.", "Claim or make your profile at /manage/profile first."
            )
        difference = _compare(person, edit)
        if difference and not dry_run:
            difference.write_columns(person)
            person.version += 1
            person.updated_at = now()
            person.save()
            history.entry(actor, "updated", before=difference.before, after=difference.after, person=person).save()
            publish_person(person, renamed="name" in difference.after)
        return ProfileUpdate(person, list(difference.after), difference.to_wire())


def _compare(person: Person, edit: Edit) -> Difference:
    found = Difference()
    for name, value in edit.items():
        compare_field(person, settings.SCHEMA.person.by_name[name], value, found)
    return found


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
    edit = read_fields(change, settings.SCHEMA.profile_change, HINT)
    if "name" not in edit:
        raise BadFields([Fault("name", "is missing")], HINT)
    try:
        with transaction.atomic():
            slug = give_slug("person", edit["name"])
            person = Person(slug=slug, document_id=new_id(), account_id=actor.account_id)
            difference = _compare(person, edit)
            difference.write_columns(person)
            person.save()
            history.entry(actor, "created", before={}, after=difference.after, person=person).save()
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
