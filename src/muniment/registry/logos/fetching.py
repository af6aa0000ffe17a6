"""
Fetch logos from the addresses that listings name, and draw them in the sizes of uploaded ones.

Several addresses are fetched politely: few at once, and those of one host one after another, with a pause.
"""

import http.client
import queue
import ssl
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple
from urllib.parse import urlsplit

from muniment.kernel.phrases.phrase import Phrase
from muniment.kernel.problems import BadRequest
from muniment.outbound.fetching import Connection, NotFetched
from muniment.outbound.following import follow
from muniment.registry.company import pictures
from muniment.registry.logos import vector

AT_ONCE: Final = 4
PAUSE_S: Final = 0.5
"""Between the end of one request to a host and the next to it."""
MAX_FAULTS: Final = 5
"""Temporary faults of a host in a row, after which it is left in peace until the next run."""


FORMATS: Final = (*pictures.FORMATS, "GIF", "ICO")
DEADLINE_S: Final = 10.0
_ACCEPT: Final = "image/png, image/webp, image/jpeg, image/svg+xml, image/gif, image/*;q=0.5"
_GONE: Final = frozenset({400, 401, 403, 404, 405, 406, 410, 414, 451})

connection: Connection = {}
"""Options of connections to sites; empty in production."""


class LogoFault(Exception):  # noqa: N818 - an outcome
    """
    There is no logo at an address.

    Args:
        reason: a sentence for the operator.
        is_lasting: asking again soon would give the same.
    """

    def __init__(self, reason: str, *, is_lasting: bool) -> None:
        super().__init__(reason)
        self.reason, self.is_lasting = reason[:200], is_lasting


class Drawn(NamedTuple):
    """A logo in two sizes, as WebP."""

    small: bytes
    large: bytes


def fetch_logo(address: str) -> Drawn:
    """
    Fetch and draw the logo at *address*.

    Raises:
        LogoFault: there is none that can be shown.
    """
    options: Connection = {"deadline_s": DEADLINE_S, "max_body_bytes": pictures.MAX_BYTES, **connection}
    try:
        body = follow(address, accept=_ACCEPT, **options).body
    except NotFetched as fault:
        raise LogoFault(
            Phrase("the site answered {status}", status=fault.status), is_lasting=fault.status in _GONE
        ) from None
    except TimeoutError:
        raise LogoFault("the site took too long", is_lasting=False) from None
    except ssl.SSLCertVerificationError:
        raise LogoFault("the site's certificate is invalid", is_lasting=True) from None
    except (OSError, http.client.HTTPException):
        raise LogoFault("the site did not answer", is_lasting=False) from None
    except ValueError as fault:
        raise LogoFault(str(fault), is_lasting=True) from None
    return draw(body)


def draw(content: bytes) -> Drawn:
    """
    Draw a logo from the content of its file.

    Raises:
        LogoFault: it is not a picture that can be shown.
    """
    try:
        if vector.is_vector(content):
            content = vector.draw(content)
        return Drawn(*pictures.resize(content, formats=FORMATS, is_logo=True))
    except vector.NotDrawable as fault:
        raise LogoFault(str(fault), is_lasting=True) from None
    except BadRequest as refusal:
        raise LogoFault(refusal.message, is_lasting=True) from None


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
            fetched = Fetched(address, fetch_logo(address), None)
        except LogoFault as fault:
            fetched = Fetched(address, None, fault)
        except Exception:  # noqa: BLE001 - a decoder's fault must not end the others
            fetched = Fetched(address, None, LogoFault("the picture could not be read", is_lasting=True))
        is_of_host = fetched.fault is not None and not fetched.fault.is_lasting
        faults = faults + 1 if is_of_host else 0
        done.put(fetched)
        if addresses:
            pause()


def _host(address: str) -> str:
    try:
        return urlsplit(address).hostname or ""
    except ValueError:
        return ""
