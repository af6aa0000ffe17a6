"""
Retry on deadlock, serialization failure and lost connection, if nothing of the operation was committed.

PostgreSQL rolls back a transaction that conflicts with another one, and every uncommitted transaction of a lost
connection. Databases that speak its protocol often do the first under normal load.

Source: PostgreSQL's manual, section 13.5, and appendix A.
"""

import logging
import random
import re
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, ParamSpec, TypeVar

from django.db import (
    DatabaseError,
    DataError,
    InterfaceError,
    OperationalError,
    close_old_connections,
    connection,
    connections,
)

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest, Problem, Unavailable
from muniment.store.database import commits, patience
from muniment.store.database.commits import StandbySilent, Unconfirmed
from muniment.store.database.faults import (
    FAILED,
    READ_ONLY,
    UNOPENED,
    StoreAway,
    disk_fault,
    fault_of,
    is_of_store,
)

log = logging.getLogger(__name__)

TRIES: Final = 5
FIRST_PAUSE_S: Final = 0.01
RETRY_AFTER_S: Final = 5
_ROLLED_BACK: Final = frozenset({"40001", "40P01"})
_LOCK_TIMEOUT: Final = "55P03"
_GIVEN_UP: Final = frozenset({"57014", _LOCK_TIMEOUT})
"""SQLSTATEs of a canceled statement, and of a lock that was not granted in time: nothing was changed."""
_SYMPTOMS: Final = frozenset({FAILED, READ_ONLY, UNOPENED})
_AWAY: Final = ("08", "57", "53", "25006")
"""SQLSTATE prefixes: no connection, operator intervention, no resources, a server demoted to a replica."""

_REFUSED: Final = ("28", "3D", "42501")
"""SQLSTATE prefixes: invalid authorization, no such database, insufficient privilege."""
_REFUSED_WORDS: Final = re.compile(
    r"FATAL: +(?:password authentication failed|no pg_hba\.conf entry|role \".*\" (?:does not exist|is not permitted)"
    r"|database \".*\" does not exist|permission denied for database)"
)

P = ParamSpec("P")
R = TypeVar("R")


def with_retry(operation: Callable[P, R], *args: P.args, **kwargs: P.kwargs) -> R:
    """
    Return the result of *operation*, called again after a rolled-back attempt.

    It is called again only if it has committed nothing, so it must change nothing outside the database before
    its transaction ends. Every operation keeps to this.

    Raises:
        Unavailable: the database does not answer, rolled back every attempt, or no standby confirms the change; or a
            disk is full or read-only.
        BadRequest: a text contains NUL, which PostgreSQL cannot store.
    """
    if connection.in_atomic_block:
        return operation(*args, **kwargs)  # the outermost caller retries the whole transaction
    retry = _retry if connection.vendor == "postgresql" else _retry_on_sqlite
    try:
        return retry(partial(operation, *args, **kwargs))
    except (Problem, DatabaseError, InterfaceError):
        raise
    except Exception as error:
        if disk_fault(error):  # of a file beside the database
            raise disk_problem(error) from error
        if is_of_store(error):
            log.warning("the document store does not answer: %s", str(error).partition("\n")[0])
            raise StoreAway from error
        raise


def _retry(operation: Callable[[], R]) -> R:
    for number in range(TRIES):
        watch = _Watch()
        try:
            with connection.execute_wrapper(watch):
                return operation()
        except (DatabaseError, InterfaceError) as error:
            if isinstance(error, DataError) and "NUL (0x00)" in str(error):
                raise BadRequest("The input contains the character U+0000.", "Remove it and try again.") from error
            if isinstance(error, Unconfirmed | StandbySilent):
                raise _unconfirmed(may_have_changed=watch.may_have_changed) from error
            if is_given_up(error):
                commits.give_up()
                raise _given_up(may_have_changed=watch.may_have_changed) from error
            is_again = is_rolled_back(error)
            if not is_again and not is_unavailable(error):
                raise
            if watch.may_have_changed or number == TRIES - 1:
                raise _unavailable(is_conflict=is_again, may_have_changed=watch.may_have_changed) from error
        close_old_connections()
        time.sleep(FIRST_PAUSE_S * 2**number * random.uniform(0.5, 1.5))  # noqa: S311 - jitter, not security
    raise AssertionError  # the last attempt has returned or raised


def _retry_on_sqlite(operation: Callable[[], R]) -> R:
    """Call *operation* again if the file was opened while its disk was read-only, and can be written now."""
    watch = _Watch()
    for is_last in (False, True):
        try:
            with connection.execute_wrapper(watch):
                return operation()
        except DatabaseError as error:
            if not is_unavailable(error):
                raise
            if not disk_fault(error):
                commits.give_up()
                raise _given_up(may_have_changed=watch.may_have_changed) from error
            problem = disk_problem(error, may_have_changed=watch.may_have_changed)
            connection.close()
            if is_last or problem.is_current or watch.may_have_changed:
                raise problem from error
    raise AssertionError  # the last attempt has returned or raised


