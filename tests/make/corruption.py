"""Damage SQLite files as failing disks and people with an editor do."""

import enum
import sqlite3
from contextlib import closing
from pathlib import Path

HEAD_BYTES = 100
"""The head of the file, before the head of the first page."""


class Page(enum.Enum):
    """Kinds of pages, by the first byte of their head."""

    INTERIOR_INDEX = 2
    INTERIOR_TABLE = 5
    LEAF_INDEX = 10
    LEAF_TABLE = 13


def page_size(file: Path) -> int:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        found: int = connection.execute("PRAGMA page_size").fetchone()[0]
    return found


def pages(file: Path, name: str, kind: Page | None) -> list[int]:
    """
    Return the numbers of the pages of a table or index, in the order of its tree, its root first.

    Args:
        kind: of this kind alone; None returns all of them.
    """
    size, found = page_size(file), []
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        root: int = connection.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (name,)).fetchone()[0]
    content = file.read_bytes()
    waiting = [root]
    while waiting:
        number = waiting.pop(0)
        page = content[(number - 1) * size : number * size]
        head = HEAD_BYTES if number == 1 else 0
        if kind is None or page[head] == kind.value:
            found.append(number)
        if page[head] in {Page.INTERIOR_INDEX.value, Page.INTERIOR_TABLE.value}:
            cells = int.from_bytes(page[head + 3 : head + 5])
            places = [int.from_bytes(page[head + 12 + 2 * n : head + 14 + 2 * n]) for n in range(cells)]
            waiting += [int.from_bytes(page[place : place + 4]) for place in places]
            waiting.append(int.from_bytes(page[head + 8 : head + 12]))
    return found


def damage(file: Path, number: int, *, at: int, content: bytes) -> None:
    """Overwrite bytes of a page."""
    with file.open("r+b") as opened:
        opened.seek((number - 1) * page_size(file) + at)
        opened.write(content)


def flip(file: Path, wanted: bytes, *, bit: int = 0) -> None:
    """Flip a bit in the middle of the only place that holds the bytes *wanted*."""
    content = file.read_bytes()
    assert content.count(wanted) == 1, f"{wanted!r} is there {content.count(wanted)} times"
    place = content.index(wanted) + len(wanted) // 2
    with file.open("r+b") as opened:
        opened.seek(place)
        opened.write(bytes([content[place] ^ 1 << bit]))


def checkpoint(file: Path) -> None:
    """Move the write-ahead log into the file, so that the pages can be damaged."""
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")


def change_behind_index(file: Path, index: str, statement: str) -> None:
    """Run a statement that changes a table, but not one of its indexes."""
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        row = own.execute("SELECT * FROM sqlite_master WHERE name = ?", (index,)).fetchone()
        own.execute("PRAGMA writable_schema=ON")
        own.execute("DELETE FROM sqlite_master WHERE name = ?", (index,))
    with closing(sqlite3.connect(file, isolation_level=None)) as own:
        own.execute(statement)
        own.execute("PRAGMA writable_schema=ON")
        own.execute("INSERT INTO sqlite_master VALUES (?, ?, ?, ?, ?)", row)
