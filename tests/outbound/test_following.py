"""Redirects are followed only to addresses that may be fetched themselves."""

import pytest

from muniment.outbound.fetching import NotFetched
from muniment.outbound.following import follow, plain_address
from services.logo_site import LogoSite


@pytest.fixture(scope="module")
def site():
    found = LogoSite()
    found.files = {
        "/file": b"content",
        "/near": (302, {"Location": "/file"}),
        "/far": (301, {"Location": "http://other.example/file"}),
        "/private": (302, {"Location": "http://private.example/file"}),
        "/mixed": (302, {"Location": "http://mixed.example/file"}),
        "/numeric": (302, {"Location": "http://169.254.169.254/latest/meta-data"}),
        "/port": (302, {"Location": "http://other.example:6379/file"}),
        "/scheme": (302, {"Location": "file:///etc/passwd"}),
        "/user": (302, {"Location": "http://user@other.example/file"}),
        "/loop": (302, {"Location": "/loop"}),
        "/nowhere": (302, {}),
        "/large": b"x" * 5_000,
    }
    yield found
    found.close()


def get(site, path, host="logos.example", **options):
    return follow(f"http://{host}{path}", accept="*/*", **{**site.connection, **options})


@pytest.mark.parametrize("path", ["/file", "/near", "/far"])
def test_a_file_is_fetched_also_where_it_redirects_to(site, path):
    assert get(site, path).body == b"content"


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("/private", "not public"),
        ("/mixed", "not public"),
        ("/numeric", "not public"),
        ("/port", "names a port"),
        ("/scheme", "http or https"),
        ("/user", "names a user"),
        ("/loop", "too often"),
    ],
)
def test_a_redirect_to_what_may_not_be_fetched_is_refused(site, path, reason):
    before = len(site.asked)
    with pytest.raises(ValueError, match=reason):
        get(site, path, resolve=lambda name, _: site.connection["resolve"](name, 0) or [name])
    assert not any("private.example" in each or "mixed.example" in each for each in site.asked[before:])


@pytest.mark.parametrize("host", ["private.example", "mixed.example", "unknown.example"])
def test_a_name_with_an_address_that_is_not_public_is_not_asked(site, host):
    with pytest.raises(ValueError, match="not public"):
        get(site, "/file", host)


def test_a_redirect_without_a_place_is_an_answer_that_is_not_200(site):
    with pytest.raises(NotFetched, match="302"):
        get(site, "/nowhere")


def test_a_file_over_the_limit_is_refused(site):
    with pytest.raises(ValueError, match="too large"):
        get(site, "/large", max_body_bytes=4_000)
    assert len(get(site, "/large", max_body_bytes=5_000).body) == 5_000


def test_https_is_never_left_for_http(monkeypatch):
    def moved(*_, **__):
        raise NotFetched(302, "http://logos.example/file")

    monkeypatch.setattr("muniment.outbound.fetching.fetch", moved)
    with pytest.raises(ValueError, match="from https to http"):
        follow("https://logos.example/file", accept="*/*")


@pytest.mark.parametrize(
    ("address", "plain"),
    [
        (" https://logos.example/a b.png ", "https://logos.example/a%20b.png"),
        ("https://LOGOS.example/ä?x=ü#top", "https://logos.example/%C3%A4?x=%C3%BC"),
        ("https://münze.example", "https://xn--mnze-0ra.example/"),
        ("https://straße.example./", "https://xn--strae-oqa.example/"),
        ("http://[2606:4700::1111]:80/x", "http://[2606:4700::1111]/x"),
        ("https://logos.example/a\r\nX-Injected: 1", "https://logos.example/aX-Injected:%201"),
    ],
)
def test_addresses_are_written_in_ascii(address, plain):
    assert plain_address(address) == plain


@pytest.mark.parametrize(
    "address",
    [
        *("", "logo.png", "ftp://logos.example/x", "data:image/png;base64,AAAA", "javascript:alert(1)", "https:///x"),
        *("https://user:secret@logos.example/x", "https://logos.example:8443/x", "https://logos.example:x/y"),
        "https://logos.example/" + "x" * 3_000,
    ],
)
def test_other_addresses_are_refused(address):
    with pytest.raises(ValueError, match=r"."):
        plain_address(address)
