"""
Retry on deadlock, serialization failure and lost connection, if nothing of the operation was committed.

PostgreSQL rolls back a transaction that conflicts with another one, and every uncommitted transaction of a lost
connection. Databases that speak its protocol often do the first under normal load.

Source: PostgreSQL's manual, section 13.5, and appendix A.
"""

import random
import time
from collections.abc import Callable
from typing import Any, Final, ParamSpec, TypeVar

from django.db import DatabaseError, DataError, InterfaceError, OperationalError, close_old_connections, connection

from muniment.kernel.problems import BadRequest, Unavailable
from muniment.store.database.commits import StandbySilent, Unconfirmed

TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.01
RETRY_AFTER_S: Final = 5
_ROLLED_BACK: Final = frozenset({"40001", "40P01"})
_AWAY: Final = ("08", "57", "53", "25006")
"""SQLSTATE prefixes: no connection, operator intervention, no resources, a server demoted to a replica."""

P = ParamSpec("P")
R = TypeVar("R")


def with_retry(operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """
    Return the result of *operation*, called again after a rolled-back attempt.

    It is called again only if it has committed nothing, so it must change nothing outside the database before
    its transaction ends. Every operation keeps to this.

    Raises:
        Unavailable: the database does not answer, rolled back every attempt, or no standby confirms the change.
        BadRequest: a text contains NUL, which PostgreSQL cannot store.
    """
    if connection.in_atomic_block:
        return operation(*args, **kwargs)  # the outermost caller retries the whole transaction
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
                raise BadRequest("The input contains the character U+0000.", "Remove it and try again.") from error
            if isinstance(error, Unconfirmed | StandbySilent):
                raise _unconfirmed(may_have_changed=watch.may_have_changed) from error
            is_again = is_rolled_back(error)
            if not is_again and not is_unavailable(error):
                raise
            if not is_shared or watch.may_have_changed or number == TRIES - 1:
                raise _unavailable(
                    is_conflict=is_again or not is_shared, may_have_changed=watch.may_have_changed
                ) from error
        close_old_connections()
        time.sleep(FIRST_PAUSE_S * 2**number * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not security
    raise AssertionError  # the last attempt has returned or raised


def is_rolled_back(error: BaseException) -> bool:
    """Return whether the database rolled a transaction back because of a concurrent one."""
    return _state(error) in _ROLLED_BACK


def is_unavailable(error: BaseException) -> bool:
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
    """Detects whether an attempt may have changed data: a commit was sent, or a statement ran in autocommit mode."""

    def __init__(self) -> None:
        self._commits: int = getattr(connection, "commits", 0)
        self._autocommitted = False

    @property
    def may_have_changed(self) -> bool:
        return self._autocommitted or getattr(connection, "commits", 0) != self._commits

    def __call__(self, execute: Callable[..., Any], sql: Any, params: Any, many: bool, context: Any) -> Any:  # noqa: FBT001 - Django's signature
        if connection.in_atomic_block or str(sql).lstrip()[:6].upper() == "SELECT":
            return execute(sql, params, many, context)
        try:
            result = execute(sql, params, many, context)
        except Exception as error:
            self._autocommitted = self._autocommitted or (is_unavailable(error) and not is_rolled_back(error))
            raise
        self._autocommitted = True
        return result


def _unconfirmed(*, may_have_changed: bool) -> Unavailable:
    if may_have_changed:
        message = "No standby has confirmed your change: it is saved now, but a failover of the database may lose it."
        return Unavailable(message, "Check the current state before you try again.", retry_after_s=RETRY_AFTER_S)
    return Unavailable(
        "No standby of the database confirms changes; nothing was saved. Public reads still work.",
        f"Try again in {RETRY_AFTER_S} seconds.",
        retry_after_s=RETRY_AFTER_S,
    )


def _unavailable(*, is_conflict: bool, may_have_changed: bool) -> Unavailable:
    if may_have_changed:
        return Unavailable(
            "The database connection was lost; your change may or may not have been saved.",
            "Check the current state before you try again.",
            retry_after_s=RETRY_AFTER_S,
        )
    if is_conflict:
        return Unavailable("Another change is in progress; nothing was saved.", "Try again in a moment.")
    return Unavailable(
        "The database is unavailable; nothing was saved. Public reads still work.",
        f"Try again in {RETRY_AFTER_S} seconds.",
        retry_after_s=RETRY_AFTER_S,
    )
