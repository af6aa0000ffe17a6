"""Changes that reviewers make to people besides erasing them: correct, unlist, and merge two people who are one."""

from collections.abc import Iterable
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Min, Q
from django.utils.translation import gettext

from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.kernel.actor import Actor
from muniment.kernel.ids import now
from muniment.kernel.pagination import Page
from muniment.kernel.problems import BadRequest, Conflict
from muniment.mail import outgoing
from muniment.mail.receivers import in_language_of
from muniment.registry import history, provenance
from muniment.registry.company.access import require_note, require_reviewer
from muniment.registry.company.changes import read_fields
from muniment.registry.models import (
    Company,
    HistoryEntry,
    MergedPerson,
    Person,
    Petition,
    Position,
    PositionRequest,
    UnlistedBy,
)
from muniment.registry.people.erasing import find_person
from muniment.registry.people.positions import team_of
from muniment.registry.people.profiles import HINT, ProfileChange, ProfileUpdate, compare_profile, write_profile
from muniment.registry.publishing.publisher import AffectedRows, publish

SHOWN: Final = 20


def list_people(actor: Actor, query: str = "", *, page: int = 1, page_size: int = 25) -> Page[Person]:
    """
    List people, public or not, by name; *query* is part of a name or a slug.

    Raises:
        Forbidden: the actor is not a reviewer.
    """
    require_reviewer(actor, "see every person")
    people = Person.objects.all()
    if query:
        people = people.filter(Q(name__icontains=query) | Q(slug__icontains=query))
    return Page.of(people.order_by("name", "pk"), page, page_size)


def organizations_of(people: Iterable[Person]) -> dict[int, tuple[str, int]]:
    """Return one company of each person, the first that was listed, and the number of the others."""
    keys = [person.pk for person in people]
    # An index answers it alone: a person can sit in thousands of teams, whose names are not read.
    by_person = Position.objects.filter(person__in=keys).values_list("person").order_by("person")
    counts = list(by_person.annotate(first=Min("company"), total=Count("company", distinct=True)))
    firsts = Company.objects.filter(pk__in=[first for _, first, _ in counts])
    names = dict(firsts.values_list("pk", "name"))
    organizations = dict.fromkeys(keys, ("", 0))
    for person, first, total in counts:
        organizations[person] = (names[first], total - 1)
    return organizations


def person_history(actor: Actor, slug: str) -> list[HistoryEntry]:
    """
    Return the latest entries in the history of a person.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
    """
    require_reviewer(actor, "see every person")
    return history.read_page(HistoryEntry.objects.filter(person=find_person(slug)), 1, SHOWN, with_values=False).items


def correct_person(actor: Actor, slug: str, change: ProfileChange) -> ProfileUpdate:
    """
    Change a profile as a reviewer; the change is public at once and in the person's history.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
        BadFields: a value is invalid.
    """
    require_reviewer(actor, "correct people")
    edit = read_fields(change, settings.SCHEMA.profile_change, HINT)
    with transaction.atomic():
        person = find_person(slug, lock=True)
        difference = compare_profile(person, edit, actor)
        if difference:
            difference.write_columns(person)
            write_profile(actor, person, "corrected", difference.before, difference.after)
            detail = {"fields": sorted(difference.after)}
            record(Event.PERSON_CORRECTED, actor=actor, subject=f"people/{person.slug}", detail=detail)
        return ProfileUpdate(person, list(difference.after), difference.to_wire())


def unlist_person(actor: Actor, slug: str, note: str) -> Person:
    """
    Remove a profile from everything public; companies keep the name without a link. Repeating it succeeds.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
        NoteMissing: the note is empty.
    """
    require_reviewer(actor, "unlist people")
    reason = require_note(note, "Say why: the person can then respond.")
    return _set_unlisted(actor, slug, UnlistedBy.REVIEWER, reason)


def relist_person(actor: Actor, slug: str, note: str = "") -> Person:
    """
    Publish a profile again that a reviewer unlisted. Repeating it succeeds.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
        Conflict: the person unlisted it.
    """
    require_reviewer(actor, "relist people")
    return _set_unlisted(actor, slug, "", note.strip())


def _set_unlisted(actor: Actor, slug: str, by: str, note: str) -> Person:
    with transaction.atomic():
        person = find_person(slug, lock=True)
        if not by and person.unlisted_by == UnlistedBy.OWNER:
            raise Conflict("The person unlisted this profile.", "Only they can publish it again.")
        if person.unlisted_by == by:
            return person
        person.unlisted_by = by
        subject = f"people/{person.slug}"
        if by:
            write_profile(actor, person, "unlisted", {"state": "published"}, {"state": "unlisted"})
            record(Event.UNLISTED, actor=actor, subject=subject)
        else:
            provenance.reviewed(person)
            write_profile(actor, person, "relisted", {"state": "unlisted"}, {"state": "published"})
            record(Event.RELISTED, actor=actor, subject=subject)
        _tell(person, note, is_unlisted=bool(by))
        return person


