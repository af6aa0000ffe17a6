"""Client addresses: behind trusted proxies, and as keys of the rate limit."""

import ipaddress
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from muniment.kernel.asgi import Header

Network = ipaddress.IPv4Network | ipaddress.IPv6Network

FORWARDING: Final = frozenset({b"forwarded", b"x-forwarded-for", b"x-forwarded-proto", b"x-forwarded-host"})
_FOR: Final = re.compile(r'(?i)(?:^|;)\s*for\s*=\s*(?:"([^"]*)"|([^;,\s]+))')
_PROTO: Final = re.compile(r'(?i)(?:^|;)\s*proto\s*=\s*"?(https?)"?')
_REMEMBERED: Final = 4096


class ClientAddresses:
    """
    Determines the address of a client behind the *trusted* networks of proxies, whose forwarding headers it evaluates.

    Source: RFC 7239; decisions, section 2, rate limit.
    """

    def __init__(self, trusted: Iterable[Network]) -> None:
        self._trusted = tuple(trusted)
        self.trusts_none = not self._trusted
        # Both are pure, and are called repeatedly for a few clients.
        self.trusts = lru_cache(_REMEMBERED)(self._trusts)
        self.rate_key = lru_cache(_REMEMBERED)(rate_key)

    def address(self, peer: str, headers: Iterable[Header]) -> str:
        """Return the client's address: the peer's, or the nearest untrusted one in the chain of trusted proxies."""
        if self.trusts_none or not self.trusts(peer):
            return peer
        if standard := _values(headers, b"forwarded"):
            chain = [_node(element) for element in _elements(standard)]
        else:
            forwarded = b",".join(_values(headers, b"x-forwarded-for")).decode("latin-1")
            chain = [_plain(part) for part in forwarded.split(",") if forwarded]
        for node in reversed(chain):
            if node is None:
                break  # anything before an invalid or hidden node cannot be trusted
            peer = node
            if not self.trusts(node):
                break
        return peer

    def scheme(self, peer: str, headers: Iterable[Header]) -> str | None:
        if self.trusts_none or not self.trusts(peer):
            return None
        for element in reversed(_elements(_values(headers, b"forwarded"))):
            found = _PROTO.search(element)
            if found:
                return found[1].lower()
        for value in reversed(_values(headers, b"x-forwarded-proto")):
            proto = value.decode("latin-1").rpartition(",")[2].strip().lower()
            if proto in {"http", "https"}:
                return proto
        return None

    def _trusts(self, address: str) -> bool:
        try:
            known = ipaddress.ip_address(address)
        except ValueError:
            return False
        known = getattr(known, "ipv4_mapped", None) or known
        return any(known in network for network in self._trusted if network.version == known.version)


def rate_key(address: str) -> str:
    """Return the rate limit key of an address: an IPv6 client is its /64 network."""
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(known, ipaddress.IPv4Address):
        return str(known)
    if known.ipv4_mapped is not None:
        return str(known.ipv4_mapped)
    return f"{ipaddress.IPv6Address(int(known) >> 64 << 64)}/64"


def _values(headers: Iterable[Header], wanted: bytes) -> list[bytes]:
    return [value for name, value in headers if name == wanted]


def _elements(values: Iterable[bytes]) -> list[str]:
    return [
        part for value in values for part in re.split(r',(?=(?:[^"]*"[^"]*")*[^"]*$)', value.decode("latin-1")[:4096])
    ]


def _node(element: str) -> str | None:
    found = _FOR.search(element)
    return _plain(found[1] if found[1] is not None else found[2]) if found else None


def _plain(node: str) -> str | None:
    """Return a node's address without brackets and port; None for ``unknown`` and invalid addresses."""
    node = node.strip()
    if node.startswith("["):
        node = node[1:].partition("]")[0]
    elif node.count(":") == 1:
        node = node.partition(":")[0]
    try:
        return str(ipaddress.ip_address(node))
    except ValueError:
        return None
