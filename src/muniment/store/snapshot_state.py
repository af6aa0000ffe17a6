"""Index state of one edition of the published file, cached in memory, and the changes between two editions."""

import sqlite3
from itertools import accumulate, count
from typing import Final, NamedTuple

from muniment.store import published
from muniment.store.cache import Dependency
from muniment.store.published import (
    ALL_CHANGES,
    Changes,
    FeedAheadError,
    FeedDivergedError,
    FeedGapError,
    WantedChanges,
    chain_after,
    chained_rows,
    feed_of,
)
from muniment.store.published_document import KINDS


class SnapshotState(NamedTuple):
    """
    The state of one edition: totals, blocks in descending order, and their cumulative sums.

    Args:
        build: another number for each epoch that this process has read.
        version: a number for caches: the edition, and the build above its digits, so that no state passes for another.
        versions: for each kind, the version that changed it last.
        modified_at: the stamp of the edition, or *at* if it has none.
    """

    epoch: str
    build: int
    version: int
    edition: int
    at: str
    totals: dict[str, tuple[int, int, int]]
    versions: dict[str, int]
    blocks: dict[str, list[int]]
    sums: dict[str, list[int]]
    modified_at: str

    @property
    def feed_id(self) -> str:
        """Return the id of the feed that the sequence numbers belong to; new after a restore or a rebuild."""
        return feed_of(self.epoch)


_builds = count(1)


def load(connection: sqlite3.Connection, former: SnapshotState | None, *, since: str = "") -> SnapshotState:
    """Read the state of the open snapshot; *since*: the least stamp of what this server composes."""
    edition, epoch, at = connection.execute("SELECT edition, epoch, at FROM published_meta").fetchone()
    rows = connection.execute("SELECT kind, n, raising, treasury_minor FROM published_total")
    totals = {kind: (n, raising, int(treasury_minor)) for kind, n, raising, treasury_minor in rows}
    if former is None:
        build = 0
    elif former.epoch == epoch:
        build = former.build
    else:
        build = next(_builds)
    version = build << 64 | edition
    versions: dict[str, int] = dict.fromkeys(KINDS, version)
    if former is not None and former.epoch == epoch and former.edition < edition:
        for kind in set(KINDS) - _kinds_changed(connection, former.edition, edition):
            versions[kind] = former.versions[kind]
    blocks, sums = _blocks(connection)
    stamped, stamp = published.last_stamp(connection)
    modified_at = max(stamp, since) if stamped == edition or not at else at
    return SnapshotState(epoch, build, version, edition, at, totals, versions, blocks, sums, modified_at)


def _blocks(connection: sqlite3.Connection) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Return the first positions of the blocks of each kind, the last block first, and the sums of their documents."""
    blocks: dict[str, list[int]] = {kind: [] for kind in KINDS}
    counts: dict[str, list[int]] = {kind: [] for kind in KINDS}
    for kind, first, n in connection.execute("SELECT kind, first, n FROM published_block ORDER BY kind, first DESC"):
        blocks[kind].append(first)
        counts[kind].append(n)
    sums: dict[str, list[int]] = {kind: list(accumulate(counts[kind])) for kind in KINDS}
    return blocks, sums


def _kinds_changed(connection: sqlite3.Connection, after: int, edition: int) -> set[str]:
    rows = connection.execute("SELECT kind, sequence FROM published_change WHERE sequence > ?", (after,)).fetchall()
    if len(rows) != edition - after:
        return set(KINDS)
    return {row[0] for row in rows}


MANY_CHANGES: Final = 5_000
"""Beyond this, dropping everything is cheaper than dropping single entries."""


def changed_dependencies(
    connection: sqlite3.Connection, former: SnapshotState, state: SnapshotState
) -> set[Dependency] | None:
    """Return what changed between two states, or None if unknown or too much."""
    missed = state.edition - former.edition
    if state.epoch != former.epoch or not 0 < missed <= MANY_CHANGES:
        return None
    rows = connection.execute(
        "SELECT kind, key FROM published_change WHERE sequence > ? AND sequence <= ?", (former.edition, state.edition)
    ).fetchall()
    if len(rows) != missed:
        return None
    documents = set(rows)
    # Lists and statistics depend on their kinds; the feed and the time of the last change depend on everything.
    return documents | {(kind, "*") for kind, _ in rows} | {("*", "*")}


MAX_LOOKED_AT: Final = 10_000
"""Entries of the feed that one request looks at for those that it wants: 1 ms."""


def changes_after(
    connection: sqlite3.Connection,
    state: SnapshotState,
    after: int,
    limit: int,
    chain: str | None,
    *,
    is_level: bool,
    wanted: WantedChanges = ALL_CHANGES,
) -> Changes:
    """Return changes as :meth:`muniment.store.reader.Reader.changes`; *is_level*: the source has no later ones."""
    if after > state.edition and is_level:
        raise FeedAheadError(after)
    (oldest,) = connection.execute("SELECT min(sequence) FROM published_change").fetchone()
    if after < (oldest or state.edition + 1) - 1:
        raise FeedGapError(after)
    known = chain_after(connection, after)
    if chain is not None and known != chain:
        if is_level:
            raise FeedDivergedError(after)
        # Whether the source has this past is unknown; the next request may be answered otherwise.
        return Changes([], after, state.feed_id, state.edition, state.at, -1, None)
    until = state.edition if wanted == ALL_CHANGES else min(after + MAX_LOOKED_AT, state.edition)
    rows = chained_rows(connection, after, limit, wanted=wanted, until=until)
    if len(rows) == limit or (rows and wanted == ALL_CHANGES):
        last, chain = rows[-1].sequence, rows[-1].chain
    elif until > after:  # those between are not wanted, and need not be looked at again
        last, chain = until, chain_after(connection, until)
    else:
        last, chain = after, known
    return Changes(rows, last, state.feed_id, state.edition, state.modified_at, state.version, chain)
