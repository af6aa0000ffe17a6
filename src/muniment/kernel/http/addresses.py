"""Addresses of clients, as limits count them."""

import ipaddress


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


def unmapped(address: str) -> str:
    """Return the IPv4 address of a client that a socket for both families shows as ``::ffff:192.0.2.1``."""
    try:
        mapped = getattr(ipaddress.ip_address(address), "ipv4_mapped", None)
    except ValueError:
        return address
    return str(mapped or address)