def release_connections() -> None:
    """Close those of this thread that must not be kept: they were opened on a disk that could not be written."""
    for each in connections.all(initialized_only=True):
        if each.close_at == 0.0 and not each.in_atomic_block:
            each.close()


def is_rolled_back(error: BaseException) -> bool:
    """Return whether the database rolled a transaction back because of a concurrent one."""
    return _state(error) in _ROLLED_BACK


def is_given_up(error: BaseException) -> bool:
    """Return whether a statement ended because its caller had waited for as long as it may; another attempt may not."""
    return _state(error) in _GIVEN_UP and patience.is_over()


def is_lock_timeout(error: BaseException) -> bool:
    """Return whether a statement waited for a lock for as long as ``lock_timeout`` lets it."""
    return _state(error) == _LOCK_TIMEOUT


def is_unavailable(error: BaseException) -> bool:
    if connection.vendor != "postgresql":
        if disk_fault(error):
            return True
        return isinstance(error, OperationalError) and ("locked" in str(error) or "busy" in str(error))
    state = _state(error)
    if state is None:
        return isinstance(error, OperationalError | InterfaceError)
    return state.startswith(_AWAY)


def is_refused(error: BaseException) -> bool:
    """
    Return whether PostgreSQL refuses this user or database, so that waiting does not help.

    A connection that fails has no SQLSTATE, only the server's words, which are English unless its operator chose
    another language: then it counts as away.
    """
    state = _state(error)
    if state is not None:
        return state.startswith(_REFUSED)
    return bool(_REFUSED_WORDS.search(str(error)))


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
            # SQLite takes a statement that fails back by itself; only a server may have done what it does not answer.
            has_no_effect = connection.vendor == "sqlite" or is_rolled_back(error) or is_given_up(error)
            self._autocommitted = self._autocommitted or (is_unavailable(error) and not has_no_effect)
            raise
        self._autocommitted = True
        return result


def _unconfirmed(*, may_have_changed: bool) -> Unavailable:
    if may_have_changed:
        message = "No standby has confirmed your change: it is saved now, but a failover of the database may lose it."
        return Unavailable(message, "Check the current state before you try again.", retry_after_s=RETRY_AFTER_S)
    return Unavailable(
        "No standby of the database confirms changes; nothing was saved. Public reads still work.",
        Phrase("Try again in {seconds} seconds.", seconds=RETRY_AFTER_S),
        retry_after_s=RETRY_AFTER_S,
    )


def _given_up(*, may_have_changed: bool) -> Unavailable:
    """Return the problem of a change that waited for others for as long as it may."""
    if may_have_changed:  # by an earlier transaction of the same operation
        return Unavailable(
            "Another change is in progress; your change may or may not have been saved.",
            "Check the current state before you try again.",
            retry_after_s=RETRY_AFTER_S,
        )
    return Unavailable(
        "Another change is in progress; nothing was saved.", "Try again in a moment.", retry_after_s=RETRY_AFTER_S
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
        Phrase("Try again in {seconds} seconds.", seconds=RETRY_AFTER_S),
        retry_after_s=RETRY_AFTER_S,
    )


class DiskFault(Unavailable):
    """
    A disk refuses the write.

    Args:
        fault: the fault in words.
        is_current: whether the disk still refuses it, so that another attempt is useless.
        may_have_changed: whether an earlier transaction of the same operation was committed.
    """

    def __init__(self, fault: str, *, is_current: bool, may_have_changed: bool = False) -> None:
        is_unsure = fault == FAILED or may_have_changed
        saved = Phrase("The change may or may not have been saved") if is_unsure else Phrase("Nothing was saved")
        super().__init__(
            Phrase("{saved}: {fault}. Public reads still work.", saved=saved, fault=Phrase(fault)),
            "Try again later; the operator of this registry has to fix it.",
            retry_after_s=RETRY_AFTER_S,
        )
        self.fault, self.is_current = fault, is_current


def disk_problem(error: BaseException, *, may_have_changed: bool = False) -> DiskFault:
    """Return the problem of a write that a disk refused; SQLite's message may name a symptom of a full disk."""
    fault, found = disk_fault(error), ""
    if fault in _SYMPTOMS and connection.vendor == "sqlite":
        found = fault_of(Path(connection.settings_dict["NAME"]).parent)
    is_current = bool(found) or fault not in _SYMPTOMS
    return DiskFault(found or fault, is_current=is_current, may_have_changed=may_have_changed)
