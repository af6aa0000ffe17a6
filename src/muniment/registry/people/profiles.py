"""
Profiles of people: linked to an account after review, and edited, published and reverted only by that account.

Source: decisions, section 5; tools, get_my_profile and update_my_profile.
"""

from dataclasses import dataclass
from typing import Any, Final

from django.conf import settings
from django.db import IntegrityError, transaction

from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Conflict, Forbidden, NotFound
from muniment.registry import history, provenance
from muniment.registry.company.access import expect_version, require_account, require_reviewer
from muniment.registry.company.changes import (
    BadFields,
    Difference,
    Edit,
    compare_field,
    read_fields,
    refuse_broken_fields,
    refuse_person,
)
from muniment.registry.company.pictures import stored_path
from muniment.registry.exchange.batch import reserve_slug
from muniment.registry.models import Company, HistoryEntry, Person, UnlistedBy
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.schema.validation import Fault

PICTURE = "picture"


HINT: Final = "A profile has a name and a bio."


class ProfileChange(dict[str, Any]):
    """The fields of a profile to change, by wire name; absent fields stay."""


@dataclass(frozen=True, slots=True)
class ProfileUpdate:
    """
    The result of an update, or of its dry run.

    Args:
        entry_id: the id of the history entry that reverts it; None if nothing was changed.
    """

    person: Person
    applied: list[str]
    diff: dict[str, JSONObject]
    entry_id: int | None = None


def get_profile(actor: Actor) -> Person | None:
    """Return the person linked to the actor's account, or None."""
    if not actor.account_id:
        return None
    return Person.objects.filter(account_id=actor.account_id).first()


def update_profile(
    actor: Actor, change: ProfileChange, *, expected_version: int | None = None, dry_run: bool = False
) -> ProfileUpdate:
    """
    Change the actor's own profile; the change is public at once.

    Args:
        dry_run: return the diff without changing anything.

    Raises:
        BadRequest: the account has no profile; a value is invalid.
        Conflict: *expected_version* is not the current version.
    """
    edit = read_fields(change, settings.SCHEMA.profile_change, HINT)
    with transaction.atomic():
        person = own_profile(actor)
        expect_version(person, expected_version)
        difference = compare_profile(person, edit, actor)
        entry_id = None
        if difference and not dry_run:
            difference.write_columns(person)
            entry_id = write_profile(actor, person, "updated", difference.before, difference.after)
        return ProfileUpdate(person, list(difference.after), difference.to_wire(), entry_id)


def compare_profile(person: Person, edit: Edit, actor: Actor) -> Difference:
    """
    Compare *edit* with the stored profile.

    Raises:
        BadFields: a changed value breaks a rule, or a plugin refuses it.
    """
    difference = Difference()
    for name, value in edit.items():
        compare_field(person, settings.SCHEMA.person.by_name[name], value, difference)
    refuse_broken_fields(settings.SCHEMA.person, difference, HINT)
    if difference:
        refuse_person(actor, person, difference.columns)
    return difference


def set_portrait(actor: Actor, address: str) -> Person:
    """
    Set the portrait of the actor's own profile; empty removes it.

    Raises:
        BadRequest: the account has no profile.
    """
    with transaction.atomic():
        person = own_profile(actor)
        extra = dict(person.extra)
        before = extra.pop(PICTURE, None)
        if address:
            extra[PICTURE] = address
        refuse_person(actor, person, {"extra": extra})
        person.extra = extra
        write_profile(actor, person, "updated", {PICTURE: before}, {PICTURE: address or None})
        return person


def own_profile(actor: Actor) -> Person:
    """Return the profile of the actor's account, locked; raise BadRequest if it has none."""
    account_id = actor.account_id or 0  # no account has this number
    person = Person.objects.select_for_update().filter(account_id=account_id).first()
    if person is None:
        raise BadRequest("This account has no profile.", "Claim or create your profile at /manage/profile first.")
    return person


def write_profile(actor: Actor, person: Person, action: str, before: JSONObject, after: JSONObject) -> int:
    """
    Save a person with the history, and publish them and, after a new name or state, the companies that show it.

    Returns:
        The number of the history entry.
    """
    if after.get("state") == "published":
        refuse_person(actor, person, {}, publishes=True)
    history.limit_written_bytes(actor, before, after)
    moment = now()
    provenance.edited(person, actor, before, after, on=moment)
    person.version += 1
    person.updated_at = moment
    person.save()
    entry = history.entry(actor, action, before=before, after=after, person=person, at=moment)
    entry.save()
    affected = AffectedRows()
    if {"name", "state"} & after.keys():
        affected.person_with_companies(person.pk)
        Company.objects.filter(pk__in=list(affected.companies)).update(updated_at=person.updated_at)
    publish(affected.person(person.pk))
    return int(entry.pk)


def create_profile(actor: Actor, change: ProfileChange) -> Person:
    """
    Create a profile for the actor's account; it is private until the account publishes it or confirms a position.

    Raises:
        Forbidden: the actor has no account.
        Conflict: the account already has a profile.
        BadFields: a value is invalid.
    """
    account_id = require_account(actor, "A profile belongs to an account.")
    edit = read_fields(change, settings.SCHEMA.profile_change, HINT, is_new=True)
    if "name" not in edit:
        raise BadFields([Fault("name", "is missing")], HINT)
    try:
        with transaction.atomic():
            slug = reserve_slug("person", edit["name"])
            person = Person(slug=slug, account_id=account_id)
            difference = compare_profile(person, edit, actor)
            difference.write_columns(person)
            provenance.edited(person, actor, {}, difference.after, on=now())
            person.save()
            history.entry(actor, "created", before={}, after=difference.after, person=person).save()
            return person
    except IntegrityError:
        raise Conflict("This account already has a profile.", "Edit it at /manage/profile.") from None


