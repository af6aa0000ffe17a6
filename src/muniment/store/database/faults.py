"""Faults of a disk or a database file: what an error means, in words for clients and operators."""

import contextlib
import errno
import logging
import os
import re
import sqlite3
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from muniment.kernel.phrases.phrase import marked
from muniment.kernel.problems import Internal, Problem, Unavailable
from muniment.outbound.deadlines import StillSilent

log = logging.getLogger(__name__)

FULL: Final = marked("the disk is full")
READ_ONLY: Final = marked("the disk is read-only")
FAILED: Final = marked("the disk does not work")
UNOPENED: Final = marked("the database file cannot be opened")
DAMAGED: Final = marked("the database file is damaged")
PROBE_BYTES: Final = 64 << 10
"""Enough for the shared memory of a write-ahead log, without which SQLite opens no database."""

damage_seen: Final = threading.Event()
"""Whether this process has read damage in the published file; cleared by the one that builds it again."""
_UNDECODED: Final = "Could not decode to UTF-8"
"""The message of sqlite3 for text that is not UTF-8; this error has no code."""

_BY_ERRNO: Final = {
    errno.ENOSPC: FULL,
    errno.EDQUOT: FULL,
    errno.EROFS: READ_ONLY,
    errno.EIO: FAILED,
}
_BY_CODE: Final = {
    sqlite3.SQLITE_FULL: FULL,
    sqlite3.SQLITE_READONLY: READ_ONLY,
    sqlite3.SQLITE_IOERR: FAILED,
    sqlite3.SQLITE_CANTOPEN: UNOPENED,
    sqlite3.SQLITE_CORRUPT: DAMAGED,
    sqlite3.SQLITE_NOTADB: DAMAGED,
}
_OF_STORE: Final = re.compile(r"\(os error (\d+)\)")
"""The number of a system error in a message of the object store."""


def disk_fault(error: BaseException | None) -> str:
    """Return the fault that *error*, or an error that caused it, reports; an empty string if it reports none."""
    while error is not None:
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None:
            return _BY_CODE.get(code & 0xFF, "")
        if isinstance(error, sqlite3.OperationalError) and str(error).startswith(_UNDECODED):
            return DAMAGED
        if isinstance(error, OSError) and error.errno in _BY_ERRNO:
            return _BY_ERRNO[error.errno]
        if type(error).__module__.startswith("obstore"):
            number = _OF_STORE.search(str(error))
            if number:
                return _BY_ERRNO.get(int(number[1]), "")
        error = error.__cause__
    return ""


def is_of_store(error: BaseException | None) -> bool:
    """Return whether *error* is of a document store that refuses or is silent, and does not only lack a file."""
    if error is None or isinstance(error, FileNotFoundError):
        return False
    is_fault = isinstance(error, StillSilent) or type(error).__module__.startswith("obstore")
    return is_fault or getattr(error, "is_store_fault", False) or is_of_store(error.__cause__)


class StoreAway(Unavailable):
    """The document store did not complete a request."""

    def __init__(self) -> None:
        message = "The document store does not answer, so the document was neither stored nor read."
        super().__init__(message, "Try again in a moment.", retry_after_s=5)


def is_damage(error: BaseException | None) -> bool:
    """Return whether *error* says that a database file is damaged or no database."""
    return disk_fault(error) == DAMAGED


def notice(error: BaseException) -> bool:
    """Return whether *error* says that a database file is damaged, and note it."""
    if is_damage(error):
        damages_read.count_pages()
        damage_seen.set()
        return True
    return False


class DamagedDocument(Unavailable):
    """A published document does not have its digest. It is not sent, and is published again from its source."""

    def __init__(self) -> None:
        message = "This document is damaged and is being published again."
        super().__init__(message, "Try again in a moment.", retry_after_s=2)


REST_S: Final = 1.0
"""Seconds after an attempt to mend a document before a read can ask for another one; each attempt doubles them."""
LONGEST_REST_S: Final = 60.0


