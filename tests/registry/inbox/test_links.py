"""Links are opened on servers on loopback: which count as dead, and what is never connected to."""

import socket

import pytest

from muniment.registry.inbox import links
from services.site import head, site

LINK = "https://harbour.example/charter"


@pytest.mark.parametrize(
    ("status", "fault"),
    [
        ("200 OK", ""),
        ("204 No Content", ""),
        ("301 Moved Permanently", ""),
        ("403 Forbidden", ""),
        ("429 Too Many Requests", ""),
        ("404 Not Found", "responds with 404"),
        ("410 Gone", "responds with 410"),
        ("503 Service Unavailable", "responds with 503"),
    ],
)
def test_a_page_that_is_gone_or_broken_is_dead(names, certificate, open_to, status, fault):
    with site(certificate, head(status)) as (port, asked):
        open_to(port)
        assert links.look(LINK) == (LINK, fault, True)
    assert asked[0].startswith(b"GET /charter HTTP/1.1\r\nHost: harbour.example\r\n")


def test_only_the_first_line_is_read(names, certificate, open_to):
    with site(certificate, b"HTTP/1.1 200 OK\r\n", b"X-Long: " + b"x" * 10_000_000, pause_s=0.05) as (port, _):
        open_to(port)
        assert links.look(LINK).fault == ""


@pytest.mark.parametrize("answer", [b"SSH-2.0-OpenSSH\r\n", b"", b"HTTP/9.9 what\r\n", b"x" * 5_000])
def test_a_server_without_a_valid_response_is_dead(names, certificate, open_to, answer):
    with site(certificate, answer) as (port, _):
        open_to(port)
        assert links.look(LINK).fault == "gives no valid response"


def test_a_wrong_certificate_a_closed_port_an_unknown_name_and_silence_are_told_apart(names, certificate, open_to):
    with site(certificate, head()) as (port, _):
        open_to(port, tls=None)
        assert links.look(LINK).fault == "its certificate is not valid"
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        open_to(port, deadline_s=0.2)
        assert links.look("http://harbour.example/").fault == "takes too long to respond"
    open_to(port)
    assert links.look(LINK).fault == "can't be reached"
    assert links.look("https://missing.example/").fault == "can't be reached"


def test_an_address_that_is_not_public_is_never_connected_to(names, certificate, monkeypatch):
    with site(certificate, head()) as (port, asked):
        monkeypatch.setattr(links, "connection", {"port": port})
        assert links.look(LINK).fault == "leads to an address that is not public"
    assert asked == []


@pytest.mark.parametrize(
    "url",
    [
        "https://harbour.example:8443/",
        "https://user:secret@harbour.example/",
        "https://localhost/",
        "https://127.0.0.1:22/",
        "https://[::1/",
        "https://[::ffff:127.0.0.1]/",
        "https://harbour.example:x/",
    ],
)
def test_a_link_to_another_port_or_with_an_account_is_left_to_the_reviewer(url):
    assert links.look(url) == (url, "", False)


def test_a_link_in_another_script_is_sent_in_ascii(names, certificate, open_to):
    names.records["xn--hfen-loa.example"] = {"A": ["127.0.0.1"]}
    with site(None, head()) as (port, asked):
        open_to(port)
        assert links.look("http://häfen.example/é?q=ü\r\nX: y").fault == ""
    lines = asked[0].split(b"\r\n")
    assert lines[0] == b"GET /%C3%A9?q=%C3%BCX:%20y HTTP/1.1"
    assert lines[1] == b"Host: xn--hfen-loa.example"


def test_the_links_of_a_listing_are_its_websites_once_each_and_few():
    facts = {
        "website": "https://harbour.example",
        "dao_website": "https://dao.harbour.example",
        "socials": {"email": "ida@harbour.example", "twitter": "@harbour", "youtube": "https://video.example/h"},
    }
    assert links.links_in(facts) == [facts["website"], facts["dao_website"], "https://video.example/h"]
    assert links.links_in({"website": "https://a.example", "dao_website": "https://a.example"}) == ["https://a.example"]
    assert links.links_in({}) == []
    many = {str(n): f"https://{n}.example" for n in range(20)}
    assert len(links.links_in({"socials": many})) == links.MAX_LINKS
