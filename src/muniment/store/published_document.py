"""A finished public document, and a change to one, as publishers write them and nodes copy them."""

from typing import Final, Literal

import msgspec

from muniment.store.search.text_index import SearchTexts

Kind = Literal["company", "person", "framework"]
Change = Literal["published", "updated", "unlisted"]

KINDS: Final[tuple[Kind, ...]] = ("company", "person", "framework")


class PublishedDocument(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """
    A finished public document.

    Nodes of former versions read it from PostgreSQL: there, fields keep their types, and unknown values are left out.

    Args:
        kind: ``company``, ``person`` or ``framework``.
        position: unique order within the kind, ``listed_day << 40 | publication_number``; the day is a proleptic
            ordinal, 0 when unknown and for kinds without dates.
        item: the JSON object in lists.
        body: the whole response of the detail endpoint.
        updated_at: the time in the format of :func:`muniment.kernel.wire.timestamp`.
        provenance: the origin of its text and the day, such as ``reviewed 2026-11-22``; no part of the body.
        name: the display name, which ``sort=name`` orders by.
        facets: the document's values for each filter.
        texts: search texts by weight: symbol, slug, domain and handles; description; body.
        search: further search texts.
        treasury_minor: minor units that count towards the registry's total; None if unknown.
        team_size: the team size of a company, if it is known.
        company_count: the number of companies in which a person has a position.
        raising: whether a funding round is open.
        schema: on PostgreSQL, that of the version which rendered it; 0 if that version did not say so.
        modified_at: the stamp of the last change of the body, as :mod:`muniment.kernel.http.representations`.
    """

    kind: str
    key: str
    position: int
    item: bytes
    body: bytes
    updated_at: str
    name: str
    provenance: str = ""
    facets: dict[str, tuple[str, ...]] = {}
    texts: tuple[str, str, str] = ("", "", "")
    search: SearchTexts = SearchTexts()
    treasury_minor: int | None = None
    team_size: int | None = None
    company_count: int | None = None
    raising: bool = False
    schema: int = 0
    modified_at: str = ""


class PublishedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """
    One change to a document, with its dense sequence number. No document if unlisted.

    Args:
        fields: the members that an update changed; None where they are unknown, or the change is no update.
    """

    sequence: int
    kind: str
    key: str
    change: str
    at: str
    document: PublishedDocument | None = None
    fields: tuple[str, ...] | None = None
