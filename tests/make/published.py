"""Fictional published documents, made without a database."""

import json
import sqlite3
from collections.abc import Iterable
from pathlib import Path

from muniment.schema.objects import Schema, registry_schema
from muniment.schema.places import places_of
from muniment.store import published
from muniment.store.lists.highlights import PLACED, VOTES_END
from muniment.store.lists.scores import written
from muniment.store.published_document import PublishedDocument, PublishedEntry
from muniment.store.reader import ListPage, Reader
from muniment.store.search.text_index import SearchTexts
from muniment.store.search.values import KEY
from muniment.store.search_text import SITE, SYMBOL, host_of, marked
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables

AT = "2026-01-01T00:00:00.000000Z"
MARK = "imported 2026-01-01"


def company(number: int, key: str = "", *, day: int = 0, description: str = "", **members) -> PublishedDocument:
    """Make company *number*; *members*, by wire name, override its defaults."""
    key = key or f"company-{number}"
    record = {
        "id": key,
        "name": f"Company {number}",
        "status": "active",
        "type": "corporation",
        "industry": "Software",
        "themes": ["open"],
        "raising": False,
        "updatedAt": AT,
        "createdAt": "March 2024",
        "body": None,
        "socials": None,
        "address": None,
        **({"description": description} if description else {}),
        **members,
    }
    data = {"company": record, "distribution": None, "proposals": [], "positions": [], "capTable": []}
    data |= {name: record.pop(name, []) for name in ("capTable", "proposals", "fundingRounds", "positions")}
    countries = [each["country"] for each in record["address"] or () if each.get("country")]
    places = places_of(record["address"] or ())
    ends = {each["endDate"] for each in data["proposals"] if each["status"] == "active"}
    return PublishedDocument(
        kind="company",
        key=key,
        position=day << 40 | number,
        item=json.dumps(record, ensure_ascii=False, separators=(",", ":")).encode(),
        body=json.dumps({"data": data}, ensure_ascii=False, separators=(",", ":")).encode(),
        updated_at=record["updatedAt"],
        provenance=MARK,
        name=record["name"],
        facets={
            "status": (record["status"],),
            "type": (record["type"],),
            "industry": (record["industry"],),
            "theme": tuple(record["themes"]),
            "hasToken": ("true" if "symbol" in record else "false",),
            "raising": ("true" if record["raising"] else "false",),
            **{f"score.{each['frameworkId']}": (written(each["score"]),) for each in record.get("assessments", ())},
            "hasCapTable": ("true" if data["capTable"] else "false",),
            "country": tuple(countries),
            "state": tuple(place.state for place in places if place.state),
            f"state{KEY}": tuple(dict.fromkeys(code for place in places for code in place.codes)),
            **({PLACED: ("true" if countries else "false",)} if record["address"] else {}),
            "city": tuple(each["city"] for each in record["address"] or () if each.get("city")),
            VOTES_END: tuple(sorted(ends)),
        },
        texts=(
            " ".join((record["name"], record.get("symbol", ""), key)),
            record.get("description", ""),
            record["body"] or "",
        ),
        search=SearchTexts(
            keys=(*marked(SYMBOL, [record.get("symbol", "")]), *marked(SITE, [host_of(record.get("website", ""))])),
            themes="\n".join((*record["themes"], record["type"], record["industry"])),
            place="\n".join(each.get("city", "") for each in record["address"] or ()),
            former=tuple(each["name"] for each in record.get("formerNames", ())),
        ),
        treasury_minor=members.get("treasuryMinor", 100),
        team_size=record.get("teamSize"),
        raising=record["raising"],
    )


