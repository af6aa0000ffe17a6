"""Positions and funding rounds as the tables hold them, and as JSON."""

from datetime import date
from typing import NamedTuple

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.record import Record


class PositionRow(NamedTuple):
    """A position. ``slug`` is empty for a person who is named only by name; ``extra`` holds additional members."""

    slug: str
    name: str
    title: str | None
    extra: JSONObject
    item_id: str = ""

    @classmethod
    def from_document(cls, document: JSONMapping) -> "PositionRow":
        person = document["person"]
        extra = {key: value for key, value in document.items() if key not in {"id", "title", "person"}}
        if of_person := {key: value for key, value in person.items() if key not in {"name", "slug"}}:
            extra["person"] = of_person
        return cls(person.get("slug", ""), person.get("name", ""), document.get("title"), extra, document.get("id", ""))

    def to_document(self) -> JSONObject:
        person = {"name": self.name, "slug": self.slug, **self.extra.get("person", {})}
        rest = {key: value for key, value in self.extra.items() if key != "person"}
        named = {"id": self.item_id} if self.item_id else {}
        return {**named, **({} if self.title is None else {"title": self.title}), "person": person, **rest}


class RoundRow(NamedTuple):
    """A funding round, open until it has a closing date."""

    name: str
    target_minor: int | None
    opened_on: date | None
    closed_on: date | None
    item_id: str = ""

    @classmethod
    def from_document(cls, document: JSONMapping, record: Record) -> "RoundRow":
        """Return the row of a funding round that the schema has read."""
        columns = record.columns(document)
        return cls(*(columns[name] for name in cls._fields))

    def to_document(self, record: Record) -> JSONObject:
        """Return the funding round as JSON, with exact amounts."""
        return record.exact(self._asdict())
