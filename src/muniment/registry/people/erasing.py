"""
Erase a person: everything that the registry stores about them as data, in one transaction.

What remains are keyed digests (:mod:`muniment.registry.people.suppression`), the last entry of the change feed for 30
days, and texts that name the person, which are listed for the operator.
"""

import logging
import re
from dataclasses import dataclass, field
from typing import Final

from django.db import transaction
from django.db.models import TextField
from django.db.models.functions import Cast

from muniment import config
from muniment.accounts.security import retention
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.jobs.models import Job, Step
from muniment.jobs.models import State as JobState
from muniment.jobs.queue import enqueue
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import NotFound
from muniment.registry import history
from muniment.registry.company.access import require_reviewer
from muniment.registry.models import Company, GivenSlug, Person, Picture, Position
from muniment.registry.people import consent, suppression
from muniment.registry.people.mentions import Mention, find_mentions
from muniment.registry.people.traces import Named, remove_from_values
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.publishing.redaction import overwrite_deleted, redact_feed
from muniment.scrub import instance as scrub

ERASED: Final = "registry.person_erased"
"""The job that leaves nothing deleted in the files of the database."""
_PICTURE: Final = re.compile(r"/pictures/([0-9a-f]{32})-")
log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Erasure:
    """
    The result of an erasure, or of its dry run.

    Args:
        companies: the slugs of the companies that had positions of the person.
        mentions: texts that still name the person, for the operator to decide.
        account: the email address of the person's account, which is not deleted; empty if there is none.
        unwritten: folders of backups in which the suppression list could not be written.
    """

    companies: list[str]
    mentions: list[Mention]
    account: str = ""
    unwritten: list[str] = field(default_factory=list)


def erase_person(actor: Actor, slug: str, *, dry_run: bool = False) -> Erasure:
    """
    Erase a person, who does not come back by an import or a restore.

    Args:
        dry_run: return what would remain, and change nothing.

    Raises:
        Forbidden: the actor is not a reviewer.
        NotFound: no person has the slug.
    """
    require_reviewer(actor, "erase people")
    with transaction.atomic():
        person = find_person(slug, lock=True)
        account = str(person.account) if person.account else ""
        if dry_run:
            named = Company.objects.filter(positions__in=consent.positions_of(person)).distinct().order_by("slug")
            return Erasure(
                list(named.values_list("slug", flat=True)),
                find_mentions(person.name, person.slug, besides=person),
                account,
            )
        name = person.name
        companies = _erase(actor, person)
        enqueue(ERASED)
    # After the commit: the search reads every text, and writers need not wait for it.
    return Erasure(companies, find_mentions(name, slug), account, write_suppressions())


def find_person(slug: str, *, lock: bool = False) -> Person:
    """Return a person, public or not; raise NotFound if none has the slug."""
    people = Person.objects.select_for_update(of=("self",)) if lock else Person.objects
    person = people.select_related("account").filter(slug=slug).first()
    if person is None:
        raise NotFound(
            Phrase("No person has the slug {slug!r}.", slug=slug[:200]),
            "GET /api/v1/people lists the slugs of people.",
        )
    return person


def _erase(actor: Actor, person: Person) -> list[str]:
    overwrite_deleted()
    key = suppression.keys_in_use()[0]
    digest = key.slug(person.slug)
    named = _remove_traces(actor, person, key)
    detail = {"slugDigest": digest, "companies": [company.slug for company in named[:20]]}
    record(Event.PERSON_ERASED, actor=actor, detail=detail)
    person.listed = False
    person.save(update_fields=["listed"])
    publish(AffectedRows().company(*(company.pk for company in named)).person(person.pk))
    for each in person.merged.all():
        redact_feed("person", each.slug)
    redact_feed("person", person.slug)
    person.delete()
    return [company.slug for company in named]


def erase_profile(person: Person) -> None:
    """Erase a profile that was never public, with the account that it belongs to, in the caller's transaction."""
    _erase(SYSTEM, person)


def _remove_traces(actor: Actor, person: Person, key: suppression.SuppressionKey) -> list[Company]:
    """Remove everything but the person's own row, put the person on the suppression list, and return the companies."""
    slug, name = person.slug, person.name
    positions = list(consent.positions_of(person).values_list("pk", flat=True))
    named = list(Company.objects.filter(positions__in=positions).distinct().order_by("pk"))
    Position.objects.filter(pk__in=positions).delete()
    former = list(person.merged.values_list("slug", flat=True))
    companies = {company.pk for company in named}
    for each in (slug, *former):
        companies |= remove_from_values(Named(each, name), companies)
    slugs = Company.objects.filter(pk__in=companies).values_list("slug", flat=True)
    suppression.suppress(key, (slug, *former), person.document_id, name, slugs)
    retention.forget_person((slug, *former))
    for each in (slug, *former):
        scrub.forget(f"people/{each}")
    GivenSlug.objects.filter(kind="person", slug__in=[slug, *former]).delete()
    moment = now()
    for company in named:
        company.version += 1
        company.updated_at = moment
        company.save(update_fields=["version", "updated_at"])
        history.entry(actor, "person erased", before={}, after={}, company=company).save()
    _remove_picture(person)
    _remove_steps(slug)
    return named


def _remove_picture(person: Person) -> None:
    """Delete the person's picture, unless a company or another person shows the same file."""
    for digest in _PICTURE.findall(str(person.extra)):
        people = Person.objects.exclude(pk=person.pk).annotate(text=Cast("extra", TextField()))
        if not (
            Company.objects.filter(icon__contains=digest).exists() or people.filter(text__contains=digest).exists()
        ):
            Picture.objects.filter(digest=digest).delete()


def _remove_steps(slug: str) -> None:
    """Delete kept results of finished jobs that contain the slug; they are kept only for a few days anyway."""
    ended = Job.objects.filter(state__in=[JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELED])
    steps = Step.objects.filter(job__in=ended).annotate(text=Cast("output", TextField()))
    Step.objects.filter(pk__in=list(steps.filter(text__contains=slug).values_list("pk", flat=True))).delete()


def erase_suppressed(keys: list[suppression.SuppressionKey]) -> int:
    """
    Erase the people of a restored database who are on the suppression list, before its documents are published.

    Returns:
        How many people were erased.
    """
    overwrite_deleted()
    listed, erased = suppression.Suppressions(keys), 0
    for person in list(Person.objects.select_related("account")) if listed else ():
        if listed.has_person(person.slug, person.document_id):
            _remove_traces(SYSTEM, person, keys[0])
            for slug in (person.slug, *person.merged.values_list("slug", flat=True)):
                redact_feed("person", slug, is_followed=False)
            person.delete()
            erased += 1
    return erased


def write_suppressions() -> list[str]:
    """Write the suppression list into the data folder and beside known backups; return the folders that failed."""
    data, failed = config.current().data, []
    for folder in (data, *suppression.folders_of(data)):
        try:
            suppression.write_beside(folder)
        except OSError as error:
            log.warning("suppression list not written: %s", error)
            failed.append(str(folder))
    return failed
