"""
The form of import and export, read into records that the tables hold. Pure: no table is asked here.

A reader takes a decoded line and gives a record, or the faults that it found, each with the path of the
field. What only the registry knows (whether a person exists) is checked by whoever imports.

Source: decisions, sections 2 (absent values) and 6.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Final, NamedTuple, TypeVar

from muniment.kernel.ids import slug_fault
from muniment.kernel.wire import number, parse_money, parse_month_and_year, parse_timestamp
from muniment.registry.company.form_options import ADDRESS, SOCIALS, STATUSES
from muniment.registry.frameworks.specification import faults_of

T = TypeVar("T")
PROPOSAL_STATUSES: Final = ("active", "passed", "failed", "pending")
KINDS: Final = ("score", "program")
TEXTS: Final = {
    "symbol": "symbol",
    "status": "status",
    "type": "type",
    "industry": "industry",
    "orgKind": "org_kind",
    "description": "description",
    "body": "body",
    "website": "website",
    "dao_website": "dao_website",
    "icon": "icon",
}
"""Texts of a company: the contract's key, and the column."""

_COMPANY: Final = frozenset(
    {"id", "name", *TEXTS, "teamSize", "treasury", "themes", "createdAt", "listedAt", "socials", "address"}
    | {"raising", "updatedAt"}
)
_PERSON: Final = frozenset({"documentId", "name", "slug", "bio", "companyCount", "positions", "updatedAt"})
_FRAMEWORK: Final = frozenset(
    {"frameworkId", "frameworkName", "description", "kind", "isOpen", "company", "companyDescription", "updatedAt"}
)


class Fault(NamedTuple):
    """What is wrong with one field of one row."""

    field: str
    reason: str


class PositionRow(NamedTuple):
    """A position as a row gives it. ``slug`` is empty for a person named only by name."""

    slug: str
    name: str
    title: str | None
    extra: dict[str, Any]


class RoundRow(NamedTuple):
    """A funding round as a row gives it."""

    name: str
    target_minor: int | None
    opened_on: date | None
    closed_on: date | None


@dataclass(slots=True)
class CompanyRow:
    """A company's line. ``columns`` are the table's; a part that is None was not given and stays as it stands."""

    slug: str
    columns: dict[str, Any]
    positions: list[PositionRow] | None = None
    proposals: list[dict[str, Any]] | None = None
    cap_table: list[dict[str, Any]] | None = None
    funding_rounds: list[RoundRow] | None = None
    updated_at: datetime | None = None


@dataclass(slots=True)
class PersonRow:
    """A person's line."""

    slug: str
    columns: dict[str, Any]
    updated_at: datetime | None = None


@dataclass(slots=True)
class FrameworkRow:
    """A framework's line. ``specification`` None: not given."""

    slug: str
    columns: dict[str, Any]
    company: str = ""
    is_open: bool | None = None
    specification: dict[str, Any] | None = None
    updated_at: datetime | None = None


