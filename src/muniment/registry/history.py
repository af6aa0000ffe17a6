"""What changed, as history keeps it: in the contract's words, whole enough to be put back."""

from collections.abc import Iterable
from datetime import date
from typing import Any, Final

from muniment.kernel.actor import Actor
from muniment.kernel.wire import currency_sign, format_money, parse_money
from muniment.registry.exchange.rows import TEXTS
from muniment.registry.models import HistoryEntry

WIRE_NAMES: Final = {
    "name": "name",
    **{column: key for key, column in TEXTS.items()},
    "team_size": "teamSize",
    "treasury_minor": "treasury",
    "listed_on": "listedAt",
    "themes": "themes",
    "socials": "socials",
    "address": "address",
    "distribution": "distribution",
    "extra": "extra",
    "state": "state",
    "bio": "bio",
    "document_id": "documentId",
    "description": "description",
    "kind": "kind",
    "closed": "closed",
    "run_cost": "runCost",
    "listed": "listed",
}
"""Columns and what history calls them."""


def exact_money(minor_units: int, currency: str) -> str:
    """Show an amount so that reading it gives the same one: short where that loses nothing, else in full."""
    short = format_money(minor_units, currency)
    if parse_money(short, currency) == minor_units:
        return short
    return f"{currency_sign(currency)}{minor_units // 100}.{minor_units % 100:02d}"


def wire_value(column: str, value: Any, currency: str) -> Any:
    """Give a column's value in the contract's form; null where it is absent."""
    if column == "treasury_minor" and value is not None:
        return exact_money(value, currency)
    if isinstance(value, date):
        return value.isoformat()
    return None if value == "" else value


def wire_values(columns: dict[str, Any], currency: str) -> dict[str, Any]:
    """Give columns in the contract's words."""
    return {WIRE_NAMES.get(column, column): wire_value(column, value, currency) for column, value in columns.items()}


def entry(actor: Actor, action: str, *, before: dict[str, Any], after: dict[str, Any], **subject: Any) -> HistoryEntry:
    """Make a history entry, not yet saved; *subject* is a company, person or framework, and a note."""
    return HistoryEntry(
        action=action,
        account_id=actor.account_id,
        via=actor.via,
        credential=actor.credential,
        before=before,
        after=after,
        **subject,
    )


def places_on_wire(places: Iterable[tuple[str, str, str | None, dict[str, Any]]]) -> list[dict[str, Any]]:
    """Give positions (slug, name, title, extra) in the contract's form."""
    found = []
    for slug, name, title, extra in places:
        person = {"name": name, "slug": slug, **extra.get("person", {})}
        rest = {key: value for key, value in extra.items() if key != "person"}
        found.append({**({} if title is None else {"title": title}), "person": person, **rest})
    return found
