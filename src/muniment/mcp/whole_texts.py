"""A document as a text to read and cite: its description, facts by their labels, and lists, each with a count."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

from muniment.kernel.json import JSONObject
from muniment.schema.company_parts import CAP_TABLE_ENTRY, DISTRIBUTION, PROPOSAL
from muniment.schema.objects import Schema
from muniment.schema.record import Record

MAX_CHARACTERS: Final = 20_000
MAX_BODY_CHARACTERS: Final = 8_000
"""Of the long description, so that facts and lists still fit."""
MAX_ROWS: Final = 100
_HIDDEN: Final = frozenset(
    {"id", "slug", "documentId", "frameworkId", "name", "frameworkName", "icon", "logo", "picture"}
)
_APART: Final = frozenset(
    {"description", "body", "bio", "companyDescription", "positions", "treasuryAmount", "createdAt"}
)
"""Told as paragraphs or lists, or a second form of a fact."""


def text_of(kind: str, data: JSONObject, schema: Schema) -> str:
    """Return the text of a published document's ``data``, at most `MAX_CHARACTERS` long."""
    parts = {"company": _company, "person": _person, "framework": _framework}[kind](data, schema)
    return cut("\n\n".join(filter(None, parts)), MAX_CHARACTERS)


def cut(text: str, characters: int) -> str:
    return text if len(text) <= characters else f"{text[: characters - 1].rstrip()}…"


def _company(data: JSONObject, schema: Schema) -> Iterator[str]:
    company = data["company"]
    description, body = company.get("description") or "", company.get("body") or ""
    yield cut(description, MAX_BODY_CHARACTERS)
    listed_twice = {"createdAt"} if company.get("listedAt") else set()
    yield "\n".join(_facts(schema.company, {name: company[name] for name in company if name not in listed_twice}))
    yield _rows("Team", data.get("positions") or (), _position)
    yield cut(body.removeprefix(description).strip(), MAX_BODY_CHARACTERS)
    yield _rows("Funding rounds", data.get("fundingRounds") or (), _labelled(schema.funding_round))
    distribution = data.get("distribution")
    yield "\n".join(("Token distribution:", *_facts(DISTRIBUTION, distribution))) if distribution else ""
    yield _rows("Proposals", data.get("proposals") or (), _labelled(PROPOSAL))
    yield _rows("Token holders", data.get("capTable") or (), _labelled(CAP_TABLE_ENTRY))


def _person(data: JSONObject, schema: Schema) -> Iterator[str]:
    yield cut(data.get("bio") or "", MAX_BODY_CHARACTERS)
    yield _rows("Positions", data.get("positions") or (), _position)
    yield "\n".join(_facts(schema.person, data))


def _framework(data: JSONObject, schema: Schema) -> Iterator[str]:
    yield cut(data.get("description") or "", MAX_BODY_CHARACTERS)
    facts = {**data, "company": _linked("company", data["company"])} if data.get("company") else data
    yield "\n".join(_facts(schema.framework, facts))
    about = data.get("companyDescription") or ""
    yield cut(f"About the company: {about}", MAX_BODY_CHARACTERS) if about else ""


def _facts(record: Record, item: JSONObject) -> Iterator[str]:
    """Yield each member with a value as a line with its label; those that no field declares with their name."""
    for name, value in item.items():
        said = "" if name in _HIDDEN or name in _APART else _said(value)
        if said:
            field = record.by_name.get(name)
            yield f"{field.label.partition(' (')[0] if field else name}: {said}"


def _said(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, dict):
        return ", ".join(f"{name} {said}" for name, each in value.items() if name != "id" and (said := _said(each)))
    if isinstance(value, list):
        mark = "; " if any(isinstance(each, dict) for each in value) else ", "
        return mark.join(filter(None, map(_said, value[:MAX_ROWS])))
    return "" if value is None else str(value)


def _rows(title: str, rows: Sequence[JSONObject], line: Callable[[JSONObject], str]) -> str:
    if not rows:
        return ""
    lines = [f"- {line(row)}" for row in rows[:MAX_ROWS]]
    left = len(rows) - len(lines)
    return "\n".join((f"{title} ({len(rows):,}):", *lines, *([f"- and {left:,} more"] if left else [])))


def _labelled(record: Record) -> Callable[[JSONObject], str]:
    def line(row: JSONObject) -> str:
        name = row.get("title") or row.get("name") or row.get("address") or ""
        rest = "; ".join(_facts(record, {key: value for key, value in row.items() if value != name}))
        return f"{name}: {rest}" if name and rest else name or rest

    return line


def _position(row: JSONObject) -> str:
    """Return a position with the other end's id, which leads on."""
    other = _linked("person", row["person"]) if "person" in row else _linked("company", row["company"])
    return f"{row['title']}: {other}" if row.get("title") else other


def _linked(kind: str, other: JSONObject) -> str:
    slug = other.get("slug")
    return f"{other['name']} ({kind}:{slug})" if slug else str(other["name"])
