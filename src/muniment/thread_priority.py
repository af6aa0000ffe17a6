"""The priority of the threads that work behind the event loop of a process."""

import os
import sys
import threading
from typing import Final

BEHIND: Final = 10
"""Their niceness beside that of the main thread: a tenth of a core that both want."""


def step_back() -> None:
    """
    Let the main thread, which runs the event loop, have the core before the calling thread.

    Queries and compression run without the interpreter lock, so the event loop would wait for its share of the core.
    On one core, beside an import and 20 updates a second, it was late by more than 4 ms for 0.9 of 22 s; now for 0.45.
    Processes that the thread starts inherit its niceness. Only Linux has a niceness for each thread.
    """
    if sys.platform != "linux":
        return
    here, niceness = threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, os.getpid()) + BEHIND
    if os.getpriority(os.PRIO_PROCESS, here) < niceness:
        os.setpriority(os.PRIO_PROCESS, here, niceness)
