"""Only public addresses are connected to, and names are resolved in time by few threads."""

import ipaddress
import socket
import threading

import pytest

from muniment.outbound import addresses
from muniment.outbound.addresses import addresses_of, is_public
from services.ports import wait_until

SPECIAL = [
    *("0.0.0.0/8", "0.0.0.0/32", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "169.254.0.0/16"),
    *("172.16.0.0/12", "192.0.0.0/24", "192.0.0.0/29", "192.0.0.8/32", "192.0.0.9/32", "192.0.0.10/32"),
    *("192.0.0.170/32", "192.0.0.171/32", "192.0.2.0/24", "192.31.196.0/24", "192.52.193.0/24"),
    *("192.88.99.0/24", "192.88.99.2/32", "192.168.0.0/16", "192.175.48.0/24", "198.18.0.0/15"),
    *("198.51.100.0/24", "203.0.113.0/24", "240.0.0.0/4", "255.255.255.255/32", "::1/128", "::/128"),
    *("::ffff:0:0/96", "64:ff9b::/96", "64:ff9b:1::/48", "100::/64", "100:0:0:1::/64", "2001::/23"),
    *("2001::/32", "2001:1::1/128", "2001:1::2/128", "2001:1::3/128", "2001:2::/48", "2001:3::/32"),
    *("2001:4:112::/48", "2001:10::/28", "2001:20::/28", "2001:30::/28", "2001:db8::/32", "2002::/16"),
    *("2620:4f:8000::/48", "3fff::/20", "5f00::/16", "fc00::/7", "fe80::/10"),
]
"""Every entry of IANA's two registries of special-purpose addresses, as of November 2026."""
OTHERS = ["224.0.0.0/4", "ff00::/8", "fec0::/10", "::/96", "200::/7", "4000::/3", "6000::/3", "8000::/1"]
"""Multicast, the former private range and the former embedding of IPv6, and what is not assigned."""


@pytest.mark.parametrize("network", [*SPECIAL, *OTHERS])
def test_no_address_of_a_special_range_is_public(network):
    inside = ipaddress.ip_network(network)
    if network != "::ffff:0:0/96":
        assert not any(is_public(str(inside[place])) for place in (0, inside.num_addresses // 2, -1))
    else:
        assert not is_public("::ffff:10.0.0.1")


@pytest.mark.parametrize(
    "address",
    [
        *("1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "172.15.255.255", "172.32.0.0"),
        *("192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "198.17.255.255", "198.20.0.0", "223.255.255.255"),
        *("2001:200::", "2001:db7:ffff:ffff:ffff:ffff:ffff:ffff", "2001:db9::", "2003::", "2620:4f:7fff::1"),
        *("2620:4f:8001::", "2606:4700::1111", "3ffe:ffff:ffff:ffff:ffff:ffff:ffff:ffff", "3fff:1000::"),
        "::ffff:1.1.1.1",
    ],
)
def test_the_addresses_beside_a_special_range_are_public(address):
    assert is_public(address)


@pytest.mark.parametrize("address", ["", "1.1.1", "01.1.1.1", "1.1.1.1 ", "0x01010101", "localhost", "::1%lo"])
def test_what_is_no_address_is_not_public(address):
    assert not is_public(address)


@pytest.fixture
def resolver(monkeypatch):
    """A resolver of the system that answers when it is told to; it counts what it was asked."""
    told, asked = threading.Event(), []

    def resolve(name, port, **_):
        asked.append(name)
        told.wait(60)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("192.0.2.7", port))] * 2

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    monkeypatch.setattr(addresses, "LOOKUP_S", 0.05)
    resolve.told, resolve.asked = told, asked
    yield resolve
    told.set()
    wait_until(lambda: addresses._lookups._value == addresses.LOOKUPS, within_s=60, what="the end of the look-ups")


def test_a_name_is_resolved_once_for_each_address(resolver, monkeypatch):
    monkeypatch.setattr(addresses, "LOOKUP_S", 60)
    resolver.told.set()
    assert addresses_of("harbour.example", 443) == ["192.0.2.7"]


def test_a_name_that_is_not_resolved_in_time_is_given_up(resolver):
    with pytest.raises(TimeoutError, match="took too long"):
        addresses_of("slow.example", 443)


def test_lookups_that_hang_are_bounded(resolver):
    for number in range(addresses.LOOKUPS):
        with pytest.raises(TimeoutError):
            addresses_of(f"slow-{number}.example", 443)
    with pytest.raises(TimeoutError, match="too many"):
        addresses_of("one-more.example", 443)
    assert "one-more.example" not in resolver.asked


@pytest.mark.parametrize(("name", "error"), [("x" * 64 + ".example", UnicodeError), ("", OSError)])
def test_what_is_not_a_name_is_refused(monkeypatch, name, error):
    def resolve(name, *_, **__):
        name.encode("idna")
        raise socket.gaierror

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    with pytest.raises(error):
        addresses_of(name, 443)
