"""
Deadlines for other services, whatever a library waits for.

Libraries limit the wait for a connection and for each piece of an answer; nothing limits the look-up of a name, an
answer that comes one byte at a time, or all attempts together. A service that is found silent costs one caller its
deadline, not all of them.
"""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import TypeVar

R = TypeVar("R")


def within(seconds: float, call: Callable[[], R], slots: threading.BoundedSemaphore, *, late: str) -> R:
    """
    Return the result of *call*, or raise TimeoutError after *seconds*, with *late* as its message.

    What the call waits for cannot be stopped, so it runs in a thread that is left behind then. It keeps its slot, so
    that there are never more such threads than *slots*.
    """
    end = time.monotonic() + seconds
    if not slots.acquire(timeout=seconds):
        raise TimeoutError("too many earlier calls are still waiting")
    results: SimpleQueue[R | BaseException] = SimpleQueue()

    def run() -> None:
        try:
            results.put(call())
        except BaseException as error:  # noqa: BLE001 - the caller raises it
            results.put(error)
        finally:
            slots.release()

    try:
        threading.Thread(target=copy_context().run, args=(run,), name="outbound", daemon=True).start()
    except BaseException:
        slots.release()
        raise
    try:
        result = results.get(timeout=max(0.0, end - time.monotonic()))
    except Empty:
        raise TimeoutError(late) from None
    if isinstance(result, BaseException):
        raise result
    return result


class StillSilent(TimeoutError):  # noqa: N818 - a state of a service
    """The service has just been silent, and another caller is trying it."""


class Service:
    """
    Remembers whether a service is silent: its last call failed after *silent_after_s* or more.

    Then one caller at a time tries it, and the others are refused at once: each would hold its thread for the whole
    deadline, and a few threads serve everyone.
    """

    def __init__(self, name: str, *, silent_after_s: float) -> None:
        self._name, self._silent_after_s = name, silent_after_s
        self._lock = threading.Lock()
        self._is_silent = False
        self._is_tried = False

    @contextmanager
    def asked(self) -> Iterator[None]:
        """Ask the service in this context; raise StillSilent if another caller is finding out whether it answers."""
        with self._lock:
            if self._is_silent and self._is_tried:
                message = f"{self._name} does not answer"
                raise StillSilent(message)
            is_trial = self._is_tried = self._is_silent
        began = time.monotonic()
        is_silent = False
        try:
            yield
        except Exception:
            is_silent = time.monotonic() - began >= self._silent_after_s
            raise
        finally:
            with self._lock:
                self._is_silent = is_silent
                if is_trial:
                    self._is_tried = False
