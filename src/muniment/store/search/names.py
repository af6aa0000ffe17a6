"""Documents by their names: people and agents know what a document is called, not its slug."""

import sqlite3
from collections.abc import Iterable
from typing import Final, NamedTuple

import msgspec

from muniment.kernel.ids import MAX_SLUG_CHARACTERS
from muniment.store import search_text
from muniment.store.items import ITEM, item_at
from muniment.store.search import beginnings
from muniment.store.search.closest import nearest_keys
from muniment.store.search.ranking import of_name

MAX_NEAR: Final = 5
"""Documents that are named beside each other."""
_BATCH: Final = 400


class Named(NamedTuple):
    """A document with its name."""

    key: str
    name: str

    def __str__(self) -> str:
        return f"{self.key} ({self.name})"


def named(connection: sqlite3.Connection, kind: str, text: str) -> list[Named]:
    """Return at most five documents with the name *text*, without regard to case, accents, spaces and signs."""
    key = search_text.squeeze(text)
    if len(key) < 2:
        return []
    return _of(connection, kind, of_name(connection, kind, [search_text.NAME + key], MAX_NEAR))


def near(connection: sqlite3.Connection, kind: str, text: str) -> list[Named]:
    """Return at most five documents that *text*, which is no key, may mean."""
    shown = text[:MAX_SLUG_CHARACTERS]
    found = dict.fromkeys(named(connection, kind, shown))
    key = search_text.squeeze(shown)
    if key:
        begun = beginnings.names_with(connection, kind, key, MAX_NEAR) if len(key) > 1 else []
        former = of_name(connection, kind, [search_text.FORMER + key, *begun], MAX_NEAR)
        found |= dict.fromkeys(_of(connection, kind, former))
    similar = nearest_keys(connection, kind, shown)
    names = names_of(connection, [(kind, slug) for slug in similar])
    for slug in similar:
        if (kind, slug) in names:
            found[Named(slug, names[kind, slug])] = None
    return list(found)[:MAX_NEAR]


def names_of(connection: sqlite3.Connection, documents: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return the names of those of *documents*, pairs of kind and key, that are public."""
    by_kind: dict[str, list[str]] = {}
    for kind, key in documents:
        by_kind.setdefault(kind, []).append(key)
    condition = "d.kind = ? AND d.key IN (SELECT value FROM json_each(?))"
    names: dict[tuple[str, str], str] = {}
    for kind, keys in by_kind.items():
        for start in range(0, len(keys), _BATCH):
            batch = msgspec.json.encode(keys[start : start + _BATCH]).decode()
            for key, name in _rows(connection, kind, condition, (kind, batch)):
                names[kind, key] = name
    return names


def _of(connection: sqlite3.Connection, kind: str, positions: list[int]) -> list[Named]:
    found: list[Named] = []
    for position in positions:
        found += _rows(connection, kind, "d.kind = ? AND d.position = ?", (kind, position))
    return found


class _Called(msgspec.Struct, rename="camel"):
    name: str = ""
    framework_name: str = ""


def _rows(connection: sqlite3.Connection, kind: str, condition: str, values: tuple[object, ...]) -> list[Named]:
    statement = (
        f"SELECT d.key, i.position, {ITEM} FROM published_document d"
        f" JOIN published_item_{kind} i ON i.position = d.position"
    )
    rows = connection.execute(f"{statement} WHERE {condition}", values).fetchall()
    items = (
        (key, msgspec.json.decode(item_at(connection, kind, position, item), type=_Called))
        for key, position, item in rows
    )
    return [Named(key, item.name or item.framework_name) for key, item in items]
