"""A record and a file are found on servers on loopback; what another party controls never counts."""

import contextlib
import socket
import threading

import pytest

from muniment.kernel.problems import TooMany
from muniment.registry.models import DomainProof
from muniment.registry.verification import checks
from muniment.registry.verification.hosts import claim_of
from services.site import head, site

HOST = "harbour.example"
RECORD = f"_muniment-challenge.{HOST}"
VALUE = "muniment-verification=0123456789abcdef0123456789abcdef"
CLAIM = claim_of(f"https://{HOST}/")
TEXT = head(Content_Type="text/plain")


def test_a_record_with_the_value_is_found_among_others(names):
    names.txt(RECORD, "v=spf1 -all", VALUE)
    assert checks.find_record(RECORD, VALUE) == ""
    assert names.asked == [(RECORD, "TXT")]


def test_a_long_record_comes_in_pieces(names):
    names.records[RECORD] = {"TXT": [f'"{VALUE[:20]}" "{VALUE[20:]}"']}
    assert checks.find_record(RECORD, VALUE) == ""


@pytest.mark.parametrize(
    "text", ["", VALUE[:-1], f"{VALUE}0", f"x {VALUE}", VALUE.upper(), VALUE.replace("0123", "3210")]
)
def test_a_record_with_anything_else_is_not_the_value(names, text):
    names.txt(RECORD, text)
    assert "doesn't contain this value" in checks.find_record(RECORD, VALUE)


def test_a_record_of_the_domain_above_or_of_another_name_does_not_count(names):
    for name in (HOST, f"www.{HOST}", "_muniment-challenge.example", f"_muniment-challenge.www.{HOST}"):
        names.txt(name, VALUE)
    assert "no TXT record" in checks.find_record(RECORD, VALUE)


def test_an_alias_of_the_record_is_not_followed(names):
    """Behind a wildcard alias, the record would be another party's."""
    names.records[RECORD] = {"CNAME": ["verify.attacker.example"]}
    names.txt("verify.attacker.example", VALUE)
    assert "alias (CNAME) of verify.attacker.example" in checks.find_record(RECORD, VALUE)


def test_a_name_server_that_is_silent_verifies_nothing(names, monkeypatch):
    monkeypatch.setattr(checks, "DNS_TIMEOUT_S", 0.3)
    names.silent = True
    assert "didn't answer" in checks.find_record(RECORD, VALUE)
    assert "could not be reached" in checks.find_file(CLAIM, VALUE)


def test_a_host_that_is_too_long_for_the_record_verifies_nothing(names):
    claim = claim_of(f"https://{'a' * 60}.{'b' * 60}.{'c' * 60}.{'d' * 50}.example")
    assert "didn't answer" in checks.find_record(claim.record, VALUE)


@pytest.mark.parametrize("body", [VALUE, f"\n{VALUE}\n", f"# ours\r\n  {VALUE}  \r\n"])
def test_a_file_with_the_value_on_a_line_is_found(names, certificate, open_to, body):
    with site(certificate, TEXT, body.encode()) as (port, asked):
        open_to(port)
        assert checks.find_file(CLAIM, VALUE) == ""
    [request] = asked
    assert request.startswith(b"GET /.well-known/muniment-verification.txt HTTP/1.1\r\nHost: harbour.example\r\n")
    assert VALUE.encode() not in request, "a website that echoes its request would verify"


@pytest.mark.parametrize(
    ("body", "finding"),
    [(b"", "doesn't contain"), (f"x{VALUE}".encode(), "doesn't contain"), (b"\xff" * 9_000, "too large")],
)
def test_a_file_with_anything_else_is_not_the_value(names, certificate, open_to, body, finding):
    with site(certificate, TEXT, body) as (port, _):
        open_to(port)
        assert finding in checks.find_file(CLAIM, VALUE)


@pytest.mark.parametrize("status", ["301 Moved", "302 Found", "307 Temporary", "404 Not Found", "500 Oops", "206 Part"])
def test_a_redirect_or_an_error_verifies_nothing_even_with_the_value(names, certificate, open_to, status):
    with site(certificate, head(status, Location="https://attacker.example/"), VALUE.encode()) as (port, asked):
        open_to(port)
        assert f"the response is {status[:3]}, not 200" in checks.find_file(CLAIM, VALUE)
    assert (len(asked), [name for name, _ in names.asked if "attacker" in name]) == (1, [])


