"""People with positions in several organizations, and the organizations that share them."""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import msgspec

from muniment.store.reader import PublishedFile, Reader

_CONNECTED_PEOPLE: Final = (
    # By key: SQLite would walk all people with several positions, whose index is in the order asked for.
    "SELECT d.key FROM published_document AS d INDEXED BY published_document_key"
    " WHERE d.kind = 'person' AND d.key IN (SELECT value FROM json_each(?))"
    " AND d.company_count > 1"
)
_CONNECTED: Final = f"{_CONNECTED_PEOPLE} ORDER BY d.company_count DESC, d.sort_name, d.key"


AT_ONCE: Final = 200
"""Documents of people that are read together; an organization may share any number of people."""


class TiedOrganization(msgspec.Struct, frozen=True):
    """An organization, as the positions of a person name it."""

    name: str
    slug: str = ""
    logo: Any = None


class SharedOrganization(NamedTuple):
    """An organization that shares *people* with another one."""

    organization: TiedOrganization
    people: int


class _Position(msgspec.Struct):
    company: TiedOrganization | None = None


class _Person(msgspec.Struct):
    slug: str
    positions: list[_Position] = []


class _Document(msgspec.Struct):
    data: _Person


_decode = msgspec.json.Decoder(_Document).decode


def others_of(source: Reader, people: Sequence[str], slug: str) -> dict[str, list[TiedOrganization]]:
    """Return the organizations other than *slug* of each of *people*, each once, in the order of their positions."""
    others = {}
    for first in range(0, len(people), AT_ONCE):
        keys = [("person", person) for person in people[first : first + AT_ONCE]]
        for document in source.documents(keys).values():
            person = _decode(document.body).data
            organizations: dict[str, TiedOrganization] = {}
            for position in person.positions:
                company = position.company
                if company and company.slug not in {"", slug}:
                    organizations.setdefault(company.slug, company)
            others[person.slug] = list(organizations.values())
    return others


def shared(others: Mapping[str, Iterable[TiedOrganization]]) -> list[SharedOrganization]:
    """Return the organizations of people, as :func:`others_of` has them, with how many of these people each has."""
    organizations: dict[str, TiedOrganization] = {}
    counts: dict[str, int] = {}
    for held in others.values():
        for organization in held:
            organizations.setdefault(organization.slug, organization)
            counts[organization.slug] = counts.get(organization.slug, 0) + 1
    found = [SharedOrganization(organizations[slug], count) for slug, count in counts.items()]
    return sorted(found, key=lambda each: (-each.people, each.organization.name, each.organization.slug))


def connected(source: PublishedFile, people: Iterable[str]) -> list[str]:
    """Return those of *people*, slugs, with positions in several organizations, in most of them first."""
    slugs = list(people)
    if not slugs:
        return []
    with source.snapshot(*(("person", slug) for slug in slugs)) as (connection, _):
        return _connected(connection, slugs)


def is_any_connected(source: PublishedFile, people: Sequence[str]) -> bool:
    """Return whether one of *people*, slugs, has positions in several organizations."""
    if not people:
        return False
    with source.snapshot(*(("person", slug) for slug in people)) as (connection, _):
        values = (msgspec.json.encode(people).decode(),)
        return connection.execute(f"{_CONNECTED_PEOPLE} LIMIT 1", values).fetchone() is not None


def _connected(connection: sqlite3.Connection, people: list[str]) -> list[str]:
    return [key for (key,) in connection.execute(_CONNECTED, (msgspec.json.encode(people).decode(),))]
