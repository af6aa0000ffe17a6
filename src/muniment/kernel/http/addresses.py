"""Addresses of clients, as limits count them."""

import ipaddress
from typing import Final

_CLIENT: Final = 64
"""Bits of the network that an IPv6 client chooses its addresses from."""
_SITE: Final = 48
"""Bits of the largest network that one site gets: 65,536 networks of clients."""


def rate_key(address: str) -> str:
    """Return the rate limit key of an address: an IPv6 client is its /64 network."""
    known = _read(address)
    if known is None:
        return address
    return _network(known, _CLIENT) if isinstance(known, ipaddress.IPv6Address) else str(known)


def site_key(address: str) -> str | None:
    """Return the /48 network of an IPv6 address, which one site may have, or of a client's key; None for IPv4."""
    known = _read(address.partition("/")[0])
    return _network(known, _SITE) if isinstance(known, ipaddress.IPv6Address) else None


def _read(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        known = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return None
    return getattr(known, "ipv4_mapped", None) or known


def _network(address: ipaddress.IPv6Address, bits: int) -> str:
    host_bits = 128 - bits
    return f"{ipaddress.IPv6Address(int(address) >> host_bits << host_bits)}/{bits}"


def unmapped(address: str) -> str:
    """Return the IPv4 address of a client that a socket for both families shows as ``::ffff:192.0.2.1``."""
    try:
        mapped = getattr(ipaddress.ip_address(address), "ipv4_mapped", None)
    except ValueError:
        return address
    return str(mapped or address)