def test_a_certificate_of_another_name_verifies_nothing(names, certificate, open_to):
    names.records["other.example"] = {"A": ["127.0.0.1"]}
    with site(certificate, TEXT, VALUE.encode()) as (port, _):
        open_to(port)
        finding = checks.find_file(claim_of("https://other.example/"), VALUE)
    assert "certificate" in finding


def test_a_website_without_tls_is_read_without_it(names, open_to):
    claim = claim_of(f"http://{HOST}/")
    with site(None, TEXT, VALUE.encode()) as (port, asked):
        open_to(port)
        assert checks.find_file(claim, VALUE) == ""
    assert asked[0].startswith(b"GET /.well-known/muniment-verification.txt HTTP/1.1")


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b""])
def test_a_server_that_speaks_no_http_verifies_nothing(names, open_to, answer):
    with site(None, answer) as (port, _):
        open_to(port)
        assert "gave no valid response" in checks.find_file(claim_of(f"http://{HOST}/"), VALUE)
    with site(None, b"HTTP/1.1 200 OK\r\n\r\n") as (port, _):
        open_to(port)
        assert "gave no valid response" in checks.find_file(CLAIM, VALUE), "plain HTTP where TLS is due"


def test_a_website_that_drips_is_cut_off(names, open_to):
    with site(None, *[b"H"] * 100, pause_s=0.1) as (port, _):
        open_to(port, deadline_s=0.4)
        assert "too long" in checks.find_file(claim_of(f"http://{HOST}/"), VALUE)


@contextlib.contextmanager
def listener():
    """A port on loopback, and how many connections came."""
    came = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def accept():
            with contextlib.suppress(OSError):
                while True:
                    server.accept()[0].close()
                    came.append(1)

        thread = threading.Thread(target=accept, daemon=True)
        thread.start()
        yield server.getsockname()[1], came
        server.shutdown(socket.SHUT_RDWR)
    thread.join(5)


@pytest.mark.parametrize(
    "addresses",
    [
        {"A": ["127.0.0.1"]},
        {"A": ["10.0.0.1"]},
        {"A": ["169.254.169.254"]},
        {"A": ["93.184.216.34", "127.0.0.1"]},
        {"A": ["93.184.216.34"], "AAAA": ["::1"]},
        {"AAAA": ["::ffff:127.0.0.1"]},
        {"AAAA": ["fd00:ec2::254"]},
        {"A": ["0.0.0.0"]},
    ],
)
def test_a_host_with_an_address_that_is_not_public_is_never_connected_to(names, monkeypatch, addresses):
    names.records[HOST] = addresses
    with listener() as (port, came):
        monkeypatch.setattr(checks, "connection", {"port": port})
        assert "not public" in checks.find_file(CLAIM, VALUE)
    assert came == []


def test_a_name_that_changes_its_answer_is_read_from_the_checked_address(names, certificate, open_to):
    """DNS rebinding: the second answer is never asked for."""
    names.turns[HOST, "A"] = [["127.0.0.1"], ["10.0.0.1"]]
    with site(certificate, TEXT, VALUE.encode()) as (port, _):
        open_to(port)
        assert checks.find_file(CLAIM, VALUE) == ""
        assert "not public" in checks.find_file(CLAIM, VALUE)
    assert [kind for name, kind in names.asked if name == HOST] == ["A", "AAAA"] * 2


def test_an_address_is_no_answer_to_a_name_that_is_gone(names):
    names.records.clear()
    assert "could not be reached" in checks.find_file(CLAIM, VALUE)


def test_a_name_without_an_address_cannot_be_reached(names):
    names.records[HOST] = {"TXT": ['"here"']}
    assert "could not be reached" in checks.find_file(CLAIM, VALUE)


def test_only_a_few_checks_run_at_once(names, monkeypatch):
    monkeypatch.setattr(checks, "_slots", threading.BoundedSemaphore(1))
    names.txt(RECORD, VALUE)
    proof = DomainProof(method="dns", value=VALUE)
    with checks._slots, pytest.raises(TooMany):
        checks.look(CLAIM, proof)
    assert checks.look(CLAIM, proof) == ""
