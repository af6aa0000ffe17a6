"""Accounts, listings, people and frameworks of a fictional world, created by the operations."""

import itertools
import json
from pathlib import Path
from typing import Any

import msgspec
from django.db import connection

from muniment.accounts.models import Account
from muniment.kernel.actor import Actor
from muniment.registry.company.changes import CompanyChange
from muniment.registry.company.listings import OwnedCompany, create_company
from muniment.registry.exchange.importer import ImportOptions, Summary, import_registry
from muniment.registry.exchange.reading import RowFault
from muniment.registry.people.positions import link_position, list_unlinked
from muniment.registry.review.workflow import approve_company, submit_company
from muniment.store.published_document import PublishedDocument

_numbers = itertools.count(1)

SPECIFICATION: dict[str, Any] = {
    "schema": "assessment-spec/1",
    "version": 1,
    "scale": {"min": 0, "max": 4},
    "sections": [
        {
            "id": "all",
            "title": "All",
            "weight": 1,
            "criteria": [
                {"id": "board", "title": "A board", "weight": 1, "requirement": "The organization names a board."}
            ],
        }
    ],
}


def owner(email: str = "") -> Actor:
    """Return an owner signed in on the website."""
    return Account.objects.create_user(email or f"owner{next(_numbers)}@example.org").actor("web", "pages")


def agent_of(actor: Actor) -> Actor:
    """Return the same account with a personal token."""
    return Actor(account_id=actor.account_id, role=actor.role, via="token", credential="my token")


def reviewer() -> Actor:
    """Return a reviewer signed in on the website."""
    account = Account.objects.create_user(f"reviewer{next(_numbers)}@example.org", role="reviewer")
    return account.actor("web", "pages")


def draft(actor: Actor, **fields: Any) -> OwnedCompany:
    return create_company(actor, CompanyChange(**{"name": f"Harbour Cooperative {next(_numbers)}", **fields}))


def published(actor: Actor, **fields: Any) -> OwnedCompany:
    """Create a listing and approve it."""
    company = draft(actor, **fields)
    submit_company(actor, company.slug)
    approve_company(reviewer(), company.slug)
    return company


def link_names(slug: str) -> None:
    """Let a reviewer make a new person of each name on a listing that links to no profile."""
    judge = reviewer()
    for each in list_unlinked(judge, slug):
        link_position(judge, slug, each.item)


def lines(path: Path, *rows: Any) -> Path:
    """Write rows as JSON lines; bytes are written unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"".join(row if isinstance(row, bytes) else json.dumps(row).encode() + b"\n" for row in rows))
    return path


def bring(path: Path, **options: Any) -> tuple[Summary, list[RowFault], list[RowFault]]:
    """Import *path*; return also the faults that are told, and the warnings."""
    bad: list[RowFault] = []
    warnings: list[RowFault] = []
    told: Any = {name: options.pop(name) for name in ("actor", "progress", "publishing") if name in options}
    summary = import_registry(path, ImportOptions(**options), tell=bad.append, warn=warnings.append, **told)
    return summary, bad, warnings


def document(kind: str, key: str) -> Any:
    """Return the data of the public detail response, or None."""
    found = _document(kind, key)
    return msgspec.json.decode(found["body"])["data"] if found else None


def item(kind: str, key: str) -> Any:
    found = _document(kind, key)
    return msgspec.json.decode(found["item"]) if found else None


def mark(kind: str, key: str) -> Any:
    """Return the provenance of a published document, or None."""
    found = _document(kind, key)
    return found["provenance"] if found else None


def _document(kind: str, key: str) -> dict[str, Any] | None:
    return next((found for found in _documents(kind) if found["key"] == key), None)


def bodies() -> dict[tuple[str, str], bytes]:
    """Return every public detail response, by kind and key."""
    kinds = ("company", "person", "framework")
    return {(kind, found["key"]): bytes(found["body"]) for kind in kinds for found in _documents(kind)}


def keys(kind: str) -> list[str]:
    """Return the public keys of a kind in list order."""
    found = sorted(_documents(kind), key=lambda each: each["position"], reverse=kind != "framework")
    return [each["key"] for each in found]


def _documents(kind: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(
                "SELECT key, d.position, body, d.provenance, substr(item, 2, length(item) - 5)"
                f" FROM published_document d LEFT JOIN published_item_{kind} i ON i.position = d.position"
                " WHERE kind = %s",
                [kind],
            )
            names = ("key", "position", "body", "provenance", "item")
            rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
            return [{**row, "provenance": json.loads(f"{{{row['provenance']}}}")[row["key"]]} for row in rows]
        cursor.execute("SELECT document FROM published_document WHERE kind = %s", [kind])
        found = [msgspec.msgpack.decode(row[0], type=PublishedDocument) for row in cursor.fetchall()]
        return [{name: getattr(each, name) for name in each.__struct_fields__} for each in found]


def changes() -> list[tuple[str, str, str]]:
    """Return the change feed: kind, key and change, oldest first."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT kind, key, change FROM published_change ORDER BY sequence")
        return [(kind, key, change) for kind, key, change in cursor.fetchall()]
