"""Client addresses: one header is believed, from trusted proxies only, and read from its end."""

import ipaddress
import time

import pytest

from muniment.server.http.client_address import MAX_PROXIES, ClientAddresses, ForwardingNotice, OtherHeader

TRUSTED = [ipaddress.ip_network("10.0.0.0/8"), ipaddress.ip_network("fd00::/8")]
FOR = "X-Forwarded-For"
STANDARD = "Forwarded"


def client(header, *lines, peer="10.0.0.1"):
    headers = [(name.lower().encode(), value.encode("latin-1")) for name, value in lines]
    return ClientAddresses(TRUSTED, header).address(peer, headers)


@pytest.mark.requirement("rate.proxies")
@pytest.mark.parametrize(
    ("header", "lines", "expected"),
    [
        (FOR, [(FOR, "198.51.100.1")], "198.51.100.1"),
        (FOR, [(FOR, "203.0.113.9, 198.51.100.1")], "198.51.100.1"),
        (FOR, [(FOR, "203.0.113.9"), (FOR, "198.51.100.1")], "198.51.100.1"),
        (FOR, [(FOR, "203.0.113.9, 198.51.100.1, 10.0.0.7")], "198.51.100.1"),
        (FOR, [(FOR, "[2001:db8::7]:443")], "2001:db8::7"),
        (FOR, [(FOR, "198.51.100.1:5000")], "198.51.100.1"),
        (FOR, [(FOR, "2001:db8::7%eth0")], "2001:db8::7"),
        (FOR, [(FOR, "198.51.100.1, unknown")], "10.0.0.1"),
        (FOR, [(FOR, "")], "10.0.0.1"),
        (FOR, [(FOR, "198.51.100.1,")], "10.0.0.1"),
        (FOR, [(FOR, "\xff\x00, 198.51.100.1")], "198.51.100.1"),
        (FOR, [(STANDARD, "for=203.0.113.9"), (FOR, "198.51.100.1")], "198.51.100.1"),
        (FOR, [("X-Real-IP", "203.0.113.9"), ("CF-Connecting-IP", "203.0.113.9")], "10.0.0.1"),
        (STANDARD, [(STANDARD, 'for=203.0.113.9;proto=http, For="[2001:db8::7]:1";proto=https')], "2001:db8::7"),
        (STANDARD, [(STANDARD, "for=203.0.113.9"), (STANDARD, "proto=https;for=198.51.100.1")], "198.51.100.1"),
        (STANDARD, [(STANDARD, 'for="203.0.113.9, for=198.51.100.1')], "198.51.100.1"),
        (STANDARD, [(STANDARD, 'for=203.0.113.9;x="a,b", for=198.51.100.1;x="c,for=203.0.113.9"')], "198.51.100.1"),
        (STANDARD, [(STANDARD, f"for=203.0.113.9;x={'y' * 5000}, for=198.51.100.1")], "198.51.100.1"),
        (STANDARD, [(STANDARD, "for=198.51.100.1, for=_hidden")], "10.0.0.1"),
        (STANDARD, [(STANDARD, "for=unknown")], "10.0.0.1"),
        (STANDARD, [(FOR, "203.0.113.9"), (STANDARD, "for=198.51.100.1")], "198.51.100.1"),
        ("X-Real-IP", [("X-Real-IP", "198.51.100.1"), (FOR, "203.0.113.9")], "198.51.100.1"),
        ("X-Real-IP", [("X-Real-IP", "203.0.113.9"), ("X-Real-IP", "198.51.100.1")], "10.0.0.1"),
        ("X-Real-IP", [("X-Real-IP", "203.0.113.9, 198.51.100.1")], "10.0.0.1"),
        ("CF-Connecting-IP", [("CF-Connecting-IP", "2001:db8::7")], "2001:db8::7"),
    ],
)
def test_only_the_configured_header_names_the_client_and_its_end_counts(header, lines, expected):
    assert client(header, *lines) == expected
    assert client(header, *lines, peer="198.51.100.200") == "198.51.100.200", "no trusted proxy"


@pytest.mark.parametrize(
    ("header", "lines", "expected"),
    [
        (FOR, [("X-Forwarded-Proto", "https")], "https"),
        (FOR, [("X-Forwarded-Proto", "http, HTTPS")], "https"),
        (FOR, [("X-Forwarded-Proto", "https, gopher")], None),
        (FOR, [(STANDARD, "for=198.51.100.1;proto=https")], None),
        (STANDARD, [("X-Forwarded-Proto", "https"), (STANDARD, "for=198.51.100.1")], None),
        (STANDARD, [(STANDARD, "for=198.51.100.1;proto=https")], "https"),
        (STANDARD, [(STANDARD, "for=198.51.100.1;proto=https, for=10.0.0.7")], "https"),
        (STANDARD, [(STANDARD, "proto=https;for=203.0.113.9, for=198.51.100.1")], None),
        (STANDARD, [(STANDARD, "proto=http, for=198.51.100.1;proto=https")], "https"),
        ("X-Real-IP", [("X-Forwarded-Proto", "https")], "https"),
    ],
)
def test_the_scheme_comes_from_the_same_proxy(header, lines, expected):
    headers = [(name.lower().encode(), value.encode()) for name, value in lines]
    clients = ClientAddresses(TRUSTED, header)
    assert clients.scheme("10.0.0.1", headers) == expected
    assert clients.scheme("198.51.100.200", headers) is None


@pytest.mark.parametrize("header", [FOR, STANDARD])
def test_a_chain_of_any_length_costs_a_few_elements(header, monkeypatch):
    looked_at = []
    element = "for=10.0.0.9" if header == STANDARD else "10.0.0.9"
    clients = ClientAddresses(TRUSTED, header)
    trusts = clients.trusts
    monkeypatch.setattr(clients, "trusts", lambda node: looked_at.append(node) or trusts(node))
    value = ",".join([element] * 4000).encode()
    assert clients.address("10.0.0.1", [(header.lower().encode(), value)]) == "10.0.0.9"
    assert len(looked_at) <= MAX_PROXIES + 1


def test_another_header_of_a_trusted_proxy_is_reported_once_and_kept_for_doctor(tmp_path, caplog):
    times = iter([1000.0, 1001.0, 5000.0])
    clients = ClientAddresses(TRUSTED, FOR, ForwardingNotice(tmp_path, FOR, clock=lambda: next(times)))
    sent = [(b"forwarded", b"for=198.51.100.1")]
    clients.address("10.0.0.1", [*sent, (b"x-forwarded-for", b"198.51.100.1")])
    clients.address("198.51.100.200", sent)
    assert not caplog.records
    for _ in range(3):
        clients.address("10.0.0.1", sent)
    (record,) = caplog.records
    assert "10.0.0.1 sends Forwarded without X-Forwarded-For" in record.getMessage()
    assert "MUNIMENT_FORWARDED_HEADER=Forwarded" in record.getMessage()
    seen = OtherHeader.read(tmp_path, FOR, 6000.0)
    assert seen == ("10.0.0.1", STANDARD, FOR, 5000.0), "renewed each hour"
    assert OtherHeader.read(tmp_path, STANDARD, 6000.0) is None, "the setting was changed"
    assert OtherHeader.read(tmp_path, FOR, 5000.0 + 8 * 86_400) is None
    assert OtherHeader.read(tmp_path / "none", FOR, time.time()) is None
