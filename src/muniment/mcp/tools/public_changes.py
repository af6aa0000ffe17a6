"""
The handler of `changes_since`: what was published, updated or unlisted, of every kind, from the change feed.

Source: tools, Public server; decisions, section 2.
"""

from collections.abc import Awaitable, Iterable
from typing import Final

import msgspec

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import BadRequest
from muniment.mcp import provenance
from muniment.mcp.declarations import Arguments, Caller, Marked
from muniment.mcp.tools.public_answers import PublicAnswers
from muniment.schema.filters import parse_moment
from muniment.store.change_feed import ChangeRow, FeedAheadError, FeedGapError, change_rows, number_before
from muniment.store.search.names import names_of
from muniment.store.snapshot_state import changes_after

MAX_ENTRIES: Final = 100
_MAX_SHOWN: Final = 60
_MAX_DIGITS: Final = 15
_PUBLISHED: Final = "published"
_UPDATED: Final = "updated"


class ChangeTools(PublicAnswers):
    """The handler."""

    def changes_since(self, arguments: Arguments, _: Caller) -> Marked | Awaitable[Marked]:
        """
        Return the changes since a time, or since an earlier answer: each document once, with all that changed of it.

        Raises:
            BadRequest: `since` is neither, or the feed no longer goes back that far.
        """
        since: str = arguments["since"].strip()
        number = int(since) if since.isdecimal() and len(since) <= _MAX_DIGITS else None
        at = "" if number is not None else _moment(since)

        def make() -> Marked:
            with self.reader.snapshot() as (connection, state):
                after = number_before(connection, at) if number is None else number
                try:
                    found = changes_after(connection, state, after, MAX_ENTRIES, None, is_level=True)
                except (FeedGapError, FeedAheadError):
                    raise BadRequest(
                        f"since is {since}, which is no nextSince of this feed, or one that is too old.",
                        f"Call again with a date or time; the latest nextSince is {state.edition}.",
                    ) from None
                oldest = change_rows(connection, "ORDER BY sequence LIMIT 1") if at else []
                summed = _sum_of_changes(found.rows)
                known = names_of(connection, summed)
            rows = [
                {
                    "kind": row.kind,
                    "id": row.key,
                    **({"name": known[row.kind, row.key]} if (row.kind, row.key) in known else {}),
                    "change": row.change,
                    "at": row.at,
                    **({} if row.fields is None else {"fields": row.fields}),
                }
                for row in summed.values()
            ]
            left = found.edition - found.next_after
            answer: JSONObject = {"data": rows, "nextSince": str(found.next_after), "left": left}
            if oldest and oldest[0].at >= at and oldest[0].sequence > 1:
                answer["hint"] = f"Earlier changes than those of {oldest[0].at} are no longer recorded."
            named = self.reader.documents([name for name in summed if name in known])
            marks = [(kind, document.provenance[0]) for (kind, _), document in named.items()]
            return provenance.of_several(msgspec.json.encode(answer), marks)

        return self._cached(("mcp", "changes", since), ("*",), make)


def _sum_of_changes(rows: Iterable[ChangeRow]) -> dict[tuple[str, str], ChangeRow]:
    """
    Return one entry for each document: its latest, with the members that any of its entries changed.

    A document that was published meanwhile is new to the reader, whatever was changed afterwards. Where an update does
    not say what it changed, the sum is unknown too.
    """
    found: dict[tuple[str, str], ChangeRow] = {}
    for row in rows:
        former = found.get((row.kind, row.key))
        if former is not None and row.change == _UPDATED:
            if former.change == _PUBLISHED:
                row = row._replace(change=_PUBLISHED, fields=None)  # noqa: PLW2901 - the sum takes its place
            elif former.change == _UPDATED:
                fields = _both(former.fields, row.fields)
                row = row._replace(fields=fields)  # noqa: PLW2901 - as above
        found[row.kind, row.key] = row
    return found


def _both(one: tuple[str, ...] | None, other: tuple[str, ...] | None) -> tuple[str, ...] | None:
    """Return the members of two changes, in the order in which they were changed first; None if one is unknown."""
    return None if one is None or other is None else tuple(dict.fromkeys((*one, *other)))


def _moment(since: str) -> str:
    try:
        return parse_moment(since)
    except ValueError:
        raise BadRequest(
            f"since takes a date, an RFC 3339 time or the nextSince of an earlier answer, not {since[:_MAX_SHOWN]!r}.",
            "Call again with since as 2026-01-31, for example.",
        ) from None
