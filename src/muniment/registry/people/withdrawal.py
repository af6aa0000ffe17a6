"""
What people take back: changes of their own profile, and its publication.

Each change raises BadRequest for an account without a profile.

Source: decisions, section 5, listings.
"""

from django.conf import settings
from django.db import transaction

from muniment.kernel.actor import Actor
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import Forbidden, NotFound
from muniment.registry import history, reverting
from muniment.registry.company.access import expect_version
from muniment.registry.company.changes import Difference, read_fields
from muniment.registry.company.pictures import stored_path
from muniment.registry.models import HistoryEntry, Person, UnlistedBy
from muniment.registry.people.profiles import (
    HINT,
    ProfileUpdate,
    compare_profile,
    get_profile,
    own_profile,
    write_profile,
)

PICTURE = "picture"


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
        difference = _compare(actor, person, reverting.values_before(entry, _editable()))
        if not overwrite and not dry_run:
            reverting.check_later(entry, difference.after)
        revert_id = None
        if difference and not dry_run:
            difference.write_columns(person)
            revert_id = write_profile(actor, person, "reverted", difference.before, difference.after)
        return ProfileUpdate(person, list(difference.after), difference.to_wire(), revert_id)


def _compare(actor: Actor, person: Person, values: JSONObject) -> Difference:
    has_picture = PICTURE in values
    picture = values.pop(PICTURE, None)
    picture = stored_path(picture or "") or picture
    found = compare_profile(person, read_fields(values, settings.SCHEMA.profile_change, HINT), actor)
    extra: JSONObject = found.columns.get("extra", person.extra) or {}
    before = extra.get(PICTURE)
    if has_picture and picture != before:
        others = {key: value for key, value in extra.items() if key != PICTURE}
        found.columns["extra"] = {**others, PICTURE: picture} if picture else others
        found.before[PICTURE], found.after[PICTURE] = before, picture
    return found


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
