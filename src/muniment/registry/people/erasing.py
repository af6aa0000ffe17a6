"""
Erase a person: everything that the registry stores about them as data, in one transaction.

What remains are keyed digests (:mod:`muniment.registry.people.suppression`), the last entry of the change feed for 30
days, and texts that name the person, which are listed for the operator. Features with texts of their own add their
tables to :data:`TEXTS` when they are loaded.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import msgspec
from django.db import models, transaction
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from muniment import config
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import forget_person, record
from muniment.jobs import handlers
from muniment.jobs.models import Job, Step
from muniment.jobs.models import State as JobState
from muniment.jobs.queue import enqueue
from muniment.kernel.actor import SYSTEM, Actor
from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import NotFound
from muniment.registry import history
from muniment.registry.company.access import require_reviewer
from muniment.registry.fields import JSONText, Text
from muniment.registry.history import without_rows
from muniment.registry.imports.reports import ErasedPerson, forget_in_reports
from muniment.registry.models import (
    CapTableEntry,
    Company,
    Framework,
    FrameworkSpecification,
    FundingRound,
    GivenSlug,
    HistoryEntry,
    ItemChecks,
    PendingChange,
    Person,
    Petition,
    Picture,
    Position,
    Proposal,
    SavedReply,
)
from muniment.registry.people import naming, suppression
from muniment.registry.people.suppression import folded
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry.publishing.redaction import (
    compact_database,
    compact_if_sparse,
    overwrite_deleted,
    redact_feed,
    replace_due_tombstones,
)
from muniment.scrub import instance as scrub

ERASURE_JOB: Final = "registry.person_erased"
"""The job that leaves nothing deleted in the files of the database."""
_PICTURE: Final = re.compile(r"/pictures/([0-9a-f]{32})-")
log = logging.getLogger(__name__)


class Mention(NamedTuple):
    """
    A text that names a person.

    Args:
        what: the kind of thing, for example ``company`` or ``document``.
        where: what identifies it.
        field: the column of the text.
        address: the page where it can be changed; empty if there is none.
    """

    what: str
    where: str
    field: str
    address: str


class Searched(NamedTuple):
    """
    A table with texts.

    Args:
        where: returns what identifies a row, and the address of its page.
        related: the relations that *where* reads.
        besides: columns that are not searched.
    """

    model: type[models.Model]
    what: str
    where: Callable[[Any], tuple[str, str]]
    related: tuple[str, ...] = ()
    besides: frozenset[str] = frozenset()


def _company(row: Company) -> tuple[str, str]:
    return row.slug, f"/review/companies/{row.slug}"


def _of_company(row: Any) -> tuple[str, str]:
    return _company(row.company)


def _person(row: Person) -> tuple[str, str]:
    return row.slug, f"/review/people/{row.slug}"


def _framework(row: Framework) -> tuple[str, str]:
    return row.slug, f"/review/frameworks/{row.slug}"


def _subject(row: Any) -> tuple[str, str]:
    """Return the subject of a history entry or a request."""
    if row.company is not None:
        return _company(row.company)
    if row.person is not None:
        return _person(row.person)
    framework = getattr(row, "framework", None)
    return _framework(framework) if framework else ("", "")


TEXTS: Final[list[Searched]] = [
    Searched(Company, "company", _company, besides=frozenset({"slug"})),
    Searched(Position, "position", _of_company, ("company",)),
    Searched(Proposal, "proposal", _of_company, ("company",)),
    Searched(CapTableEntry, "token holder", _of_company, ("company",)),
    Searched(FundingRound, "funding round", _of_company, ("company",)),
    Searched(Person, "person", _person, besides=frozenset({"slug", "document_id"})),
    Searched(Framework, "framework", _framework, besides=frozenset({"slug"})),
    Searched(FrameworkSpecification, "specification", lambda row: _framework(row.framework), ("framework",)),
    Searched(HistoryEntry, "history", _subject, ("company", "person", "framework")),
    Searched(PendingChange, "pending change", _of_company, ("company",)),
    Searched(Petition, "request", _subject, ("company", "person")),
    Searched(SavedReply, "saved reply", lambda row: (row.title, f"/review/replies/{row.pk}")),
    Searched(ItemChecks, "checks of an item", lambda row: (row.subject, "/review")),
]


def find_mentions(*texts: str, besides: Person | None = None) -> list[Mention]:
    """Return the texts that contain one of *texts*, in any case; the profile of *besides* is left out."""
    spellings: set[str] = set()
    for text in texts:
        if text:
            # Columns of JSON have some characters of a text as escapes.
            spellings |= {text, msgspec.json.encode(text).decode()[1:-1]}
    mentions: dict[Mention, None] = {}
    for table in TEXTS:
        for column in _columns(table):
            for row in _rows(table, column, spellings):
                if besides is None or not _is_of(row, besides):
                    where, address = table.where(row)
                    mentions[Mention(table.what, where, column, address)] = None
    return list(mentions)


def _is_of(row: models.Model, person: Person) -> bool:
    return row == person or getattr(row, "person_id", None) == person.pk


def _columns(table: Searched) -> Iterator[str]:
    for column in table.model._meta.concrete_fields:  # noqa: SLF001 - documented by Django
        if isinstance(column, Text | JSONText) and column.name not in table.besides:
            yield column.name


def _rows(table: Searched, field: str, spellings: set[str]) -> Iterator[models.Model]:
    # As plain text: a JSON column would compare with the encoded form of the whole value.
    rows = table.model._default_manager.annotate(searched=Cast(field, TextField()))  # noqa: SLF001 - Django's public name
    contains = Q(pk__in=[])
    for text in spellings:
        contains |= Q(searched__icontains=text)
    return rows.filter(contains).select_related(*table.related).order_by("pk").iterator()


class Named(NamedTuple):
    """A person as positions name them."""

    slug: str
    name: str

    def is_in(self, position: Any) -> bool:
        """Return whether a JSON value is a position of this person, by slug, or by name where there is no slug."""
        person = position.get("person") if isinstance(position, dict) else None
        if not isinstance(person, dict):
            return False
        slug, name = person.get("slug"), person.get("name")
        if slug:
            return bool(slug == self.slug)
        return isinstance(name, str) and folded(name) == folded(self.name)


def without(value: Any, person: Named) -> Any:
    """Return a JSON value without the positions of a person."""
    if isinstance(value, dict):
        members = {name: member for name, member in value.items() if not person.is_in(member)}
        return {name: without(member, person) for name, member in members.items()}
    if isinstance(value, list):
        items = [item for item in value if not person.is_in(item)]
        return [without(item, person) for item in items]
    return value


def remove_from_values(person: Named, companies: Collection[int]) -> set[int]:
    """
    Remove a person's positions from the history and from requests, in the caller's transaction.

    Args:
        companies: those that have positions of the person, by primary key.

    Returns:
        These and the companies whose values named the person by slug. Their values may also have the name alone.
    """
    named = set(companies)
    for model, columns in history.VALUE_COLUMNS:
        for row in history.rows_naming(model, columns, person.slug).filter(company__isnull=False):
            named.add(row.company_id)
            _clean(row, columns, person)
    # By name only in these companies: elsewhere, the name may be another person's.
    for model, columns in history.VALUE_COLUMNS:
        for row in history.rows_naming(model, columns, person.name).filter(company__in=named):
            _clean(row, columns, person)
    return named


def _clean(row: Any, columns: tuple[str, ...], person: Named) -> None:
    values = {column: without(getattr(row, column), person) for column in columns}
    if isinstance(row, HistoryEntry):
        values = _without_unchanged(row, values["before"], values["after"])
    type(row)._default_manager.filter(pk=row.pk).update(**values)  # noqa: SLF001 - Django's public name


def _without_unchanged(entry: HistoryEntry, before: JSONObject, after: JSONObject) -> JSONObject:
    """Return the columns of *entry* without the fields that are now the same before and after."""
    parts = dict(entry.parts or {})
    for name, part in parts.items():
        if "from" in part:  # that of a list: it has the places of the rows that were just removed
            all_ids = _ids_of_rows(name, entry.before, entry.after)
            ids_left = _ids_of_rows(name, before, after)
            parts[name] = without_rows(part, all_ids - ids_left)
    for name in list(before):
        is_unchanged = name in after and before[name] == after[name]
        if is_unchanged and not any(parts.get(name, {}).values()):
            del before[name], after[name]
            parts.pop(name, None)
    changed = [name for name in entry.changed if name in after or name in before]
    return {"before": before, "after": after, "parts": parts or None, "changed": changed}


def _ids_of_rows(name: str, before: JSONObject, after: JSONObject) -> set[str]:
    return {row["id"] for row in (*before[name], *after[name])}


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
            named = Company.objects.filter(positions__in=naming.positions_of(person)).distinct().order_by("slug")
            return Erasure(
                list(named.values_list("slug", flat=True)),
                find_mentions(person.name, person.slug, besides=person),
                account,
            )
        name = person.name
        companies = _erase(actor, person)
        enqueue(ERASURE_JOB)
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


def _erase(actor: Actor, person: Person, *, has_own_name: bool = True) -> list[str]:
    """
    Erase a person, and return the slugs of the companies that named them.

    Rows of the source go in :func:`_remove_traces`; documents by ``publish``; the feed, the public log and deliveries
    of webhooks by ``redact_feed``, and what follows the feed (exports, tables, nodes, mirrors) after it. Older backups
    still hold the person, until a restore erases each person on the suppression list beside them.

    Args:
        has_own_name: what mentions the name alone is about the person.
    """
    overwrite_deleted()
    key = suppression.keys_in_use()[0]
    digest = key.slug(person.slug)
    named = _remove_traces(actor, person, key, has_own_name=has_own_name)
    detail = {"slugDigest": digest, "companies": [company.slug for company in named[:20]]}
    record(Event.PERSON_ERASED, actor=actor, detail=detail)
    person.listed = False
    person.save(update_fields=["listed"])
    # In this order: the document has to be gone before the feed forgets the slug, because the entry that says so is
    # redacted with the others; and the row has to exist until then, because publishing reads it.
    publish(AffectedRows().company(*(company.pk for company in named)).person(person.pk))
    for merged in person.merged.all():
        redact_feed("person", merged.slug)
    redact_feed("person", person.slug)
    person.delete()
    return [company.slug for company in named]


def erase_profile(person: Person) -> None:
    """Erase a profile that was never public, with the account that it belongs to, in the caller's transaction."""
    made = HistoryEntry.objects.filter(person=person, action="created", account=person.account)
    # An account that makes a profile gives it any name, such as that of a company.
    _erase(SYSTEM, person, has_own_name=not made.exists())


