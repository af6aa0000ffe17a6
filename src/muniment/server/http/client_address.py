"""Client addresses: behind trusted proxies, and as keys of the rate limit."""

import contextlib
import ipaddress
import logging
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Final, NamedTuple, Self

import msgspec

from muniment.kernel.asgi import Header
from muniment.kernel.http.addresses import rate_key
from muniment.setting_values import FORWARDED_HEADERS

FILE: Final = "forwarding.json"
"""A file in the data folder, from which `muniment doctor` reads what the server has seen."""
RENEWED_AFTER_S: Final = 3600.0
VALID_FOR_S: Final = 7 * 86_400.0
log = logging.getLogger("muniment.server")


class OtherHeader(NamedTuple):
    """A header that was seen: *proxy* sent *found* without *expected*, last *at* that time in seconds."""

    proxy: str
    found: str
    expected: str
    at: float

    @property
    def advice(self) -> str:
        return (
            f"the proxy {self.proxy} sends {self.found} without {self.expected}, so all its clients share one rate"
            f" limit: if the proxy itself writes {self.found}, set MUNIMENT_FORWARDED_HEADER={self.found}; otherwise"
            f" make it write {self.expected}"
        )

    @classmethod
    def read(cls, folder: Path, expected: str, now: float) -> Self | None:
        """Return what a server of this data folder has seen within a week, unless the setting has changed since."""
        try:
            seen = msgspec.json.decode((folder / FILE).read_bytes(), type=cls)
        except (OSError, msgspec.DecodeError):
            return None
        return seen if seen.expected == expected and now - seen.at < VALID_FOR_S else None


class ForwardingNotice:
    """Logs the first such request of the process, and keeps a file for `doctor` current."""

    def __init__(self, folder: Path, expected: str, *, clock: Callable[[], float] = time.time) -> None:
        self._folder, self._expected, self._clock = folder, expected, clock
        self._renew_at = 0.0
        self._is_logged = False

    def __call__(self, proxy: str, found: str) -> None:
        now = self._clock()
        if now < self._renew_at:
            return
        self._renew_at = now + RENEWED_AFTER_S
        seen = OtherHeader(proxy, found, self._expected, now)
        if not self._is_logged:
            self._is_logged = True
            log.warning("%s", seen.advice)
        with contextlib.suppress(OSError):  # the log has it
            new = self._folder / f".{FILE}.{os.getpid()}"
            new.write_bytes(msgspec.json.encode(seen))
            new.replace(self._folder / FILE)


Network = ipaddress.IPv4Network | ipaddress.IPv6Network

STANDARD: Final = "Forwarded"
FORWARDING: Final = frozenset(
    {b"x-forwarded-proto", b"x-forwarded-host", b"x-forwarded-port"}
    | {name.lower().encode() for name in FORWARDED_HEADERS}
)
"""Headers that proxies write. Pages do not see them."""
MAX_PROXIES: Final = 16
"""Proxies between a client and this process. Earlier elements of a chain are not read."""
MAX_ELEMENT: Final = 1024
_LISTS: Final = frozenset({"X-Forwarded-For", STANDARD})
"""Headers with a chain of addresses; the others hold one address."""
_FOR: Final = re.compile(r'(?i)(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;,\s]+))')
_PROTO: Final = re.compile(r'(?i)(?:^|;)\s*proto\s*=\s*"?(https?)"?\s*(?:;|$)')
_REMEMBERED: Final = 4096
_SHORT: Final = 128
"""Bytes of a header that is remembered with its result."""


