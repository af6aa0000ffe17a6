"""
``Last-Modified`` as proof that a client has the present version, although it counts whole seconds.

A *stamp* is an even second that belongs to one version of a resource alone: later versions of the same two seconds get
the following even ones, so that stamps only rise, also if the clock was set back or the transaction took long. While
a stamp is still ahead, and where none is known, an odd second is shown, which never answers a conditional request. A
state that was lost by a failover or restored from a backup never has the date of another one.

Documents carry the stamp of their last change; lists, statistics and pages that of the edition, and at least the time
from which this server composed them.

Source: RFC 9110, sections 8.8.2 and 13.1.3.
"""

import sqlite3
import time
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, Final

from muniment.kernel.http.content_negotiation import http_date

Connection = Any
"""A connection of sqlite3 or of psycopg; both execute statements alike."""

TABLE: Final = """CREATE TABLE IF NOT EXISTS published_modified (
    id integer PRIMARY KEY CHECK (id = 1), edition bigint NOT NULL, at text NOT NULL)"""
"""The stamp of the latest edition that has one."""
_CHARACTERS: Final = len("2026-11-22T10:00:04Z")
_SLOT_S: Final = 2
_seen = ""
"""The present second when the clock was read last: most stamps are older, and need no look at it."""


def is_stamp(moment: str) -> bool:
    """Return whether *moment* is a stamp; other times have microseconds."""
    return len(moment) == _CHARACTERS


def stamp_after(moment: str, former: str = "") -> str:
    """Return the stamp of a change at *moment* to a resource whose last stamp is *former*."""
    wanted = _even(moment)
    return max(wanted, _moved(former, _SLOT_S)) if former else wanted


def stamp_from(moment: str) -> str:
    """Return the first stamp that is not before *moment*."""
    return _moved(_even(moment), _SLOT_S)


def proves(if_modified_since: bytes, moment: str) -> bool:
    """
    Return whether an ``If-Modified-Since`` value proves that the client has the version of *moment*.

    A later date proves nothing: the copy may be from a node that lagged, or of a history that was lost.
    """
    return bool(if_modified_since) and is_stamp(moment) and if_modified_since.strip() == http_date(moment)


def shown(moment: str) -> str:
    """Return the second to show of a stamp, or of another time, which is never a stamp."""
    if len(moment) == _CHARACTERS and (moment <= _seen or moment <= present()):
        return moment
    return _odd(min(moment, present())[: _CHARACTERS - 1])


def is_ahead(moment: str) -> bool:
    return is_stamp(moment) and moment > present()


def present() -> str:
    global _seen  # noqa: PLW0603 - the clock of the process
    _seen = second(int(time.time()))
    return _seen


@lru_cache(maxsize=4)
def second(since_1970: int) -> str:
    return f"{datetime.fromtimestamp(since_1970, UTC):%Y-%m-%dT%H:%M:%SZ}"


def _even(moment: str) -> str:
    return _moved(moment, -(int(moment[18]) % _SLOT_S))


@lru_cache(maxsize=256)
def _odd(moment: str) -> str:
    return _moved(moment, int(moment[18]) % _SLOT_S - 1)


@lru_cache(maxsize=256)
def _moved(moment: str, by_s: int) -> str:
    moved = datetime.fromisoformat(moment[: _CHARACTERS - 1]) + timedelta(seconds=by_s)
    return f"{moved.isoformat(timespec='seconds')}Z"


def last(connection: Connection) -> tuple[int, str]:
    """Return the latest edition with a stamp, and the stamp; -1 and an empty text without any."""
    row = connection.execute("SELECT edition, at FROM published_modified").fetchone()
    return row or (-1, "")


def put(connection: Connection, edition: int, stamp: str) -> None:
    """Write the stamp of *edition*, in the caller's transaction."""
    statement = (
        "INSERT INTO published_modified (id, edition, at) VALUES (1, %s, %s)"
        " ON CONFLICT (id) DO UPDATE SET edition = excluded.edition, at = excluded.at"
    )
    is_sqlite = isinstance(connection, sqlite3.Connection)
    connection.execute(statement.replace("%s", "?") if is_sqlite else statement, (edition, stamp))
