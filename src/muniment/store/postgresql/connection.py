"""
Connections to PostgreSQL whose waits end: for a lock that is held too long, and for a server that is silent.

A server that refuses is noticed at once. One that is stopped, or whose packets are dropped, says nothing: its machine
may still acknowledge what it receives, so that no limit of TCP ends the wait, and no limit of the server itself.
Only the client's clock tells it from one that works.
"""

import contextlib
import ipaddress
import threading
import time
from collections.abc import Callable, Generator, Sequence
from typing import Any, Final, Self, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict

from muniment.kernel.json import JSONObject
from muniment.outbound.addresses import addresses_of
from muniment.store.database import patience

EVERY_S: Final = 0.1
"""Seconds between two looks at the clock during a wait."""
CANCEL_S: Final = 1.0
"""Seconds within which a working server ends a canceled statement."""
COMMIT_S: Final = 13.0
"""Seconds that a commit waits: longer than the limit of the wait for a standby, which tells more."""
CONNECT_S: Final = 3
"""Seconds that a connection may take."""
SILENCE: Final = "the database server does not answer"

R = TypeVar("R")


class SilentServer(psycopg.OperationalError):
    """The server neither answered a statement in time nor ended it when it was canceled; the connection is closed."""


class EndingConnection(psycopg.Connection[Any]):
    """
    A connection that waits for as long as its caller may, see :mod:`muniment.store.database.patience`.

    When that is over, the statement is canceled: the server then raises QueryCanceled, and nothing was changed. If the
    server does not even do that, it is silent, and the connection is closed.
    """

    limit_s: float | None = None
    """Seconds after which a wait ends without asking the server to cancel; for a connection of one owner."""
    waits_since: float | None = None
    """When the wait began in which nothing has been heard so far; None while nothing is awaited."""
    on_silence: Callable[[], None] = staticmethod(lambda: None)
    """Called when the server is found to be silent."""
    _is_committing = False

    def wait(self, gen: Generator[Any, Any, R], interval: float = EVERY_S, timeout: float | None = None) -> R:
        with patience.limited(float("inf")) as left_s:
            # A caller without patience left still asks: most statements are answered at once.
            longest_s = left_s if self.limit_s is None else min(left_s, self.limit_s)
            if self._is_committing:
                longest_s = COMMIT_S
            try:
                if timeout is None:  # psycopg 3.2 has no such limit
                    return super().wait(self._ending(gen, longest_s), interval)
                return super().wait(self._ending(gen, longest_s), interval, timeout)
            finally:
                self.waits_since = None

    def commit(self) -> None:
        # A canceled commit would count as one that no standby confirms, so it is only given up with its connection.
        self._is_committing = True
        try:
            super().commit()
        finally:
            self._is_committing = False

    def _ending(self, gen: Generator[Any, Any, R], longest_s: float) -> Generator[Any, Any, R]:
        """Run *gen*, and end it when its wait is over."""
        began = self.waits_since = time.monotonic()
        ends_at = began + longest_s
        is_long, has_cancelled = False, False
        with contextlib.ExitStack() as wait:
            try:
                ready = yield next(gen)
                while True:
                    now = time.monotonic()
                    if ready:
                        self.waits_since = now
                    elif not is_long and now - began >= patience.LONG_S:
                        is_long = True
                        left_s = wait.enter_context(patience.long_wait(ends_at - now))
                        if not self._is_committing:  # what is given up then is unknown
                            ends_at = now + left_s
                    elif now >= ends_at:
                        if has_cancelled or self.limit_s is not None or self._is_committing:
                            raise self._silent()
                        has_cancelled = True
                        with contextlib.suppress(psycopg.Error):
                            self.cancel_safe(timeout=CANCEL_S)
                        ends_at = time.monotonic() + CANCEL_S
                    ready = yield gen.send(ready)
            except StopIteration as end:
                result: R = end.value
                return result

    def _silent(self) -> SilentServer:
        self.pgconn.finish()
        self.on_silence()
        return SilentServer(SILENCE)

    @classmethod
    def opened(cls, conninfo: str = "", **options: Any) -> Self:
        """Connect, as :meth:`connect` does, with the limits that find a lost network or a silent name server."""
        return cls.connect(conninfo, **{**LIMITS, **options, **_resolved(conninfo, options)})


LIMITS: Final = {
    "connect_timeout": CONNECT_S,
    # Data that the server has not acknowledged, and, where nothing is being sent, questions of TCP itself.
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 5,
    "keepalives_interval": 3,
    "keepalives_count": 3,
}
"""Without them, a network that drops every packet would block a thread for the minutes of the system's own limits."""
_LOOKUPS: Final = threading.BoundedSemaphore(4)
"""Look-ups of database servers that may wait at once."""


def _resolved(conninfo: str, options: JSONObject) -> JSONObject:
    """
    Return the addresses of the named servers as options; nothing if none has a name to look up.

    Neither libpq nor psycopg limits the wait for the name servers, which is 10 s and more for each name.

    Raises:
        OperationalError: no server has an address.
    """
    given = {name: value for name, value in options.items() if name in {"host", "hostaddr", "port"}}
    params = conninfo_to_dict(conninfo, **given)
    hosts = str(params.get("host") or "").split(",")
    if params.get("hostaddr") or not any(map(_is_name, hosts)):
        return {}
    resolved = _look_up(hosts, ports=str(params.get("port") or "").split(","))
    host_names, host_addresses, host_ports = zip(*resolved, strict=True)
    return {"host": ",".join(host_names), "hostaddr": ",".join(host_addresses), "port": ",".join(host_ports)}


def _look_up(hosts: Sequence[str], ports: Sequence[str]) -> list[tuple[str, str, str]]:
    """
    Return each server as host, address and port, once for each of its addresses.

    Raises:
        OperationalError: no server has an address.
    """
    ends_at = time.monotonic() + CONNECT_S
    resolved: list[tuple[str, str, str]] = []
    fault = ""
    for number, host in enumerate(hosts):
        port = ports[number % len(ports)]
        if not _is_name(host):
            resolved.append((host, "", port))
            continue
        try:
            left_s = max(0.01, ends_at - time.monotonic())
            addresses = addresses_of(host, int(port or "5432"), within_s=left_s, slots=_LOOKUPS)
        except (OSError, ValueError) as error:
            fault = f"the address of {host!r} is not known: {error}"
            continue  # another server may have one
        resolved += [(host, address, port) for address in addresses]
    if not resolved:
        raise psycopg.OperationalError(fault)
    return resolved


def _is_name(host: str) -> bool:
    if not host or host.startswith(("/", "@")):
        return False  # a socket of this machine
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return True
    return False
