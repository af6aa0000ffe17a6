"""Names are resolved within a time limit, by a bounded number of threads."""

import socket
import threading

import pytest

from muniment.outbound import addresses
from muniment.outbound.addresses import addresses_of
from services.ports import wait_until


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