def join_person(actor: Actor, slug: str, account_id: int) -> Person:
    """
    Link a person to an account, after a claim; the person is then public.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
        Conflict: the person or the account is linked to another.
    """
    require_reviewer(actor, "link people to accounts")
    with transaction.atomic():
        person = Person.objects.select_for_update().filter(slug=slug).first()
        if person is None:
            raise NotFound(
                Phrase("No person has the slug {slug!r}.", slug=slug[:200]),
                "GET /api/v1/people lists the slugs of people.",
            )
        taken = Person.objects.filter(account_id=account_id).exclude(pk=person.pk).exists()
        if taken or person.account_id not in {None, account_id}:
            raise Conflict("The person or the account is already linked to another.", "Unlink them first.")
        person.account_id, person.listed = account_id, True
        write_profile(actor, person, "joined", {}, {"account": account_id})
        return person


def profile_history(actor: Actor, *, page: int = 1, page_size: int = 25) -> Page[HistoryEntry]:
    """Return the history of the actor's own profile, latest first."""
    person = get_profile(actor)
    if person is None:
        return Page([], page, page_size, 0)
    return history.read_page(HistoryEntry.objects.filter(person=person), page, page_size)


def can_revert(entry: HistoryEntry) -> bool:
    """Return whether an entry in the history of a profile has a change that can be reverted."""
    return any(name in entry.after for name in entry.before.keys() & _editable())


def _editable() -> set[str]:
    return {*settings.SCHEMA.profile_change.by_name, PICTURE}


def revert_profile(
    actor: Actor,
    entry_id: int,
    *,
    expected_version: int | None = None,
    overwrite: bool = False,
    dry_run: bool = False,
) -> ProfileUpdate:
    """
    Revert the change of history entry *entry_id* of the actor's own profile.

    Args:
        overwrite: also replace what later changes wrote to the same fields.

    Raises:
        NotFound: the profile has no such entry.
        BadRequest: the entry has no revertible change, or an old value is no longer valid.
        LaterChanges: later changes touched the same fields, and *overwrite* is false.
        Conflict: *expected_version* is not the current version.
    """
    with transaction.atomic():
        person = own_profile(actor)
        expect_version(person, expected_version)
        entry = HistoryEntry.objects.filter(person=person, pk=entry_id).first()
        if entry is None:
            raise NotFound(
                Phrase("Your profile has no history entry {number}.", number=entry_id), "See /manage/profile/history."
            )
        difference = _compare(actor, person, history.replaced_values(entry, _editable()))
        if not overwrite and not dry_run:
            history.check_later(entry, difference.after)
        revert_id = None
        if difference and not dry_run:
            difference.write_columns(person)
            revert_id = write_profile(actor, person, "reverted", difference.before, difference.after)
        return ProfileUpdate(person, list(difference.after), difference.to_wire(), revert_id)


def _compare(actor: Actor, person: Person, values: JSONObject) -> Difference:
    has_picture = PICTURE in values
    picture = values.pop(PICTURE, None)
    picture = stored_path(picture or "") or picture  # the history may have it under a URL
    difference = compare_profile(person, read_fields(values, settings.SCHEMA.profile_change, HINT), actor)
    extra: JSONObject = dict(difference.columns.get("extra", person.extra) or {})
    before = extra.pop(PICTURE, None)
    if has_picture and picture != before:
        if picture:
            extra[PICTURE] = picture
        difference.columns["extra"] = extra
        difference.before[PICTURE] = before
        difference.after[PICTURE] = picture
    return difference


def unlist_profile(actor: Actor) -> Person:
    """
    Remove the actor's own profile from everything public. Repeating it succeeds.

    Companies that name the person keep the name, without a link.

    Raises:
        Forbidden: a reviewer unlisted it.
    """
    with transaction.atomic():
        person = _own_unless_taken_down(actor)
        if not person.unlisted_by:
            person.unlisted_by = UnlistedBy.OWNER
            write_profile(actor, person, "unlisted", {"state": _state_of(person)}, {"state": "unlisted"})
        return person


def publish_profile(actor: Actor) -> Person:
    """
    Publish the actor's own profile, for the first time or again. Repeating it succeeds.

    Raises:
        Forbidden: a reviewer unlisted it.

    Source: decisions, section 2, only reviewed; section 5: a private profile is published by its owner alone.
    """
    with transaction.atomic():
        person = _own_unless_taken_down(actor)
        if person.unlisted_by or not person.published:
            before = "unlisted" if person.unlisted_by else _state_of(person)
            action = "relisted" if person.unlisted_by else "published"
            person.unlisted_by, person.listed = "", True
            write_profile(actor, person, action, {"state": before}, {"state": "published"})
        return person


def _own_unless_taken_down(actor: Actor) -> Person:
    person = own_profile(actor)
    if person.unlisted_by == UnlistedBy.REVIEWER:
        raise Forbidden("A reviewer unlisted this profile.", "Ask the operator of this registry.")
    return person


def _state_of(person: Person) -> str:
    return "published" if person.published else "private"
