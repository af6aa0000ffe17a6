"""The network addresses that are allowed for a server that a user names."""

import ipaddress
import socket
import threading
from typing import Final

from muniment.outbound.deadlines import within

LOOKUP_S: Final = 5.0
LOOKUPS: Final = 8
"""At once in a process, those included that have run out of time and whose threads still wait."""
_lookups = threading.BoundedSemaphore(LOOKUPS)

# Of IPv6, only this is assigned to networks of the internet.
_UNICAST: Final = ipaddress.ip_network("2000::/3")
# What Python takes for public and IANA has for a special purpose: ranges that embed an IPv4 address, which a gateway
# may translate to a private one, relays, documentation, and services of the network. The test has the registries.
_SPECIAL: Final = tuple(
    ipaddress.ip_network(network)
    for network in (
        *("192.0.0.0/24", "192.31.196.0/24", "192.52.193.0/24", "192.88.99.0/24", "192.175.48.0/24"),
        *("2001::/23", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),
    )
)


def is_public(address: str) -> bool:
    """
    Return whether an address is public: in no range that has a special purpose.

    Source: IANA, IPv4 and IPv6 Special-Purpose Address Registries, and the address spaces of both.
    """
    try:
        found = ipaddress.ip_address(address)
    except ValueError:
        return False
    inside = getattr(found, "ipv4_mapped", None)
    if inside is not None:
        found = inside
    if found.version == 6 and found not in _UNICAST:
        return False
    return found.is_global and not found.is_multicast and not any(found in network for network in _SPECIAL)


def addresses_of(
    name: str, port: int, *, within_s: float | None = None, slots: threading.BoundedSemaphore = _lookups
) -> list[str]:
    """
    Return the addresses of a name, as the system resolves it.

    The system's resolver has no time limit of ours and cannot be stopped, so it runs in a thread that is left behind
    when the limit is over.

    Args:
        within_s: the seconds that it may take; `LOOKUP_S` without them.
        slots: how many look-ups may wait; names that users give share theirs.

    Raises:
        OSError: it has no address; TimeoutError if that is not known in time.
        UnicodeError: it is not a name, such as one with a label that is empty or too long.
    """

    def look_up() -> list[str]:
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM)
        return list(dict.fromkeys(str(entry[4][0]) for entry in found))

    return within(within_s or LOOKUP_S, look_up, slots, late="the name servers took too long")
