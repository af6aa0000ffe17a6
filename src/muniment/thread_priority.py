"""The priority of the threads that work behind the event loop of a process."""

import os
import sys
import threading
from typing import Final

BEHIND: Final = 5
"""Their niceness beside that of the main thread: a third of its share of a core that both want."""


def step_back() -> None:
    """
    Let the main thread, which runs the event loop, have the core before the calling thread.

    Queries and compression run without the interpreter lock, so the event loop would wait for its share of the core:
    on one core, beside an import and 20 updates a second, 1 % of reads took more than 9 to 11 ms, and 7 to 8 ms since.
    Processes that the thread starts inherit its niceness. Only Linux has a niceness for each thread.
    """
    if sys.platform != "linux":
        return
    here, niceness = threading.get_native_id(), os.getpriority(os.PRIO_PROCESS, os.getpid()) + BEHIND
    if os.getpriority(os.PRIO_PROCESS, here) < niceness:
        os.setpriority(os.PRIO_PROCESS, here, niceness)
