"""
Readers of the text of a setting: one for each kind of value.

A reader takes the text and returns the value; its ValueError says what is expected, worded to follow the name of the
setting.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Final, NamedTuple
from urllib.parse import urlsplit

import msgspec

MAX_WHOLE = 2**31 - 1
"""The largest whole number: must fit a database column of costs, and a system timeout."""
FORWARDED_HEADERS: Final = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP")
"""Headers in which a proxy can name the client."""


def path(value: str) -> Path:
    return Path(value).expanduser()


def file(value: str) -> str:
    return str(path(value).absolute()) if value else ""


def natural(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value) or int(value) > MAX_WHOLE:
        message = f"must be a whole number up to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def positive(value: str) -> int:
    if natural(value) == 0:
        message = f"must be a whole number from 1 to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def switch(value: str) -> bool:
    if value.lower() not in {"on", "off"}:
        message = "must be on or off"
        raise ValueError(message)
    return value.lower() == "on"


def limit(value: str) -> int:
    try:
        return 0 if value.lower() == "off" else natural(value)
    except ValueError as error:
        message = f"{error}, or off"
        raise ValueError(message) from None


def words(value: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[\s,]+", value) if word)


def plugins(value: str) -> tuple[str, ...]:
    names = words(value)
    if not names or (len(names) > 1 and {"all", "off"} & {*names}):
        message = "must be all, off, or names of plugins"
        raise ValueError(message)
    return names


def evaluators(value: str) -> dict[str, str]:
    """Read the evaluators of reports, by framework; that of all others has an empty name."""
    found: dict[str, str] = {}
    for word in words(value):
        framework, equals, name = word.rpartition("=")
        if framework in found or not name or (equals and not framework):
            message = "must be a name, framework-id=name, or several of these for different frameworks"
            raise ValueError(message)
        found[framework] = name
    return found


def networks(value: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(word, strict=False) for word in words(value))


def forwarded_header(value: str) -> str:
    for name in FORWARDED_HEADERS:
        if name.lower() == value.lower():
            return name
    message = f"must be one of {', '.join(FORWARDED_HEADERS)}"
    raise ValueError(message)


def listen_address(value: str) -> str:
    found = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})", value)
    if value and (found is None or not 1 <= int(found[1]) < 2**16):
        message = "must be host:port, such as 127.0.0.1:8001 or [::1]:8001"
        raise ValueError(message)
    return value


def matching(pattern: str, fault: str) -> Callable[[str], str]:
    """Return a reader of text that matches *pattern*; it raises ValueError with *fault* for any other."""

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(fault)
        return value

    return read


def url(schemes: set[str], fault: str, *refused: str) -> Callable[[str], str]:
    """Return a reader of an optional URL: one of *schemes* and a host, without the parts *refused*."""

    def read(value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in schemes or not parts.hostname or any(getattr(parts, x) for x in refused)):
            raise ValueError(fault)
        return value

    return read


_WEB: Final = {"http", "https"}
web_url = url(_WEB, "must be a URL such as https://registry.example", "query", "fragment", "username")
model_url = url(
    _WEB, "must be a URL such as https://models.example/v1, without a key or a query", "query", "fragment", "username"
)
collector_url = url(
    _WEB,
    "must be a URL such as http://localhost:4318; put credentials into OTEL_EXPORTER_OTLP_HEADERS",
    "username",
    "query",
)
mail_url = url(
    {"smtp", "smtps", "smtp+tls"},
    "must be smtp://user:password@host:587, or smtps:// or smtp+tls:// for an encrypted connection",
)


def storage_url(value: str) -> str:
    """Read the address of the document store: of S3, or of another scheme, which a plugin knows."""
    parts = urlsplit(value)
    is_s3 = parts.scheme == "s3" and bool(parts.hostname)
    is_other = parts.scheme not in {"", "s3", "file", "http", "https"} and value.startswith(f"{parts.scheme}://")
    if value and not is_s3 and not is_other:
        message = (
            "must be a URL such as s3://KEY:SECRET@bucket/prefix?region=eu-central-1, or of the scheme of a plugin"
        )
        raise ValueError(message)
    return value


s3_url = url({"s3"}, "must be a URL such as s3://KEY:SECRET@bucket/prefix?region=eu-central-1")
database_url = matching(
    r"(?:postgres(?:ql)?://.+)?",
    "must be postgresql://user:password@host/database, or empty for SQLite in the data folder",
)


def base_url(value: str) -> str:
    parts = urlsplit(web_url(value))
    if parts.path not in {"", "/"}:
        message = "must be an origin without a path"
        raise ValueError(message)
    return f"{parts.scheme}://{parts.netloc.lower()}" if value else ""


def backup_address(value: str) -> str:
    """Read the place of backups: off, an S3 address, or the path of a folder; raise ValueError for anything else."""
    if value == "off" or not value.startswith("s3:"):
        return value if value == "off" or not value else str(path(value).absolute())
    return s3_url(value)


PERIODS: Final = ("recent", "hourly", "daily", "weekly", "monthly")
"""Periods with a number of backups to keep: the newest of all, or the newest of each hour, day, week or month."""


def retention(value: str) -> dict[str, int]:
    found = {name: int(number) for name, number in re.findall(r"([a-z]+)=([0-9]{1,4})(?=[\s,]|$)", value)}
    if len(found) != len(words(value)) or not set(found) <= set(PERIODS) or not found.get("recent"):
        message = f"must be pairs such as recent=4,daily=7 of {', '.join(PERIODS)}, with at least one recent"
        raise ValueError(message)
    return found


def endpoint_url(value: str) -> str:
    return model_url(value).rstrip("/")


class NameServer(NamedTuple):
    """The address and port of a DNS server."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def name_servers(value: str) -> tuple[NameServer, ...]:
    found = []
    for word in words(value):
        match = re.fullmatch(
            r"\[([0-9a-fA-F:.]+)\](?::([0-9]{1,5}))?|([0-9.]+)(?::([0-9]{1,5}))?|([0-9a-fA-F:.]+)", word
        )
        address, port = (match[1] or match[3] or match[5], int(match[2] or match[4] or 53)) if match else ("", 0)
        if not 1 <= port < 2**16:
            message = "must be addresses such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53"
            raise ValueError(message)
        found.append(NameServer(str(ipaddress.ip_address(address)), port))
    return tuple(found)