class ClientAddresses:
    """
    Determines the address of a client behind the *trusted* networks of proxies, from one *header* that they write.

    No other header is evaluated: a proxy passes on what the client wrote into headers that it does not know.

    Args:
        on_other: called with proxy and header name if a trusted proxy sends another of these headers instead.

    Source: RFC 7239; decision 33.
    """

    def __init__(
        self,
        trusted: Iterable[Network],
        header: str = "X-Forwarded-For",
        on_other: Callable[[str, str], object] = lambda _proxy, _header: None,
    ) -> None:
        self._trusted = tuple(trusted)
        self._header = header.lower().encode()
        self._is_standard, self._is_list = header == STANDARD, header in _LISTS
        self._others = {name.lower().encode(): name for name in FORWARDED_HEADERS if name != header}
        self._on_other = on_other
        self.trusts_none = not self._trusted
        # All are pure, and are called repeatedly for a few clients.
        self.trusts = lru_cache(_REMEMBERED)(self._trusts)
        self._short_chain = lru_cache(_REMEMBERED)(self._chain)
        self.rate_key = lru_cache(_REMEMBERED)(rate_key)

    def address(self, peer: str, headers: Iterable[Header]) -> str:
        """Return the client's address: the peer's, or the nearest untrusted one in the chain of trusted proxies."""
        if self.trusts_none or not self.trusts(peer):
            return peer
        values = [value for name, value in headers if name == self._header]
        if not values:
            self._report_other(peer, headers)
            return peer
        if len(values) == 1 and len(values[0]) <= _SHORT:
            return self._short_chain(peer, values[0])
        return self._chain(peer, *values)

    def _chain(self, peer: str, *values: bytes) -> str:
        if not self._is_list and len(values) == 1:
            return _plain(values[0].decode("latin-1")) or peer
        if not self._is_list:
            return peer  # a proxy that replaces the header sends it once; a second line comes from the client
        for element in _nearest_first(values, quoted=self._is_standard):
            node = _node(element) if self._is_standard else _plain(element)
            if node is None:
                break  # anything before an invalid or hidden node cannot be trusted
            peer = node
            if not self.trusts(node):
                break
        return peer

    def scheme(self, peer: str, headers: Iterable[Header]) -> str | None:
        """Return the scheme that the proxy received; None if it does not say."""
        if self.trusts_none or not self.trusts(peer):
            return None
        if self._is_standard:
            return self._standard_scheme(headers)
        values = [value for name, value in headers if name == b"x-forwarded-proto"]
        proto = values[-1].decode("latin-1").rpartition(",")[2].strip().lower() if values else ""
        return proto if proto in {"http", "https"} else None

    def _standard_scheme(self, headers: Iterable[Header]) -> str | None:
        values = [value for name, value in headers if name == self._header]
        for element in _nearest_first(values, quoted=True):
            proto = _PROTO.search(element)
            if proto is not None:
                return proto[1].lower()
            node = _node(element)
            if node is None or not self.trusts(node):
                break  # earlier elements were written by the client
        return None

    def _report_other(self, peer: str, headers: Iterable[Header]) -> None:
        for name, _ in headers:
            if name in self._others:
                self._on_other(peer, self._others[name])
                return

    def _trusts(self, address: str) -> bool:
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return False
        known = getattr(known, "ipv4_mapped", None) or known
        return any(known in network for network in self._trusted if network.version == known.version)


def _nearest_first(values: Sequence[bytes], *, quoted: bool) -> Iterator[str]:
    """
    Yield the elements of a header from its end, where the nearest proxy appended its own.

    Read from the end, a quotation mark that the client left open cannot hide what the proxies appended after it.
    """
    left = MAX_PROXIES
    for value in reversed(values):
        rest = value.decode("latin-1")
        while left:
            left -= 1
            # A trusted proxy's element is short; a longer one is cut, which makes it invalid.
            end = _last_comma(rest) if quoted else rest.rfind(",")
            yield rest[end + 1 :][:MAX_ELEMENT]
            if end < 0:
                break
            rest = rest[:end]


def _last_comma(text: str) -> int:
    """Return the place of the last comma outside of quotation marks, or -1."""
    end = len(text)
    while end >= 0:
        comma = text.rfind(",", 0, end)
        if comma < 0 or text.count('"', comma) % 2 == 0:
            return comma
        end = text.rfind('"', 0, comma)  # continue before the quotation mark that opens
    return -1


def _node(element: str) -> str | None:
    match = _FOR.search(element)
    if match is None:
        return None
    quoted, token = match.groups()
    node = token if quoted is None else quoted
    return _plain(node)


def _plain(node: str) -> str | None:
    """Return a node's address without brackets and port; None for ``unknown`` and invalid addresses."""
    node = node.strip()
    if node.startswith("["):
        node = node[1:].partition("]")[0]
    elif node.count(":") == 1:
        node = node.partition(":")[0]
    try:
        return str(ipaddress.ip_address(node.partition("%")[0]))
    except ValueError:
        return None
