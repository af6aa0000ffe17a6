"""
The published scores of a framework, the best first.

The documents of companies are found by their scores like by the value of a filter: a name for each framework, and
values whose order is that of the numbers. So a page is read from two indexes, however many companies there are.
"""

import sqlite3
from typing import Any, Final, NamedTuple

import msgspec

from muniment.kernel.json import JSONObject
from muniment.schema.company_parts import SCORE
from muniment.store.items import ITEM, item_at

FACET: Final = "score."
"""Begins the name under which companies are found by their score of a framework; no filter begins so."""


_SHOWN: Final = tuple(field.name for field in SCORE)


class _Company(msgspec.Struct):
    """The published scores of a company, with its members of a reference."""

    id: str
    name: str
    symbol: str = ""
    icon: str = ""
    logo: Any = None
    assessments: list[JSONObject] = []


_decode: Final = msgspec.json.Decoder(_Company).decode


class Ranked(NamedTuple):
    """A company in the list of a framework's scores; equal scores share a rank."""

    rank: int
    item: bytes

    def shown(self, framework_id: str) -> bytes:
        company = _decode(self.item)
        reference: JSONObject = {"id": company.id, "name": company.name, "slug": company.id}
        reference |= {name: text for name, text in (("symbol", company.symbol), ("icon", company.icon)) if text}
        (score,) = (each for each in company.assessments if each["frameworkId"] == framework_id)
        if company.logo:
            reference["logo"] = company.logo
        members = {name: score[name] for name in _SHOWN if name in score}
        return msgspec.json.encode({"rank": self.rank, "company": reference, **members})


def written(score: float) -> str:
    """Return a score from 0 to 100 as text that sorts like the number."""
    return f"{score:09.4f}"


def count(connection: sqlite3.Connection, framework_id: str, *, above: str = "") -> int:
    """Return how many companies have a score of a framework, or one greater than *above*, a written score."""
    statement = "SELECT coalesce(sum(n), 0) FROM published_value WHERE kind = 'company' AND name = ? AND value > ?"
    (total,) = connection.execute(statement, (FACET + framework_id, above)).fetchone()
    return int(total)


def ranked(connection: sqlite3.Connection, framework_id: str, start: int, size: int) -> list[Ranked]:
    """Return *size* companies from place *start*, counted from 0: by score, then the newest listing first."""
    rows = connection.execute(
        f"SELECT v.value, i.position, {ITEM} FROM published_value AS v JOIN published_facet AS f ON f.value_id = v.id"
        " JOIN published_item_company AS i ON i.position = f.position WHERE v.kind = 'company' AND v.name = ?"
        " ORDER BY v.value DESC, f.position DESC LIMIT ? OFFSET ?",
        (FACET + framework_id, size, start),
    ).fetchall()
    found: list[Ranked] = []
    before = ""
    for place, (value, position, item) in enumerate(rows, start + 1):
        if value == before:
            rank = found[-1].rank
        else:
            rank = place if found else count(connection, framework_id, above=value) + 1
        found.append(Ranked(rank, item_at(connection, "company", position, item)))
        before = value
    return found
