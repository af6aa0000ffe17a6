"""Fetch several addresses politely: few at once, of each host one after another with a pause."""

import queue
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from muniment.registry.logos.fetching import Drawn, LogoFault, fetch_logo

AT_ONCE: Final = 4
PAUSE_S: Final = 0.5
"""Between the end of one request to a host and the next to it."""
MAX_FAULTS: Final = 5
"""Temporary faults of a host in a row, after which it is left in peace until the next run."""


class Fetched(NamedTuple):
    """The logo at an address, or why there is none."""

    address: str
    drawn: Drawn | None
    fault: LogoFault | None


def fetch_all(
    addresses: Iterable[str], *, within_s: float, pause_s: float = PAUSE_S, stop: Callable[[], bool] = lambda: False
) -> Iterator[Fetched]:
    """
    Yield what is at each of *addresses*, as it arrives; those that there is no time for are left out.

    Args:
        within_s: no request begins later.
        stop: no request begins once it returns true.
    """
    hosts: dict[str, deque[str]] = defaultdict(deque)
    for address in dict.fromkeys(addresses):
        hosts[_host(address)].append(address)
    waiting = deque(hosts.values())
    done: queue.SimpleQueue[Fetched | None] = queue.SimpleQueue()
    end = time.monotonic() + within_s
    ended = threading.Event()

    def may_begin() -> bool:
        return not ended.is_set() and time.monotonic() < end and not stop()

    def work() -> None:
        try:
            while may_begin():
                try:
                    of_host = waiting.popleft()
                except IndexError:
                    return
                _fetch_host(of_host, done, may_begin, lambda: ended.wait(pause_s))
        finally:
            done.put(None)

    threads = [threading.Thread(target=work, name="logos", daemon=True) for _ in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    try:
        for _ in threads:
            yield from iter(done.get, None)
    finally:
        ended.set()


def _fetch_host(
    addresses: deque[str],
    done: "queue.SimpleQueue[Fetched | None]",
    may_begin: Callable[[], bool],
    pause: Callable[[], object],
) -> None:
    faults = 0
    while addresses and faults < MAX_FAULTS and may_begin():
        address = addresses.popleft()
        try:
            found = Fetched(address, fetch_logo(address), None)
        except LogoFault as fault:
            found = Fetched(address, None, fault)
        except Exception:  # noqa: BLE001 - a decoder's fault must not end the others
            found = Fetched(address, None, LogoFault("the picture could not be read", is_lasting=True))
        faults = faults + 1 if found.fault is not None and not found.fault.is_lasting else 0
        done.put(found)
        if addresses:
            pause()


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
