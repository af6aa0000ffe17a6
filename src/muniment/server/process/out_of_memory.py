"""
End a process that cannot get memory, so that its supervisor starts another one.

Such a process would log errors, hold its connections and answer nothing. One rule finds it wherever that shows: errors
that no code expects are logged, or reach the hooks of the interpreter.
"""

import errno
import logging
import mmap
import os
import sys
import threading
from typing import Final

from muniment.server.process.exit_status import FAILED

_LAST_WORDS: Final = b"This process cannot get memory and ends. Give it more, or limit what else runs beside it.\n"
"""Encoded in advance, because encoding may need memory."""
_NO_THREAD: Final = "can't start new thread"
_NO_LIBRARY: Final = "failed to map segment"
_STANDARD_ERROR: Final = 2
TRIAL_BYTES: Final = 32 << 20
"""What a process must still get: the stack of a thread, or the memory of an ordinary request, several times."""


def lacks_memory(error: BaseException | None) -> bool:
    """
    Return whether *error*, or an error that led to it, says that the process got no memory.

    One that was replaced by another (``raise ... from None``) was handled: only its request failed. A thread or a child
    that cannot be started, for example because a container limits their number, says so only if memory is lacking, too:
    another process would have the same limit, and this one still serves reads.
    """
    try:
        return error is not None and (_says_so(error) or any(map(_says_so, _led_to(error))))
    except MemoryError:
        return True


def _led_to(error: BaseException) -> list[BaseException]:
    """Return the errors that led to *error*, and those of a group of tasks; each once, as one may be its own cause."""
    found: dict[int, BaseException] = {}
    waiting: list[BaseException | None] = [error]
    while waiting:
        former = waiting.pop()
        if former is None or id(former) in found:
            continue
        found[id(former)] = former
        waiting.append(former.__cause__)
        if not former.__suppress_context__:
            waiting.append(former.__context__)
        if isinstance(former, BaseExceptionGroup):
            waiting += former.exceptions
    return list(found.values())


def _says_so(error: BaseException) -> bool:
    if isinstance(error, OSError):
        return error.errno == errno.ENOMEM and not _gets_memory()
    # The whole text: an error that quotes what a client has sent must not end the process.
    if isinstance(error, RuntimeError):
        return str(error) == _NO_THREAD and not _gets_memory()
    if isinstance(error, ImportError):
        return _NO_LIBRARY in str(error)
    return isinstance(error, MemoryError)


def _gets_memory() -> bool:
    try:
        mmap.mmap(-1, TRIAL_BYTES).close()
    except (OSError, MemoryError):
        return False
    return True


def end_if_without_memory(error: BaseException | None) -> None:
    """End the process at once if *error* says that it got no memory: an orderly end may need some."""
    if lacks_memory(error):
        os.write(_STANDARD_ERROR, _LAST_WORDS)
        os._exit(FAILED)


class _Guard(logging.Handler):
    """Looks at the error of each line before other handlers format it."""

    def handle(self, record: logging.LogRecord) -> bool:
        if record.exc_info:
            end_if_without_memory(record.exc_info[1])
        return False


def end_without_memory() -> None:
    """Apply the rule to this process from now on. Call it when the log is set up."""
    logging.getLogger().handlers.insert(0, _Guard())
    of_thread, unraisable = threading.excepthook, sys.unraisablehook

    def on_end_of_thread(ended: threading.ExceptHookArgs) -> None:
        end_if_without_memory(ended.exc_value)
        of_thread(ended)

    def on_unraisable(lost: "sys.UnraisableHookArgs") -> None:
        end_if_without_memory(lost.exc_value)
        unraisable(lost)

    threading.excepthook, sys.unraisablehook = on_end_of_thread, on_unraisable
