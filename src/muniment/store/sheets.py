"""Published documents as the rows of a sheet, which exports and lists write as CSV."""

import sqlite3
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from muniment.kernel.http.representations import digest
from muniment.kernel.json import JSONObject
from muniment.kernel.wire import with_picture_addresses
from muniment.store.database.faults import damages_read
from muniment.store.items import ITEM, item_at

if TYPE_CHECKING:
    from muniment.schema.objects import Schema


class _CompanyPart(msgspec.Struct):
    """The part of a company's document that its row shows; its lists can be long."""

    company: JSONObject


class _CompanyDocument(msgspec.Struct):
    data: _CompanyPart


class _WholeDocument(msgspec.Struct):
    data: JSONObject


def columns_of(schema: "Schema", kind: str) -> tuple[str, ...]:
    record = {"company": schema.company, "person": schema.person, "framework": schema.framework}[kind]
    return record.csv


def rows(
    connection: sqlite3.Connection, kind: str, positions: Sequence[int], columns: Sequence[str], base_url: str
) -> list[list[Any]]:
    """
    Return the rows of the documents at *positions*, in that order; none of a document that is not published any more.

    Raises:
        DamagedDocument: one of them does not have its digest, or its item not its checksum.
    """
    found = {}
    statement = (
        f"SELECT d.position, d.key, d.etag, d.body, {ITEM} FROM published_document AS d"
        f" JOIN published_item_{kind} AS i ON i.position = d.position"
        " WHERE d.kind = ? AND d.position IN (SELECT value FROM json_each(?))"
    )
    chosen = msgspec.json.encode([*positions]).decode()
    for position, key, etag, body, item in connection.execute(statement, (kind, chosen)):
        if not isinstance(body, bytes) or digest(body) != etag:
            raise damages_read.document(kind, key)
        shown = item_at(connection, kind, position, item)
        members = {**_detail(kind, body), **msgspec.json.decode(with_picture_addresses(shown, base_url))}
        found[position] = [value_of(members, column) for column in columns]
    return [found[position] for position in positions if position in found]


def entry_rows(entries: Iterable[JSONObject], columns: Sequence[str]) -> list[list[Any]]:
    """Return the rows of a list within a document, such as its proposals."""
    return [[value_of(entry, column) for column in columns] for entry in entries]


def _detail(kind: str, body: bytes) -> JSONObject:
    """Return the members that lists leave out."""
    if kind == "company":
        return msgspec.json.decode(body, type=_CompanyDocument).data.company
    return msgspec.json.decode(body, type=_WholeDocument).data


def value_of(members: JSONObject, column: str) -> Any:
    """Return the member that *column* names; a dot leads to a member of an object, or of the first one of a list."""
    value: Any = members
    for name in column.split("."):
        if isinstance(value, list):
            value = value[0] if value else None
        value = (value or {}).get(name)
    return value
