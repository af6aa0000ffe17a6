"""Positions and funding rounds as the tables hold them, and as JSON."""

from datetime import date
from typing import NamedTuple

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.record import Record


class PositionRow(NamedTuple):
    """A position. ``slug`` is empty where only a name is shown; ``extra`` holds additional members."""

    slug: str
    name: str
    title: str | None
    extra: JSONObject
    item_id: str = ""

    @classmethod
    def from_document(cls, document: JSONMapping) -> "PositionRow":
        person = document["person"]
        extra = {name: value for name, value in document.items() if name not in {"id", "title", "person"}}
        extra_of_person = {name: value for name, value in person.items() if name not in {"name", "slug", "isNew"}}
        if extra_of_person:
            extra["person"] = extra_of_person
        return cls(person.get("slug", ""), person.get("name", ""), document.get("title"), extra, document.get("id", ""))

    def to_document(self) -> JSONObject:
        person = {"name": self.name}
        if self.slug:
            person["slug"] = self.slug
        person |= self.extra.get("person", {})
        document: JSONObject = {}
        if self.item_id:
            document["id"] = self.item_id
        if self.title is not None:
            document["title"] = self.title
        document["person"] = person
        for name, value in self.extra.items():
            if name != "person":  # additional members of the person, not of the position
                document[name] = value
        return document


class RoundRow(NamedTuple):
    """A funding round. ``public``: whether its name and target are; None where an import does not say."""

    name: str
    target_minor: int | None
    opened_on: date | None
    closed_on: date | None
    item_id: str = ""
    public: bool | None = True

    @classmethod
    def from_document(cls, document: JSONMapping, record: Record) -> "RoundRow":
        """Return the row of a funding round that the schema has read."""
        columns = record.columns(document)
        columns["public"] = columns["extra"].get("public")
        return cls(*(columns[name] for name in cls._fields))

    def is_open(self, day: date) -> bool:
        """Return whether the round is open on *day*, in UTC: a date in the future neither opens nor closes it."""
        is_opened = self.opened_on is None or self.opened_on <= day
        is_closed = self.closed_on is not None and self.closed_on <= day
        return is_opened and not is_closed

    def to_document(self, record: Record) -> JSONObject:
        """Return the funding round as JSON, with exact amounts."""
        document = record.exact(self._asdict())
        if self.public is False:
            document["public"] = False
        return document

    def to_public(self, record: Record) -> JSONObject:
        """Return what everybody may read of the funding round."""
        document = self.to_document(record)
        hidden = {"name", "target"} if self.public is False else set()
        return {name: value for name, value in document.items() if name not in hidden}