@dataclass(slots=True)
class RowReader:
    """Reads the members of one JSON object and notes what is wrong with them."""

    value: dict[str, Any]
    path: str
    faults: list[Fault] = field(default_factory=list)

    def fault(self, key: str, reason: str) -> None:
        """Note a fault of the member *key*."""
        self.faults.append(Fault(f"{self.path}.{key}" if self.path else key, reason))

    def text(self, key: str) -> str | None:
        """Read a text; None when absent or null."""
        value = self.value.get(key)
        if value is None or isinstance(value, str):
            return value
        self.fault(key, f"is {kind_of(value)}, not a text")
        return None

    def required(self, key: str) -> str:
        """Read a text that must not be empty."""
        value = self.text(key)
        if value is None:
            if self.value.get(key) is None:
                self.fault(key, "is missing")
        elif not value.strip():
            self.fault(key, "is empty")
        return value or ""

    def slug(self, key: str) -> str:
        """Read a slug that must be there."""
        value = self.required(key)
        if value.strip() and (fault := slug_fault(value)):
            self.fault(key, fault)
        return value

    def chosen(self, key: str, choices: Iterable[str]) -> str | None:
        """Read one of a closed set; an empty text counts as absent."""
        value = self.text(key)
        if value and value not in choices:
            self.fault(key, f"is {value!r}, which is none of {', '.join(choices)}")
        return value or None

    def count(self, key: str) -> int | None:
        """Read a whole number from 0."""
        value = self.value.get(key)
        if value is None:
            return None
        whole = number(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
        if not isinstance(whole, int) or not 0 <= whole < 2**31:
            self.fault(key, f"is {shown(value)}, not a whole number from 0")
            return None
        return whole

    def number(self, key: str) -> int | float | None:
        """Read a number."""
        value = self.value.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int | float):
            self.fault(key, f"is {kind_of(value)}, not a number")
            return None
        if isinstance(value, float) and not math.isfinite(value):
            self.fault(key, f"is {value}, not a finite number")
            return None
        return number(value)

    def read(self, key: str, parse: Callable[[str], T]) -> T | None:
        """Read a text through *parse*, whose ValueError says what is wrong."""
        value = self.text(key)
        if not value:
            return None
        try:
            return parse(value)
        except ValueError as error:
            self.fault(key, f"{value[:80]!r} {error}")
            return None

    def object(self, key: str) -> "RowReader | None":
        """Read an object; None when absent or null. Its faults are noted here."""
        value = self.value.get(key)
        path = f"{self.path}.{key}" if self.path else key
        if value is None:
            return None
        if not isinstance(value, dict):
            self.fault(key, f"is {kind_of(value)}, not an object")
            return None
        return RowReader(value, path, self.faults)

    def objects(self, key: str) -> "list[RowReader] | None":
        """Read a list of objects; None when absent, empty when null."""
        if key not in self.value:
            return None
        value = self.value[key]
        path = f"{self.path}.{key}" if self.path else key
        if value is None:
            return []
        if not isinstance(value, list):
            self.fault(key, f"is {kind_of(value)}, not a list")
            return []
        found = []
        for index, member in enumerate(value):
            if isinstance(member, dict):
                found.append(RowReader(member, f"{path}[{index}]", self.faults))
            else:
                self.fault(f"{key}[{index}]", f"is {kind_of(member)}, not an object")
        return found

    def others(self, known: Iterable[str]) -> dict[str, Any]:
        """Give the members that the contract does not name, in sorted order."""
        return {key: self.value[key] for key in sorted(self.value.keys() - set(known))}


