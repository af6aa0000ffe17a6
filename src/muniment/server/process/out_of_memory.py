"""
End a process that cannot get memory, so that its supervisor starts another one.

Such a process would log errors, hold its connections and answer nothing. One rule finds it wherever that shows: errors
that no code expects are logged, or reach the hooks of the interpreter.
"""

import errno
import logging
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


def lacks_memory(error: BaseException | None) -> bool:
    """Return whether *error*, or an error that led to it, says that the process got no memory."""
    while error is not None:
        if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
            return True
        if isinstance(error, RuntimeError) and _NO_THREAD in str(error):
            return True
        if isinstance(error, ImportError) and _NO_LIBRARY in str(error):
            return True
        error = error.__cause__ or error.__context__
    return False


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