def _remove_traces(
    actor: Actor, person: Person, key: suppression.SuppressionKey, *, has_own_name: bool = True
) -> list[Company]:
    """Remove everything but the person's own row, put the person on the suppression list, and return the companies."""
    slug, name = person.slug, person.name
    positions = list(naming.positions_of(person).values_list("pk", flat=True))
    named = list(Company.objects.filter(positions__in=positions).distinct().order_by("pk"))
    Position.objects.filter(pk__in=positions).delete()
    all_slugs = (slug, *person.merged.values_list("slug", flat=True))
    companies = {company.pk for company in named}
    for person_slug in all_slugs:
        companies |= remove_from_values(Named(person_slug, name), companies)
    erased = ErasedPerson(all_slugs, name if has_own_name else "")
    forget_in_reports(person.pk, erased)
    company_slugs = Company.objects.filter(pk__in=companies).values_list("slug", flat=True)
    suppression.suppress(key, all_slugs, person.document_id, name, company_slugs)
    forget_person(all_slugs)
    for person_slug in all_slugs:
        scrub.forget(f"people/{person_slug}")
    # The suppression list keeps the slugs from being given again; the table of given slugs has them in plain text.
    GivenSlug.objects.filter(kind="person", slug__in=all_slugs).delete()
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
    suppressions = suppression.Suppressions(keys)
    if not suppressions:
        return 0
    erased = 0
    for person in list(Person.objects.select_related("account")):
        if not suppressions.has_person(person.slug, person.document_id):
            continue
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


handlers.register(handlers.Handler(kind=ERASURE_JOB, work=lambda _: compact_database(), lease_s=600))
handlers.register(
    handlers.Handler(kind="registry.tombstones_due", work=lambda _: replace_due_tombstones()), every_s=3_600
)
handlers.register(
    handlers.Handler(kind="registry.file_sparse", work=lambda _: compact_if_sparse(), lease_s=600), every_s=3_600
)