def kind_of(value: object) -> str:
    """Name the JSON type of *value* with its article."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, int | float):
        return "a number"
    if isinstance(value, str):
        return "a text"
    return "a list" if isinstance(value, list) else "an object"


def shown(value: object) -> str:
    """Show *value* in a message: short, and never the whole of something long."""
    return repr(value)[:80] if isinstance(value, str | int | float | bool) else kind_of(value)


def day(text: str) -> date:
    """
    Read an ISO date.

    Raises:
        ValueError: the text is none.
    """
    try:
        if len(text) != 10:
            raise ValueError  # noqa: TRY301 - one sentence for every wrong form
        return date.fromisoformat(text)
    except ValueError:
        message = "is not a date such as 2024-03-31"
        raise ValueError(message) from None


def read_company(line: dict[str, Any], currency: str) -> tuple[CompanyRow | None, list[Fault]]:
    """Read a line of companies.jsonl."""
    whole = RowReader(line, "")
    reader = whole.object("company")
    if reader is None:
        if not whole.faults:
            whole.fault("company", "is missing")
        return None, whole.faults
    columns: dict[str, Any] = {"name": reader.required("name")}
    for key, column in TEXTS.items():
        read = reader.chosen("status", STATUSES) if key == "status" else reader.text(key)
        columns[column] = read or ""
    columns["team_size"] = reader.count("teamSize")
    columns["treasury_minor"] = reader.read("treasury", lambda text: parse_money(text, currency))
    listed_on = reader.read("listedAt", day)
    if listed_on is None and not reader.value.get("listedAt"):
        listed_on = reader.read("createdAt", parse_month_and_year)
    columns["listed_on"] = listed_on
    columns["themes"] = read_themes(reader)
    columns["socials"] = read_socials(reader)
    columns["address"] = read_address(reader)
    columns["extra"] = reader.others(_COMPANY)
    updated_at = whole.read("updatedAt", parse_timestamp) or reader.read("updatedAt", parse_timestamp)
    row = CompanyRow(reader.slug("id"), columns, updated_at=updated_at)
    if "distribution" in line:
        row.columns["distribution"] = read_distribution(whole.object("distribution"))
    row.positions = read_positions(whole)
    row.proposals = read_proposals(whole)
    row.cap_table = read_cap_table(whole)
    row.funding_rounds = read_rounds(whole, currency)
    return (None if whole.faults else row), whole.faults


def read_themes(reader: RowReader) -> list[str] | None:
    """Read the themes; None when there are none."""
    value = reader.value.get("themes")
    if not value and (value is None or isinstance(value, list)):
        return None
    if not isinstance(value, list) or not all(isinstance(theme, str) for theme in value):
        reader.fault("themes", "is not a list of texts")
        return None
    return value


def read_socials(reader: RowReader) -> dict[str, str | None] | None:
    """Read the links: all eight keys, or None when none of them is known."""
    inner = reader.object("socials")
    return None if inner is None else _closed(inner, SOCIALS)


def read_address(reader: RowReader) -> list[dict[str, str | None]] | None:
    """Read the addresses: each with all five keys; None when there are none."""
    items = [_closed(inner, ADDRESS) for inner in reader.objects("address") or []]
    return [item for item in items if item] or None


def _closed(inner: RowReader, keys: tuple[str, ...]) -> dict[str, str | None] | None:
    for key in inner.others(keys):
        inner.fault(key, f"is none of {', '.join(keys)}")
    read = {key: inner.text(key) or None for key in keys}
    return read if any(read.values()) else None


def _part(inner: RowReader, texts: Iterable[str]) -> dict[str, Any]:
    return {key: value for key in texts if (value := inner.text(key)) is not None}


def read_distribution(inner: RowReader | None) -> dict[str, Any] | None:
    """Read how the token was distributed."""
    if inner is None:
        return None
    texts = ("method", "details", "schedule", "vestingPeriod")
    read = _part(inner, texts)
    pools = inner.objects("pools")
    if pools is not None and inner.value["pools"] is not None:
        read["pools"] = [
            {**_part(pool, ("name",)), **_numbers(pool, ("percentage",)), **pool.others(("name", "percentage"))}
            for pool in pools
        ]
    return {**read, **inner.others((*texts, "pools"))}


def _numbers(inner: RowReader, keys: Iterable[str]) -> dict[str, int | float]:
    return {key: value for key in keys if (value := inner.number(key)) is not None}


def read_proposals(whole: RowReader) -> list[dict[str, Any]] | None:
    """Read the proposals in the contract's order of keys."""
    items = whole.objects("proposals")
    if items is None:
        return None
    found = []
    for inner in items:
        read = _part(inner, ("id", "title"))
        if status := inner.chosen("status", PROPOSAL_STATUSES):
            read["status"] = status
        if votes := inner.object("votes"):
            read["votes"] = {**_numbers(votes, ("for", "against")), **votes.others(("for", "against"))}
        read |= _part(inner, ("endDate",))
        found.append({**read, **inner.others(("id", "title", "status", "votes", "endDate"))})
    return found