def scanner(value: str) -> str:
    port = re.fullmatch(r".+:([0-9]{1,5})", value)
    if value and not value.startswith("/") and (port is None or not 1 <= int(port[1]) < 2**16):
        message = "must be host:port, or a socket path such as /run/clamd.sock"
        raise ValueError(message)
    return value


class SignUp(NamedTuple):
    """The accounts that may be created: any, those with a mail address in one of the domains, or none."""

    is_open: bool
    domains: tuple[str, ...] = ()

    def __str__(self) -> str:
        if self.domains:
            return " ".join(self.domains)
        return "on" if self.is_open else "off"

    def admits(self, email: str) -> bool:
        return self.is_open and (not self.domains or email.rpartition("@")[2].lower() in self.domains)


_DOMAIN: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z][a-z0-9-]{0,61}[a-z0-9]")


def sign_up(value: str) -> SignUp:
    """Read who may create an account: on, off, or mail domains."""
    if value.lower() in {"on", "off"}:
        return SignUp(value.lower() == "on")
    domains = words(value.lower())
    if not domains or not all(map(_DOMAIN.fullmatch, domains)):
        message = "must be on, off, or mail domains such as example.org example.net"
        raise ValueError(message)
    return SignUp(is_open=True, domains=domains)


@dataclass(frozen=True, slots=True)
class Provider:
    """
    An OpenID Connect provider at which people sign in.

    Args:
        key: names it in addresses, such as the address to which it sends people back.
        role_claim: the claim that lists a person's groups; dots lead into objects, as in realm_access.roles.
        roles: the groups that make a reviewer or an operator.
        sign_up: whether its people may create accounts; None if as for everyone.
    """

    key: str
    name: str
    issuer: str
    client_id: str
    client_secret: str = field(repr=False)
    role_claim: str = "groups"
    roles: tuple[tuple[str, tuple[str, ...]], ...] = ()
    sign_up: SignUp | None = None

    def __str__(self) -> str:
        return f"{self.key}: {self.name} ({self.issuer})"


