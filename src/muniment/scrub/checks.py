"""The checks of what is stored. Features register theirs; the scrub and `muniment doctor --deep` run all of them."""

import sqlite3
from collections.abc import Callable, Iterator
from typing import Final

import msgspec
from django.db import DatabaseError, OperationalError

RESTORE: Final = "restore the latest good backup: see docs/BACKUP.md"
_DAMAGED: Final = (DatabaseError, sqlite3.DatabaseError, msgspec.MsgspecError)
_AWAY: Final = (OperationalError, sqlite3.OperationalError)
"""Errors of a database that does not answer, or is busy: they say nothing about what it stores."""


class Damage(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """
    Something that is not as it must be.

    Args:
        check: the name of the check that found it.
        subject: what is damaged, such as ``companies/quillmere``.
        says: what is wrong.
        remedy: what the operator should do; what was done, if it is mended.
        is_mended: it was made again from its source.
        is_minor: it heals by itself, and nothing wrong is shown until then.
    """

    check: str
    subject: str
    says: str
    remedy: str
    is_mended: bool = False
    is_minor: bool = False

    def __str__(self) -> str:
        return f"{self.subject}: {self.says}; {self.remedy}"


class Slice(msgspec.Struct, frozen=True):
    """
    The result of a part of a check.

    Args:
        examined: the number of items.
        after: where the next part continues; None at the end.
    """

    examined: int
    damages: list[Damage]
    after: str | None


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """
    A check.

    Args:
        name: a noun, as `muniment doctor` prints it.
        fine: what `doctor` says if nothing is damaged.
        count: returns the number of items, so that a pass can be spread over its time.
        look: examines at most so many items after a place, the first ones after ``""``, and mends them if asked to.
    """

    name: str
    fine: str
    count: Callable[[], int]
    look: Callable[[str, int, bool], Slice]

    def part(self, after: str, limit: int, *, mend: bool) -> Slice:
        """
        Run :attr:`look`; what cannot even be decoded is damaged.

        Raises:
            Exception: the database or the document store does not answer.
        """
        try:
            return self.look(after, limit, mend)
        except _AWAY:
            raise
        except _DAMAGED as error:
            says = f"cannot be read: {str(error).strip() or type(error).__name__}"
            remedy = f"see the checks of the database above; {RESTORE}"
            return Slice(0, [Damage(check=self.name, subject=self.name, says=says, remedy=remedy)], None)

    def size(self) -> int:
        """Return :attr:`count`; 1 if it cannot be read, which the check itself then reports."""
        try:
            return self.count()
        except _AWAY:
            raise
        except _DAMAGED:
            return 1

    def whole(self, *, mend: bool = False, limit: int = 500) -> Iterator[Slice]:
        """Run the whole check in parts."""
        after: str | None = ""
        while after is not None:
            found = self.part(after, limit, mend=mend)
            yield found
            after = found.after


_checks: dict[str, Check] = {}


def register(check: Check) -> None:
    _checks[check.name] = check


def checks() -> list[Check]:
    """Return the checks in the order of their registration: the database first."""
    return list(_checks.values())


def in_order(keys: list[str], after: str, limit: int) -> tuple[list[str], str | None]:
    """Return at most *limit* of *keys* after the one named *after*, and the last one, or None at the end."""
    start = keys.index(after) + 1 if after in keys else 0
    chosen = keys[start : start + limit]
    return chosen, (chosen[-1] if start + limit < len(keys) else None)
