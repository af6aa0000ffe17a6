"""
Find where texts name a person, for the operator to decide after an erasure.

Features with texts of their own add their tables to :data:`TEXTS` when they are loaded.
"""

from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple

import msgspec
from django.db import models
from django.db.models import Q, TextField
from django.db.models.functions import Cast

from muniment.registry.fields import JSONText, Text
from muniment.registry.models import (
    CapTableEntry,
    Company,
    Framework,
    FrameworkSpecification,
    FundingRound,
    HistoryEntry,
    ItemChecks,
    PendingChange,
    Person,
    Petition,
    Position,
    Proposal,
    SavedReply,
)


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
    framework = getattr(row, "framework", None)
    return _person(row.person) if row.person is not None else _framework(framework) if framework else ("", "")


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
    wanted = {term for text in texts for term in (text, msgspec.json.encode(text).decode()[1:-1]) if term}
    found: dict[Mention, None] = {}
    for table in TEXTS:
        for field in _columns(table):
            for row in _rows(table, field, wanted):
                if besides is None or not _is_of(row, besides):
                    found[Mention(table.what, *_labelled(table, row, field))] = None
    return list(found)


def _labelled(table: Searched, row: models.Model, field: str) -> tuple[str, str, str]:
    where, address = table.where(row)
    return where, field, address


def _is_of(row: models.Model, person: Person) -> bool:
    return row == person or getattr(row, "person_id", None) == person.pk


def _columns(table: Searched) -> Iterator[str]:
    for field in table.model._meta.concrete_fields:  # noqa: SLF001 - documented by Django
        if isinstance(field, Text | JSONText) and field.name not in table.besides:
            yield field.name


def _rows(table: Searched, field: str, wanted: set[str]) -> Iterator[models.Model]:
    # As plain text: a JSON column would compare with the encoded form of the whole value.
    rows = table.model._default_manager.annotate(searched=Cast(field, TextField()))  # noqa: SLF001 - Django's public name
    contains = Q(pk__in=[])
    for text in wanted:
        contains |= Q(searched__icontains=text)
    return rows.filter(contains).select_related(*table.related).order_by("pk").iterator()