def _tell(person: Person, note: str, *, is_unlisted: bool) -> None:
    """Notify the account of a profile of what a reviewer did."""
    if person.account is None:
        return
    address, name = person.account.email, person.name
    with in_language_of(person.account):
        if is_unlisted:
            subject = gettext("Your profile was unlisted")
            sentence = gettext("A reviewer unlisted the profile %(name)s. It is no longer public.")
        else:
            subject = gettext("Your profile is public again")
            sentence = gettext("A reviewer published the profile %(name)s again.")
        text = "\n\n".join(filter(None, (sentence % {"name": name}, note)))
        outgoing.send(address, subject, f"{text}\n")


def merge_people(actor: Actor, slug: str, into: str) -> Person:
    """
    Merge the person *slug* into the person *into*, who gets the positions, the history, and what *into* lacks.

    Imports and positions that name *slug* mean *into* from then on.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has one of the slugs.
        BadRequest: the two are the same.
        Conflict: both belong to an account.
    """
    require_reviewer(actor, "merge people")
    if slug == into:
        raise BadRequest("A person cannot be merged into themselves.", "Give the slugs of two people.")
    with transaction.atomic():
        keys = [find_person(each).pk for each in (slug, into)]
        # In the order of their keys, so that two merges cannot wait for each other.
        list(Person.objects.select_for_update().filter(pk__in=keys).order_by("pk"))
        merged, kept = (find_person(each) for each in (slug, into))  # as they are once they are locked
        if merged.account_id and kept.account_id:
            raise Conflict("Both people belong to an account.", "Unlink one of them first.")
        named = list(Company.objects.filter(positions__person=merged).distinct().order_by("pk"))
        before = {company.pk: team_of(company.slug) for company in named}
        companies = _move_positions(merged, kept)
        Petition.objects.filter(person=merged, decision="").delete()
        for model in (HistoryEntry, Petition, MergedPerson, PositionRequest):
            model._default_manager.filter(person=merged).update(person=kept)  # noqa: SLF001 - Django's public name
        MergedPerson.objects.create(slug=merged.slug, person=kept)
        _take_over(merged, kept)
        history.entry(actor, "merged", before={}, after={}, person=kept).save()
        for company in Company.objects.filter(pk__in=companies).order_by("pk"):
            company.version += 1
            company.updated_at = kept.updated_at
            company.save(update_fields=["version", "updated_at"])
            teams = {"before": {"positions": before[company.pk]}, "after": {"positions": team_of(company.slug)}}
            history.entry(actor, history.MERGED, company=company, **teams).save()
        publish(AffectedRows().company(*companies).person(merged.pk, kept.pk))
        record(Event.PEOPLE_MERGED, actor=actor, subject=f"people/{kept.slug}", detail={"merged": slug})
        merged.delete()
        return kept


def _take_over(merged: Person, kept: Person) -> None:
    """Move the account of *merged* to *kept*, with the facts that it lacks."""
    account_id = merged.account_id or kept.account_id
    listed = kept.listed or merged.listed
    # First, because an account has one profile.
    merged.account_id, merged.listed = None, False
    merged.save(update_fields=["account", "listed"])
    kept.account_id, kept.listed = account_id, listed
    # A profile that was taken down does not become public by a merge.
    kept.unlisted_by = kept.unlisted_by or merged.unlisted_by
    texts = [] if kept.bio else ["bio"]
    provenance.merged(kept, merged, texts, merged.extra.keys() - kept.extra.keys())
    kept.bio = kept.bio or merged.bio
    kept.extra = {**merged.extra, **kept.extra}
    kept.version += 1
    kept.updated_at = now()
    kept.save()


def _move_positions(merged: Person, kept: Person) -> list[int]:
    """Move the positions of *merged* that *kept* lacks, and return the companies, by primary key."""
    there = set(Position.objects.filter(person=kept).values_list("company_id", "title"))
    companies = []
    for position in Position.objects.filter(person=merged).order_by("company_id", "rank"):
        companies.append(position.company_id)
        if (position.company_id, position.title) in there:
            position.delete()
        else:
            position.person = kept
            position.save(update_fields=["person"])
    return list(dict.fromkeys(companies))
