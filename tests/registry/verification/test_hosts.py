"""Which host a website gives, who shares it, and which proofs and addresses are open to its owner."""

import pytest

from muniment.registry.verification.hosts import claim_of, mail_addresses, registrable_domain

FILE = "/.well-known/muniment-verification.txt"


@pytest.mark.parametrize(
    ("website", "host"),
    [
        ("https://harbour.example", "harbour.example"),
        ("HTTPS://Harbour.Example/about?x=1#team", "harbour.example"),
        ("https://www.harbour.example/", "www.harbour.example"),
        ("https://harbour.example.", "harbour.example"),
        ("https://harbour.example:443/", "harbour.example"),
        ("http://harbour.example:80/", "harbour.example"),
        ("https://münchen.example/", "xn--mnchen-3ya.example"),
        ("https://faß.example/", "xn--fa-hia.example"),
        ("https://harbour.github.io/tides", "harbour.github.io"),
        ("https://harbour.co.uk", "harbour.co.uk"),
    ],
)
def test_the_exact_host_is_proven_as_browsers_read_it(website, host):
    claim = claim_of(website)
    assert (claim.domain, claim.methods) == (host, ("dns", "file", "mail"))
    assert claim.record == f"_muniment-challenge.{host}"
    assert claim.file_url == f"{website.partition(':')[0].lower()}://{host}{FILE}"


@pytest.mark.parametrize(
    "website",
    [
        *("", "harbour.example", "ftp://harbour.example", "https://localhost/", "https://harbour", "https:///x"),
        *("http://127.0.0.1/", "http://127.1/", "http://0x7f.0x1/", "http://2130706433/", "https://[::1]/"),
        *("http://169.254.169.254/latest", "https://harbour.example:8443/", "http://harbour.example:443/"),
        *("https://me@harbour.example/", "https://good.example\\@evil.example/", "https://good.example\\.evil.example"),
        *(
            "https://har bour.example/",
            "https://har\tbour.example/",
            "https://-harbour.example/",
            "https://a_b.example",
        ),
        *("https://github.io/", "https://co.uk/", "https://" + "a." * 130 + "example", "https://harbour..example/"),
        *("https://xn--a.example/", "https://\u2028.example/", "https://a\u200db.example/"),
    ],
)
def test_a_website_without_a_host_of_its_own_in_the_public_dns_cannot_be_proven(website):
    assert claim_of(website) is None


@pytest.mark.parametrize(
    ("website", "domain", "file_url"),
    [
        ("https://sites.google.com/view/harbour/", "sites.google.com/view/harbour", None),
        ("https://linktr.ee/harbour", "linktr.ee/harbour", None),
        ("https://www.medium.com/@harbour", "www.medium.com/@harbour", None),
        (
            "https://github.com/harbour",
            "github.com/harbour",
            f"https://raw.githubusercontent.com/harbour/.github/HEAD{FILE}",
        ),
        (
            "https://github.com/harbour/tides",
            "github.com/harbour/tides",
            f"https://raw.githubusercontent.com/harbour/tides/HEAD{FILE}",
        ),
    ],
)
def test_a_tenant_of_a_shared_host_proves_its_path_by_a_file_alone(website, domain, file_url):
    claim = claim_of(website)
    assert (claim.domain, claim.methods) == (domain, ("file",))
    assert claim.file_url == (file_url or f"https://{domain}{FILE}")
    assert mail_addresses(claim, f"postmaster@{claim.site.host}") == []


def test_a_host_that_other_listings_use_counts_as_shared():
    claim = claim_of("https://harbour.example/tides", shared=True)
    assert (claim.domain, claim.methods) == ("harbour.example/tides", ("file",))
    assert claim.file_url == f"https://harbour.example/tides{FILE}"
    assert claim_of("https://harbour.example/", shared=True) is None


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/?user=harbour", "/harbour?page=2", "/harbour#tides", "/#/harbour", "//harbour", "/harbour//x"),
        *("/../harbour", "/harbour/..", "/./harbour", "/%2e%2e/harbour", "/har%2Fbour", "/harbour/tides/tree/main"),
        "/münchen",
    ],
)
def test_a_tenants_path_must_name_it_plainly(path):
    assert claim_of(f"https://github.com{path}") is None


def test_a_code_goes_to_the_host_or_its_registrable_domain_only():
    claim = claim_of("https://www.harbour.example/")
    names = ("postmaster", "admin", "info")
    assert mail_addresses(claim, "") == [f"{n}@{d}" for d in ("www.harbour.example", "harbour.example") for n in names]
    assert mail_addresses(claim, "Ida.Kelp@Harbour.example")[0] == "Ida.Kelp@harbour.example"
    for other in (
        "ida@other.example",
        "ida@deep.harbour.example",
        "ida@harbour.example.evil.example",
        "x@y@harbour.example",
    ):
        assert other not in mail_addresses(claim, other)
        assert len(mail_addresses(claim, other)) == 6


def test_no_address_at_a_shared_domain_is_evidence():
    claim = claim_of("https://harbour.substack.com/")
    assert registrable_domain(claim.site.host) == "substack.com"
    assert mail_addresses(claim, "ida@substack.com") == [
        f"{name}@harbour.substack.com" for name in ("postmaster", "admin", "info")
    ]
    assert claim_of("https://gmail.com/") is None
