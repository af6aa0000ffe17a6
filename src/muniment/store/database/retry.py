"""
What the database takes back is tried again where nothing of it stands; what cannot be is refused with a way out.

PostgreSQL takes back a transaction that met another one (serialization failure, deadlock), and with a lost
connection whatever it had not committed. Clusters that speak its protocol do the first as a matter of course.

Source: PostgreSQL's manual, section 13.5, and appendix A.
"""

import random
import time
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from django.db import DatabaseError, DataError, InterfaceError, OperationalError, close_old_connections, connection

from muniment.kernel.problems import BadRequest, Unavailable

TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.01
RETRY_AFTER_S: Final = 5
_TAKEN_BACK: Final = frozenset({"40001", "40P01"})
_AWAY: Final = ("08", "57", "53", "25006")
"""Beginnings of states: no connection, an operator's intervention, no resources, a server that has become a copy."""

P = ParamSpec("P")
R = TypeVar("R")


def attempted(operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """
    Give what *operation* gives, which may be called several times: what it did before was taken back then.

    It is called again only if it has asked for no commit. So it must keep nothing but in the database until its
    transaction is over, which holds for every operation.

    Raises:
        Unavailable: the database does not answer, or took it back too often.
        BadRequest: PostgreSQL was asked for a text with NUL, which it cannot hold; SQLite finds nothing of that name.
    """
    if connection.in_atomic_block:
        return operation(*args, **kwargs)  # whoever began the transaction begins it anew
    is_shared = connection.vendor == "postgresql"
    for number in range(TRIES):
        watch = _Watch()
        try:
            if not is_shared:
                return operation(*args, **kwargs)
            with connection.execute_wrapper(watch):
                return operation(*args, **kwargs)
        except (DatabaseError, InterfaceError) as error:
            if isinstance(error, DataError) and "NUL (0x00)" in str(error):
                raise BadRequest("What was sent holds the character U+0000.", "Send it again without that.") from error
            is_again = is_taken_back(error)
            if not is_again and not is_away(error):
                raise
            if not is_shared or watch.stands or number == TRIES - 1:
                raise _refusal(is_busy=is_again or not is_shared, stands=watch.stands) from error
        close_old_connections()
        time.sleep(FIRST_PAUSE_S * 2**number * random.uniform(0.5, 1.5))  # noqa: S311 - spreads, guards nothing
    raise AssertionError  # the last try has given or raised


def is_taken_back(error: BaseException) -> bool:
    """Tell whether a transaction was taken back because of another one."""
    return _state(error) in _TAKEN_BACK


def is_away(error: BaseException) -> bool:
    """Tell whether the database does not answer, or has no room just now."""
    if connection.vendor != "postgresql":
        return isinstance(error, OperationalError) and ("locked" in str(error) or "busy" in str(error))
    state = _state(error)
    if state is None:
        return isinstance(error, OperationalError | InterfaceError)
    return state.startswith(_AWAY)


def _state(error: BaseException) -> str | None:
    state = getattr(error, "sqlstate", None) or getattr(error.__cause__, "sqlstate", None)
    return state if isinstance(state, str) else None


class _Watch:
    """Sees whether anything of one try may stand: a commit was asked for, or a statement changed something alone."""

    def __init__(self) -> None:
        self._commits: int = getattr(connection, "commits", 0)
        self._alone = False

    @property
    def stands(self) -> bool:
        return self._alone or getattr(connection, "commits", 0) != self._commits

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's signature
        if connection.in_atomic_block or str(sql).lstrip()[:6].upper() == "SELECT":
            return execute(sql, params, many, context)
        try:
            result = execute(sql, params, many, context)
        except Exception as error:
            self._alone = self._alone or (is_away(error) and not is_taken_back(error))
            raise
        self._alone = True
        return result


def _refusal(*, is_busy: bool, stands: bool) -> Unavailable:
    if stands:
        return Unavailable(
            "The database went away meanwhile; it is not known whether this was done.",
            "Look at what stands before you send it again.",
            retry_after_s=RETRY_AFTER_S,
        )
    if is_busy:
        return Unavailable("Others are changing the same; nothing was done.", "Try again in a moment.")
    return Unavailable(
        "The database does not answer; nothing was done. Public reads go on.",
        f"Try again in {RETRY_AFTER_S} seconds.",
        retry_after_s=RETRY_AFTER_S,
    )