class _Rest(NamedTuple):
    """The pause of a document after an attempt to mend it."""

    ends_at: float
    seconds: float


class DamagesRead:
    """
    The damage that this process has met while reading: how often, and the documents that wait to be mended.

    Some documents stay damaged, for example one whose source is damaged, too. Readers cannot have such a document
    mended, logged and recorded more often than once a minute, however often they ask for it.
    """

    def __init__(self) -> None:
        self.counts = {"documents": 0, "pages": 0}
        """Totals by what was damaged, for the metrics."""
        self._waiting: set[tuple[str, str]] = set()
        self._rests: dict[tuple[str, str], _Rest] = {}
        self._lock = threading.Lock()

    def document(self, kind: str, key: str) -> DamagedDocument:
        """Note a damaged document, and return the error for the request. It counts once for each attempt to mend it."""
        with self._lock:
            rest = self._rests.get((kind, key))
            is_resting = rest is not None and time.monotonic() < rest.ends_at
            if (kind, key) not in self._waiting and not is_resting:
                self._waiting.add((kind, key))
                self.counts["documents"] += 1
                log.error("the published document %s %s does not have its digest; it is not shown", kind, key)
        return DamagedDocument()

    def count_pages(self) -> None:
        with self._lock:
            self.counts["pages"] += 1

    def take_documents(self) -> list[tuple[str, str]]:
        """Return the documents to mend; they are no longer waiting."""
        if not self._waiting:
            return []
        with self._lock:
            taken, self._waiting = sorted(self._waiting), set()
            self._let_rest(taken)
        return taken

    def _let_rest(self, names: list[tuple[str, str]]) -> None:
        """Begin the pause of documents that are being mended. Requires the lock."""
        now = time.monotonic()
        for name, rest in list(self._rests.items()):
            if now > rest.ends_at + LONGEST_REST_S:  # it was mended: damage that is found later is another one
                del self._rests[name]
        for name in names:
            former = self._rests.get(name)
            seconds = REST_S if former is None else min(2 * former.seconds, LONGEST_REST_S)
            self._rests[name] = _Rest(now + seconds, seconds)


damages_read: Final = DamagesRead()


TRACED_EVERY_S: Final = 60.0
"""Seconds between two traces of damage in the log: every request of a damaged page meets it."""
_traced_at = float("-inf")


def log_failure(logger: logging.Logger, error: Exception, message: str, *values: object) -> None:
    """Log a request that failed with *error*, which nothing expected; its trace, but that of damage only at times."""
    global _traced_at  # noqa: PLW0603 - of this process
    if not is_damage(error):
        logger.error(message, *values, exc_info=error)
    elif time.monotonic() - _traced_at >= TRACED_EVERY_S:
        _traced_at = time.monotonic()
        logger.error(message, *values, exc_info=error)
    else:
        logger.error(f"{message}: %s", *values, error)  # noqa: G004 - it is a constant of the caller


def unexpected(error: BaseException, request_id: str) -> Problem:
    """Return the problem of a request that failed with *error*, which nothing expected."""
    if notice(error):
        message = "The published documents cannot be read completely; they are damaged."
        return Unavailable(message, "Try again in a moment.", retry_after_s=5)
    if is_of_store(error):
        return StoreAway()
    return Internal(request_id)


def fault_of(folder: Path) -> str:
    """Write a probe to *folder* and sync it; return what is wrong, or an empty string."""
    probe = folder / f".probe-{os.getpid()}-{threading.get_ident()}"
    try:
        descriptor = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            probe.unlink()  # first, so that a killed process leaves nothing
            if os.write(descriptor, bytes(PROBE_BYTES)) < PROBE_BYTES:
                return FULL
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
    except OSError as error:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)
        return _BY_ERRNO.get(error.errno or 0) or error.strerror or str(error)  # a health check shows no path
    return ""
