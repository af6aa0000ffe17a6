"""
Rows become the public documents of the contract: order of keys, absent values, additions. Pure.

The contract's keys come first, in its order, then our additions (``raising``, ``updatedAt``), then what
open objects add, in sorted order.

Source: service document, Resources; decisions, section 2, absent values.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

import msgspec

from muniment.kernel.wire import format_money, month_and_year, timestamp
from muniment.registry.exchange.rows import RoundRow
from muniment.store.published import PublishedDocument

_encode = msgspec.json.Encoder().encode


@dataclass(slots=True)
class CompanyView:
    """What a company's documents are made of. ``proposals`` and ``cap_table`` are finished JSON."""

    columns: dict[str, Any]
    positions: list["PlaceView"] = field(default_factory=list)
    proposals: list[msgspec.Raw] = field(default_factory=list)
    cap_table: list[msgspec.Raw] = field(default_factory=list)
    rounds: list[RoundRow] = field(default_factory=list)

    @property
    def raising(self) -> bool:
        """Tell whether a funding round is open."""
        return any(each.closed_on is None for each in self.rounds)


@dataclass(slots=True)
class PlaceView:
    """One position with both of its ends; the end that shows it is left out of what it shows."""

    title: str | None
    extra: dict[str, Any]
    person_slug: str = ""
    person_name: str = ""
    company: dict[str, Any] | None = None


def position_of(listed_on: date | None, publication_number: int) -> int:
    """Give the place in the order of a kind: by listing date, and within it by publication."""
    return (listed_on.toordinal() if listed_on else 0) << 40 | publication_number


def company_reference(columns: dict[str, Any]) -> dict[str, Any]:
    """Give a company as people and frameworks refer to it."""
    slug = columns["slug"]
    return {
        "id": slug,
        "name": columns["name"],
        "slug": slug,
        **{key: columns[key] for key in ("symbol", "icon") if columns[key]},
    }


def company_object(view: CompanyView, currency: str) -> dict[str, Any]:
    """Give the contract's Company."""
    row = view.columns
    treasury = row["treasury_minor"]
    team_size = len(view.positions) or row["team_size"]
    listed_on = row["listed_on"]
    shown = {
        "id": row["slug"],
        "name": row["name"],
        "symbol": row["symbol"] or None,
        "teamSize": team_size,
        "treasury": None if treasury is None else format_money(treasury, currency),
        "status": row["status"] or None,
        "type": row["type"] or None,
        "industry": row["industry"] or None,
        "orgKind": row["org_kind"] or None,
        "themes": row["themes"],
        "description": row["description"] or None,
    }
    later = {
        "website": row["website"] or None,
        "dao_website": row["dao_website"] or None,
        "createdAt": month_and_year(listed_on) if listed_on else None,
        "icon": row["icon"] or None,
    }
    return {
        **{key: value for key, value in shown.items() if value is not None},
        "body": row["body"] or None,
        **{key: value for key, value in later.items() if value is not None},
        "socials": row["socials"],
        "address": row["address"],
        "raising": view.raising,
        "updatedAt": timestamp(row["updated_at"]),
        **_sorted(row["extra"]),
    }


def company_bundle(view: CompanyView, company: Any) -> dict[str, Any]:
    """Give what the detail endpoint answers as ``data``. *company* is the finished object."""
    return {
        "company": company,
        "distribution": view.columns["distribution"],
        "proposals": view.proposals,
        "positions": [position_in_company(place) for place in view.positions],
        "capTable": view.cap_table,
    }


def position_in_company(place: PlaceView) -> dict[str, Any]:
    """Give the contract's Position."""
    further = place.extra.get("person")
    person = {"name": place.person_name, "slug": place.person_slug, **(_sorted(further) if further else {})}
    return _place(place, {"person": person})


def _place(place: PlaceView, other_end: dict[str, Any]) -> dict[str, Any]:
    title = {} if place.title is None else {"title": place.title}
    extra = place.extra
    return {**title, **other_end, **({key: extra[key] for key in sorted(extra) if key != "person"} if extra else {})}


def company_document(view: CompanyView, currency: str) -> PublishedDocument:
    """Render a company."""
    row = view.columns
    item = _encode(company_object(view, currency))
    facets = {
        "status": _values(row["status"]),
        "type": _values(row["type"]),
        "industry": _values(row["industry"]),
        "theme": tuple(row["themes"] or ()),
        "hasToken": ("true" if row["symbol"] else "false",),
        "raising": ("true" if view.raising else "false",),
    }
    summary = "\n".join(filter(None, (row["description"], *(row["themes"] or ()), row["type"], row["industry"])))
    return PublishedDocument(
        kind="company",
        key=row["slug"],
        position=position_of(row["listed_on"], row["publication_number"]),
        item=item,
        body=_encode({"data": company_bundle(view, msgspec.Raw(item))}),
        updated_at=timestamp(row["updated_at"]),
        name=row["name"],
        facets={name: values for name, values in facets.items() if values},
        texts=(f"{row['symbol']} {row['slug']}".strip(), summary, row["body"]),
        treasury_minor=row["treasury_minor"] or 0,
        raising=view.raising,
    )


def _values(text: str) -> tuple[str, ...]:
    return (text,) if text else ()


def _sorted(extra: dict[str, Any]) -> dict[str, Any]:
    return {key: extra[key] for key in sorted(extra)}


def person_document(columns: dict[str, Any], places: Sequence[PlaceView]) -> PublishedDocument:
    """Render a person with the positions in published companies, which are in the companies' order."""
    head = {
        "documentId": columns["document_id"],
        "name": columns["name"],
        "slug": columns["slug"],
        "bio": columns["bio"] or None,
    }
    tail = {"updatedAt": timestamp(columns["updated_at"]), **_sorted(columns["extra"])}
    companies = [place.company for place in places if place.company]
    count = len({company["id"] for company in companies})
    positions = [_place(place, {"company": place.company}) for place in places]
    summary = "\n".join(filter(None, (*(place.title for place in places), *(each["name"] for each in companies))))
    return PublishedDocument(
        kind="person",
        key=columns["slug"],
        position=position_of(None, columns["publication_number"]),
        item=_encode({**head, "companyCount": count, **tail}),
        body=_encode({"data": {**head, "positions": positions, **tail}}),
        updated_at=timestamp(columns["updated_at"]),
        name=columns["name"],
        texts=(columns["slug"], summary, columns["bio"]),
    )


def framework_document(columns: dict[str, Any], company: dict[str, Any] | None, *, authored: bool) -> PublishedDocument:
    """
    Render a framework.

    Args:
        columns: the framework's row.
        company: the row of the published company behind it, or None.
        authored: whether a specification stands.
    """
    head = {
        "frameworkId": columns["slug"],
        "frameworkName": columns["name"],
        "description": columns["description"],
        "kind": columns["kind"],
        "isOpen": authored and not columns["closed"],
        "company": company_reference(company) if company else None,
    }
    tail = {"updatedAt": timestamp(columns["updated_at"]), **_sorted(columns["extra"])}
    described = {"companyDescription": company["description"] if company else ""}
    return PublishedDocument(
        kind="framework",
        key=columns["slug"],
        position=position_of(None, columns["publication_number"]),
        item=_encode({**head, **tail}),
        body=_encode({"data": {**head, **described, **tail}}),
        updated_at=timestamp(columns["updated_at"]),
        name=columns["name"],
        facets={"kind": (columns["kind"],)},
        texts=(columns["slug"], columns["description"], ""),
    )