def read_cap_table(whole: RowReader) -> list[dict[str, Any]] | None:
    """Read the token holders in the contract's order of keys."""
    items = whole.objects("capTable")
    if items is None:
        return None
    texts = ("address", "name", "tokens")
    return [
        {**_part(inner, texts), **_numbers(inner, ("percentage",)), **inner.others((*texts, "percentage"))}
        for inner in items
    ]


def read_positions(whole: RowReader) -> list[PositionRow] | None:
    """Read the positions. A person is named by slug, or by name alone."""
    items = whole.objects("positions")
    if items is None:
        return None
    places = []
    for inner in items:
        person = inner.object("person")
        if person is None:
            if inner.value.get("person") is None:
                inner.fault("person", "is missing")
            continue
        slug, name = person.text("slug") or "", person.text("name") or ""
        if slug and (fault := slug_fault(slug)):
            person.fault("slug", fault)
        elif not slug and not name.strip():
            person.fault("slug", "is missing, and so is a name")
        extra = inner.others(("title", "person"))
        if further := person.others(("name", "slug")):
            extra["person"] = further
        places.append(PositionRow(slug, name, inner.text("title"), extra))
    return places


def read_rounds(whole: RowReader, currency: str) -> list[RoundRow] | None:
    """Read the funding rounds; at most one may be open."""
    items = whole.objects("fundingRounds")
    if items is None:
        return None
    rounds = [
        RoundRow(
            inner.text("name") or "",
            inner.read("target", lambda text: parse_money(text, currency)),
            inner.read("opened", day),
            inner.read("closed", day),
        )
        for inner in items
    ]
    if sum(each.closed_on is None for each in rounds) > 1:
        whole.fault("fundingRounds", "has more than one round that is not closed")
    return rounds


def read_person(line: dict[str, Any]) -> tuple[PersonRow | None, list[Fault]]:
    """Read a line of people.jsonl."""
    reader = RowReader(line, "")
    columns = {
        "name": reader.required("name"),
        "bio": reader.text("bio") or "",
        "document_id": reader.text("documentId") or "",
        "extra": reader.others(_PERSON),
    }
    row = PersonRow(reader.slug("slug"), columns, reader.read("updatedAt", parse_timestamp))
    return (None if reader.faults else row), reader.faults


def read_framework(line: dict[str, Any]) -> tuple[FrameworkRow | None, list[Fault]]:
    """Read a line of frameworks.jsonl."""
    whole = RowReader(line, "")
    reader = whole.object("framework")
    if reader is None:
        if not whole.faults:
            whole.fault("framework", "is missing")
        return None, whole.faults
    columns: dict[str, Any] = {
        "name": reader.required("frameworkName"),
        "description": reader.text("description") or "",
    }
    kind = reader.chosen("kind", KINDS)
    if not kind and not reader.value.get("kind"):
        reader.fault("kind", "is missing")
    columns["kind"] = kind
    columns["extra"] = reader.others(_FRAMEWORK)
    company = reader.object("company")
    named = (company.text("slug") or company.text("id") or "") if company else ""
    if (
        kind == "program"
        and not named
        and not any(fault.field.startswith("framework.company") for fault in reader.faults)
    ):
        reader.fault("company", "is missing: a program is run by a company")
    is_open = reader.value.get("isOpen")
    if is_open is not None and not isinstance(is_open, bool):
        reader.fault("isOpen", f"is {kind_of(is_open)}, not a boolean")
    if (run_cost := whole.count("runCost")) is not None:
        columns["run_cost"] = run_cost
    specification = whole.object("specification")
    if specification is not None:
        whole.faults.extend(Fault(f"specification.{path}", why) for path, why in faults_of(specification.value))
    row = FrameworkRow(
        reader.slug("frameworkId"),
        columns,
        company=named,
        is_open=is_open,
        specification=specification.value if specification else None,
        updated_at=whole.read("updatedAt", parse_timestamp) or reader.read("updatedAt", parse_timestamp),
    )
    return (None if whole.faults else row), whole.faults
