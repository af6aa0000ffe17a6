"""The host of a website, whether others share it, and what its owner can prove. Pure, except for the shipped lists."""

import re
from functools import lru_cache
from importlib import resources
from typing import Final, Literal, NamedTuple

import idna
from publicsuffixlist import PublicSuffixList

Method = Literal["dns", "file", "mail"]

FILE: Final = ".well-known/muniment-verification.txt"
RECORD: Final = "_muniment-challenge"
LOCAL_PARTS: Final = ("postmaster", "admin", "info")
MAX_HOST: Final = 253
_WEBSITE: Final = re.compile(r"(https?)://([^\x00-\x20\x7f/?#@\\:]+)(?::([0-9]+))?(/[^?#]*)?([?#].*)?", re.IGNORECASE)
_LABEL: Final = re.compile(r"(?!-)[a-z0-9-]{1,63}(?<!-)")
_SEGMENT: Final = re.compile(r"(?!\.{1,2}(?:/|$))[A-Za-z0-9@._~!$&'()*+,;=-]+")


class Site(NamedTuple):
    """
    The parts of a website's URL that count.

    Args:
        host: the host in lower case and ASCII (IDNA 2008).
        path: the path of a tenant, such as ``/harbour``; "" if the website has none that is its own.
    """

    scheme: str
    host: str
    path: str


def site_of(website: str) -> Site | None:
    """Return the site of a URL; None if its host cannot be proven: an address, a port of its own, a single label."""
    match = _WEBSITE.fullmatch(website.strip())
    if match is None:
        return None
    scheme, host, port = match[1].lower(), _ascii(match[2]), match[3]
    usual_port = "80" if scheme == "http" else "443"
    if not host or port not in {None, usual_port}:
        return None
    has_query_or_fragment = bool(match[5])
    path = "" if has_query_or_fragment else _own_path(match[4] or "")
    return Site(scheme, host, path)


def _ascii(host: str) -> str:
    """Return a host as browsers ask DNS for it; "" if it is no name in the public DNS."""
    try:
        found = idna.encode(host.lower().removesuffix("."), uts46=True).decode()
    except (idna.IDNAError, UnicodeError):
        return ""
    labels = found.split(".")
    if len(found) > MAX_HOST or len(labels) < 2 or not all(map(_LABEL.fullmatch, labels)):
        return ""
    # Browsers read a host as an IPv4 address if its last label is a number, also a hexadecimal one.
    return "" if re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1]) else found


def _own_path(path: str) -> str:
    segments = path.removesuffix("/").split("/")[1:]
    if not all(map(_SEGMENT.fullmatch, segments)):
        return ""
    return "".join(f"/{segment}" for segment in segments)


def as_written(host: str) -> str:
    """Return a host in the script that people write it in."""
    try:
        return idna.decode(host)
    except idna.IDNAError:
        return host


def bare(host: str) -> str:
    """Return a host without ``www.``, for comparing websites."""
    return host.removeprefix("www.")


@lru_cache(maxsize=1)
def _tenants() -> dict[str, tuple[str, ...]]:
    text = resources.files(__package__).joinpath("tenant_hosts.list").read_text("utf-8")
    sources: dict[str, tuple[str, ...]] = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            host, *source = line.split()
            sources[host] = tuple(source)
    return sources


@lru_cache(maxsize=1)
def _suffixes() -> PublicSuffixList:
    return PublicSuffixList()


def is_tenant_host(host: str) -> bool:
    return bare(host) in _tenants()


def registrable_domain(host: str) -> str:
    """Return the domain under a public suffix that *host* belongs to; "" for a public suffix itself."""
    return _suffixes().privatesuffix(host) or ""


class Claim(NamedTuple):
    """
    The domain of a website that can be proven, and the ways to prove it.

    Args:
        domain: as it is shown: the host, with the path where others share the host.
        methods: the ways that are open; none if nothing about the website can be proven.
    """

    site: Site
    domain: str
    methods: tuple[Method, ...]
    file_url: str

    @property
    def record(self) -> str:
        return f"{RECORD}.{self.site.host}"


def claim_of(website: str, *, shared: bool = False) -> Claim | None:
    """
    Return what can be proven about a website; None if nothing can.

    Args:
        shared: other listings use its host too.
    """
    site = site_of(website)
    if site is None or not registrable_domain(site.host):
        return None
    if not shared and not is_tenant_host(site.host):
        return Claim(site, site.host, ("dns", "file", "mail"), f"{site.scheme}://{site.host}/{FILE}")
    file_url = _tenants_file(site)
    return Claim(site, f"{site.host}{site.path}", ("file",), file_url) if file_url else None


def _tenants_file(site: Site) -> str:
    """Return where a tenant's file is: below the website's path, or where the host serves a project's files."""
    if not site.path:
        return ""
    source = _tenants().get(bare(site.host))
    if not source:
        return f"{site.scheme}://{site.host}{site.path}/{FILE}"
    template, profile = source
    owner, project, *deeper = (*site.path.split("/")[1:], profile)
    if deeper not in ([], [profile]):
        return ""
    return template.format(owner=owner, project=project) + FILE


def mail_addresses(claim: Claim, published: str) -> list[str]:
    """
    Return the addresses that a code may be sent to: of the host or its registrable domain.

    Args:
        published: the address on the listing; "" where it does not count.
    """
    if "mail" not in claim.methods:
        return []
    domains = [domain for domain in _mail_domains(claim.site.host) if not is_tenant_host(domain)]
    addresses: list[str] = []
    for domain in domains:
        addresses += [f"{name}@{domain}" for name in LOCAL_PARTS]
    local, _, host = published.strip().rpartition("@")
    if local and _ascii(host) in domains and re.fullmatch(r"[A-Za-z0-9._%+-]{1,64}", local):
        addresses.insert(0, f"{local}@{_ascii(host)}")
    return list(dict.fromkeys(addresses))


def _mail_domains(host: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((host, registrable_domain(host))))
