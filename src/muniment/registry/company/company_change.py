"""
What an owner may change on a listing, and what the values must be. Pure: no table is asked.

Absent is UNSET and stays; None clears. Lists replace, objects merge by key.

Source: decisions, section 5, update_*; tools, update_my_company.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Final
from urllib.parse import urlsplit

from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import first_text_fault
from muniment.kernel.wire import UNSET, Unset, parse_money
from muniment.registry.company.form_options import MAX_CHARACTERS, MAX_ENTRIES, SOCIALS, STATUSES
from muniment.registry.exchange.rows import (
    TEXTS,
    Fault,
    PositionRow,
    RowReader,
    day,
    read_address,
    read_cap_table,
    read_distribution,
    read_positions,
    read_proposals,
    read_themes,
)

ADDRESSES: Final = ("website", "dao_website")
HINT: Final = "list_company_form_options gives the values and lengths that are taken."


class BadFields(BadRequest):
    """Values that their fields do not take. ``faults`` has each, for the form that shows them in place."""

    def __init__(self, faults: Iterable[Fault], hint: str = HINT) -> None:
        self.faults = list(faults)
        told = "; ".join(f"{fault.field} {fault.reason}" for fault in self.faults[:5])
        more = len(self.faults) - 5
        super().__init__(f"{told}{f'; and {more} more' if more > 0 else ''}.", hint)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompanyChange:
    """
    The fields of a listing that an owner edits, as they stand on the wire.

    ``positions`` name a person by slug, or a new one by name. ``funding_round`` edits the open round or
    opens one: ``{name, target, opened, closed}``.
    """

    name: str | Unset = UNSET
    symbol: str | Unset | None = UNSET
    team_size: int | Unset | None = UNSET
    treasury: str | Unset | None = UNSET
    status: str | Unset | None = UNSET
    type: str | Unset | None = UNSET
    industry: str | Unset | None = UNSET
    org_kind: str | Unset | None = UNSET
    themes: list[str] | Unset | None = UNSET
    description: str | Unset | None = UNSET
    body: str | Unset | None = UNSET
    website: str | Unset | None = UNSET
    dao_website: str | Unset | None = UNSET
    socials: dict[str, str | None] | Unset | None = UNSET
    address: list[dict[str, str | None]] | Unset | None = UNSET
    distribution: dict[str, Any] | Unset | None = UNSET
    positions: list[dict[str, Any]] | Unset | None = UNSET
    proposals: list[dict[str, Any]] | Unset | None = UNSET
    cap_table: list[dict[str, Any]] | Unset | None = UNSET
    funding_round: dict[str, Any] | Unset = UNSET

    @classmethod
    def from_wire(cls, changes: Mapping[str, Any]) -> "CompanyChange":
        """
        Read camelCase *changes*.

        Raises:
            BadFields: a name that is no field of the form, such as id, state or owner.
        """
        unknown = [Fault(key, "is no field of the form") for key in changes if key not in FIELDS]
        if unknown:
            raise BadFields(unknown, f"Fields that can be changed: {', '.join(FIELDS)}.")
        return cls(**{FIELDS[key]: value for key, value in changes.items()})

    def to_wire(self) -> dict[str, Any]:
        """Give the fields that are set, in camelCase."""
        return {key: value for key, name in FIELDS.items() if (value := getattr(self, name)) is not UNSET}


_CAMEL: Final = {
    "team_size": "teamSize",
    "org_kind": "orgKind",
    "cap_table": "capTable",
    "funding_round": "fundingRound",
}
FIELDS: Final = {_CAMEL.get(each.name, each.name): each.name for each in fields(CompanyChange)}
"""The fields of the form: what the wire calls them, and what :class:`CompanyChange` does."""


@dataclass(slots=True)
class Edit:
    """A change, read: columns of the table and parts; a part that is None stays."""

    columns: dict[str, Any] = field(default_factory=dict)
    merged: dict[str, Any] = field(default_factory=dict)
    positions: list[PositionRow] | None = None
    proposals: list[dict[str, Any]] | None = None
    cap_table: list[dict[str, Any]] | None = None
    funding_round: dict[str, Any] | None = None


def read_change(change: CompanyChange, currency: str) -> Edit:
    """
    Read *change* and hold it against the form.

    Raises:
        BadFields: values that the form does not take.
    """
    wire = change.to_wire()
    reader = RowReader(wire, "")
    if found := first_text_fault(wire):
        reader.faults.append(Fault(*found))
        raise BadFields(reader.faults)
    edit = Edit()
    _read_texts(reader, wire, edit)
    if "teamSize" in wire:
        edit.columns["team_size"] = reader.count("teamSize")
    if "treasury" in wire:
        edit.columns["treasury_minor"] = reader.read("treasury", lambda text: parse_money(text, currency))
    if "themes" in wire:
        edit.columns["themes"] = read_themes(reader)
    if "address" in wire:
        edit.columns["address"] = read_address(reader)
    _read_parts(reader, wire, edit, currency)
    _check_lengths(reader, wire)
    for key in ADDRESSES:
        _check_address(reader, key)
    if reader.faults:
        raise BadFields(reader.faults)
    return edit


def _read_texts(reader: RowReader, wire: dict[str, Any], edit: Edit) -> None:
    if "name" in wire:
        edit.columns["name"] = reader.required("name").strip()
    for key, column in TEXTS.items():
        if key in wire:
            read = reader.chosen("status", STATUSES) if key == "status" else reader.text(key)
            edit.columns[column] = (read or "").strip() if key not in {"body", "description"} else read or ""


def _read_parts(reader: RowReader, wire: dict[str, Any], edit: Edit, currency: str) -> None:
    if "socials" in wire:
        edit.merged["socials"] = None
        if (links := reader.object("socials")) is not None:
            for key in links.others(SOCIALS):
                links.fault(key, f"is none of {', '.join(SOCIALS)}")
            edit.merged["socials"] = {key: links.text(key) or None for key in links.value if key in SOCIALS}
    if "distribution" in wire:
        given = reader.object("distribution")
        cleared = {key: None for key, value in (given.value if given else {}).items() if value is None}
        edit.merged["distribution"] = None if given is None else {**cleared, **(read_distribution(given) or {})}
    edit.positions = read_positions(reader)
    edit.proposals = read_proposals(reader)
    edit.cap_table = read_cap_table(reader)
    if "fundingRound" in wire:
        edit.funding_round = _read_round(reader, currency)


def _read_round(reader: RowReader, currency: str) -> dict[str, Any]:
    inner = reader.object("fundingRound")
    if inner is None:
        if reader.value.get("fundingRound") is None:
            reader.fault("fundingRound", "cannot be cleared; give it a closed date instead")
        return {}
    for key in inner.others(("name", "target", "opened", "closed")):
        inner.fault(key, "is none of name, target, opened, closed")
    read = {
        "name": inner.text("name") or "",
        "target_minor": inner.read("target", lambda text: parse_money(text, currency)),
        "opened_on": inner.read("opened", day),
        "closed_on": inner.read("closed", day),
    }
    keys = {"name": "name", "target": "target_minor", "opened": "opened_on", "closed": "closed_on"}
    return {column: read[column] for key, column in keys.items() if key in inner.value}


def _check_lengths(reader: RowReader, wire: dict[str, Any]) -> None:
    for key, limit in MAX_CHARACTERS.items():
        values: list[tuple[str, Any]] = [(key, wire.get(key))]
        if key == "themes" and isinstance(wire.get(key), list):
            values = [(f"themes[{index}]", theme) for index, theme in enumerate(wire[key])]
        elif key == "socials" and isinstance(wire.get(key), dict):
            values = [(f"socials.{name}", value) for name, value in wire[key].items()]
        elif key == "address" and isinstance(wire.get(key), list):
            values = [
                (f"address[{index}].{name}", value)
                for index, item in enumerate(wire[key])
                if isinstance(item, dict)
                for name, value in item.items()
            ]
        for path, value in values:
            if isinstance(value, str) and len(value) > limit:
                reader.fault(path, f"has {len(value):,} characters, at most {limit:,} are taken")
    for key, limit in MAX_ENTRIES.items():
        holder = (wire.get("distribution") or {}) if key == "pools" else wire
        entries = holder.get(key) if isinstance(holder, dict) else None
        if isinstance(entries, list) and len(entries) > limit:
            path = "distribution.pools" if key == "pools" else key
            reader.fault(path, f"has {len(entries):,} entries, at most {limit:,} are taken")


def _check_address(reader: RowReader, key: str) -> None:
    value = reader.value.get(key)
    if not isinstance(value, str) or not value.strip():
        return
    try:
        parts = urlsplit(value.strip())
        whole = parts.scheme in {"http", "https"} and bool(parts.hostname) and not any(map(str.isspace, value.strip()))
    except ValueError:
        whole = False
    if not whole:
        reader.fault(key, "is not an address such as https://example.org")


def merge(standing: dict[str, Any] | None, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Merge an object by key: None clears the whole, a None inside clears that key."""
    if given is None:
        return None
    return {**(standing or {}), **given}


def merge_socials(standing: dict[str, Any] | None, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Merge links: all eight keys, or None when none is left."""
    merged = {key: (merge(standing, given) or {}).get(key) for key in SOCIALS}
    return merged if any(merged.values()) else None


def merge_distribution(standing: dict[str, Any] | None, given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Merge the distribution in the contract's order of keys; what is cleared is left out."""
    merged = {key: value for key, value in (merge(standing, given) or {}).items() if value is not None}
    order = ("method", "details", "schedule", "vestingPeriod", "pools")
    return {
        key: merged[key] for key in (*(k for k in order if k in merged), *sorted(merged.keys() - set(order)))
    } or None