_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Given(msgspec.Struct, forbid_unknown_fields=True):
    """A provider as operators write it."""

    key: Annotated[str, msgspec.Meta(pattern="^[a-z0-9][a-z0-9-]{0,31}$")]
    name: _Text
    issuer: _Text
    client_id: _Text
    client_secret: _Text
    role_claim: _Text = "groups"
    operators: tuple[str, ...] = ()
    reviewers: tuple[str, ...] = ()
    sign_up: str | None = None


def providers(value: str) -> tuple[Provider, ...]:
    """Read identity providers: a JSON list of objects."""
    try:
        given = msgspec.json.decode(value or "[]", type=list[_Given])
    except msgspec.DecodeError as error:
        raise ValueError(f"must be a JSON list of identity providers: {error}") from None
    if len({each.key for each in given}) < len(given):
        message = "must have another key for each provider"
        raise ValueError(message)
    return tuple(map(_provider, given))


def _provider(given: _Given) -> Provider:
    groups = {"operator": given.operators, "reviewer": given.reviewers}
    return Provider(
        given.key,
        given.name,
        web_url(given.issuer),
        given.client_id,
        given.client_secret,
        given.role_claim,
        tuple((role, names) for role, names in groups.items() if names),
        None if given.sign_up is None else sign_up(given.sign_up),
    )


MAX_WITNESSES: Final = 16


class Witness(NamedTuple):
    """A witness of the public log: its verifier key, and the URL below which it takes checkpoints."""

    key: str
    url: str

    def __str__(self) -> str:
        return f"{self.key} {self.url}"


def witnesses(value: str) -> tuple[Witness, ...]:
    """Read witnesses: the verifier key and the URL of each, in turn."""
    given = words(value)
    if not given:
        return ()
    from muniment.kernel.signed_notes import NoteError, WitnessKey  # most instances have none

    if len(given) % 2 or len(given) > 2 * MAX_WITNESSES:
        message = (
            "must be the verifier key and the URL of each witness, separated by spaces, for at most"
            f" {MAX_WITNESSES} witnesses"
        )
        raise ValueError(message)
    found = []
    for key, address in zip(given[::2], given[1::2], strict=True):
        try:
            WitnessKey.parse(key)
        except NoteError as error:
            raise ValueError(f"must be the verifier key and the URL of each witness: {key[:80]}: {error}") from None
        found.append(Witness(key, web_url(address).rstrip("/")))
    if len({witness.key for witness in found}) < len(found):
        message = "must have a different key for each witness"
        raise ValueError(message)
    return tuple(found)


class Pack(NamedTuple):
    """Credits sold together, and their price in minor units of the instance's currency."""

    credits: int
    price_minor: int

    def __str__(self) -> str:
        return f"{self.credits}={self.price_minor}"


def packs(value: str) -> tuple[Pack, ...]:
    found = []
    for word in words(value):
        match = re.fullmatch(r"([1-9]\d{0,8})=([1-9]\d{0,7})", word)
        if match is None:
            message = "must be credits=price pairs such as 100=900,500=4000, with prices in minor units"
            raise ValueError(message)
        found.append(Pack(int(match[1]), int(match[2])))
    if len({pack.credits for pack in found}) < len(found) or len(found) > 12:
        message = "must be at most 12 packs of different sizes"
        raise ValueError(message)
    return tuple(found)
