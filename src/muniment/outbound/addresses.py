"""Which addresses a server that a user names may have."""

import ipaddress
import socket
from typing import Final

# Ranges that embed an IPv4 address, which a gateway may translate to a private one, and one reserved for protocols.
_NOT_OURS: Final = tuple(
    ipaddress.ip_network(network)
    for network in ("::/96", "64:ff9b::/96", "64:ff9b:1::/48", "2002::/16", "2001::/32", "192.0.0.0/24")
)


def is_public(address: str) -> bool:
    """Return whether an address is public: not loopback, private, link-local, shared, multicast or embedded."""
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    inside = getattr(found, "ipv4_mapped", None)
    if inside is not None:
        found = inside
    return found.is_global and not found.is_multicast and not any(found in net for net in _NOT_OURS)


def addresses_of(name: str, port: int) -> list[str]:
    """Return the addresses of a name, as the system resolves it."""
    found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(entry[4][0]) for entry in found))