def person(
    number: int, key: str = "", *, name: str = "", bio: str | None = None, positions: tuple[tuple[str, str], ...] = ()
) -> PublishedDocument:
    """Make person *number* with *positions*, each a title and the slug of a company."""
    key = key or f"person-{number}"
    record = {
        "documentId": f"doc{number}",
        "name": name or f"Person {number}",
        "slug": key,
        "bio": bio,
        "updatedAt": AT,
    }
    return PublishedDocument(
        kind="person",
        key=key,
        position=number,
        item=json.dumps(
            {**record, "companyCount": len({slug for _, slug in positions})}, ensure_ascii=False, separators=(",", ":")
        ).encode(),
        body=json.dumps(
            {"data": {**record, "positions": [_position(*each) for each in positions]}},
            ensure_ascii=False,
            separators=(",", ":"),
        ).encode(),
        updated_at=AT,
        provenance=MARK,
        name=record["name"],
        facets={
            "title": tuple(title for title, _ in positions),
            "company": tuple(slug.replace("-", " ").capitalize() for _, slug in positions),
            "company.key": tuple(slug for _, slug in positions),
        },
        texts=(f"{record['name']} {key}", "", bio or ""),
        company_count=len({slug for _, slug in positions}),
    )


def _position(title: str, slug: str) -> dict[str, object]:
    return {"title": title, "company": {"id": slug, "slug": slug, "name": slug.replace("-", " ").capitalize()}}


def framework(
    number: int, key: str = "", *, kind: str = "score", name: str = "", description: str = "", **members
) -> PublishedDocument:
    """Make framework *number* without a specification; *members*, by wire name, are those of the single item."""
    key = key or f"framework-{number}"
    record = {
        "frameworkId": key,
        "frameworkName": name or f"Framework {number}",
        "description": description,
        "kind": kind,
        "isOpen": False,
        "company": None,
        "updatedAt": AT,
    }
    return PublishedDocument(
        kind="framework",
        key=key,
        position=number,
        item=json.dumps(record, separators=(",", ":")).encode(),
        body=json.dumps({"data": {**record, "companyDescription": "", **members}}, separators=(",", ":")).encode(),
        updated_at=AT,
        provenance=MARK,
        name=record["frameworkName"],
        facets={"kind": (kind,), "isOpen": ("false",)},
        texts=(key, description, ""),
    )


class Publisher:
    """Publishes documents into a file, one transaction per call."""

    def __init__(self, path: Path) -> None:
        self.connection = sqlite3.connect(path, isolation_level=None)
        self.connection.execute("PRAGMA journal_mode=WAL")
        self.connection.execute("PRAGMA synchronous=OFF")
        self.connection.execute("BEGIN IMMEDIATE")
        published.create(self.connection)
        self.connection.execute("COMMIT")
        self.known: set[tuple[str, str]] = set()

    def publish(self, *documents: PublishedDocument, at: str = AT, fields: tuple[str, ...] | None = None) -> int:
        """Publish or update documents and return the edition; *fields* are what the updates changed."""
        return self._write(((document.kind, document.key, document, at) for document in documents), fields)

    def unlist(self, kind: str, *keys: str, at: str = AT) -> int:
        """Unlist documents and return the edition."""
        return self._write((kind, key, None, at) for key in keys)

    def _write(
        self,
        changes: Iterable[tuple[str, str, PublishedDocument | None, str]],
        fields: tuple[str, ...] | None = None,
    ) -> int:
        changes = list(changes)
        self.connection.execute("BEGIN IMMEDIATE")
        first = published.reserve(self.connection, len(changes))
        entries = []
        for sequence, (kind, key, document, at) in enumerate(changes, first):
            change = "unlisted" if document is None else "updated" if (kind, key) in self.known else "published"
            (self.known.discard if document is None else self.known.add)((kind, key))
            entries.append(
                PublishedEntry(
                    sequence=sequence, kind=kind, key=key, change=change, at=at, document=document, fields=fields
                )
            )
        published.apply(self.connection, entries)
        self.connection.execute("COMMIT")
        return first + len(changes) - 1

    def close(self) -> None:
        self.connection.close()


def follow(reader: Reader, schema: Schema | None = None) -> None:
    """Make the tables of what *reader* reads, and leave them as they are."""
    tables = Tables(reader.path.with_name(FILE_NAME), reader, schema or registry_schema("USD"))
    tables.follow()
    tables.close()


def ids(page: ListPage) -> list[str]:
    """Return the slugs or ids of the items on *page*."""
    return [json.loads(item).get("id") or json.loads(item)["slug"] for item in page.items]
