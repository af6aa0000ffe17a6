"""
Settings: the name, default and help of each.

The only reader of the environment. Imports neither Django nor other packages except the kernel, so that a process can
read its settings before it loads anything large.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, NamedTuple, TypeVar
from urllib.parse import urlsplit

PREFIX = "MUNIMENT_"
MAX_WHOLE = 2**31 - 1
"""The largest whole number: must fit a database column of costs, and a system timeout."""
Value = TypeVar("Value")


FORWARDED_HEADERS: Final = ("X-Forwarded-For", "Forwarded", "X-Real-IP", "CF-Connecting-IP", "True-Client-IP")
"""Headers in which a proxy can name the client."""


class ConfigError(Exception):
    """A setting has an invalid value. The message names the setting and the expected format."""


def _path(value: str) -> Path:
    return Path(value).expanduser()


def _natural(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value) or int(value) > MAX_WHOLE:
        message = f"must be a whole number up to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def _positive(value: str) -> int:
    if _natural(value) == 0:
        message = f"must be a whole number from 1 to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def _switch(value: str) -> bool:
    if value.lower() not in {"on", "off"}:
        message = "must be on or off"
        raise ValueError(message)
    return value.lower() == "on"


def _limit(value: str) -> int:
    try:
        return 0 if value.lower() == "off" else _natural(value)
    except ValueError as error:
        message = f"{error}, or off"
        raise ValueError(message) from None


def _words(value: str) -> tuple[str, ...]:
    return tuple(word for word in re.split(r"[\s,]+", value) if word)


def _networks(value: str) -> tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]:
    return tuple(ipaddress.ip_network(word, strict=False) for word in _words(value))


def _forwarded_header(value: str) -> str:
    for name in FORWARDED_HEADERS:
        if name.lower() == value.lower():
            return name
    message = f"must be one of {', '.join(FORWARDED_HEADERS)}"
    raise ValueError(message)


def _listen_address(value: str) -> str:
    found = re.fullmatch(r"(?:\[[0-9a-fA-F:.]+\]|[^\s:/\[\]]+):([0-9]{1,5})", value)
    if value and (found is None or not 1 <= int(found[1]) < 2**16):
        message = "must be host:port, such as 127.0.0.1:8001 or [::1]:8001"
        raise ValueError(message)
    return value


def _matching(pattern: str, fault: str) -> Callable[[str], str]:
    """Return a reader of text that matches *pattern*; it raises ValueError with *fault* for any other."""

    def read(value: str) -> str:
        if not re.fullmatch(pattern, value):
            raise ValueError(fault)
        return value

    return read


def _url(schemes: set[str], fault: str, *refused: str) -> Callable[[str], str]:
    """Return a reader of an optional URL: one of *schemes* and a host, without the parts *refused*."""

    def read(value: str) -> str:
        parts = urlsplit(value)
        if value and (parts.scheme not in schemes or not parts.hostname or any(getattr(parts, x) for x in refused)):
            raise ValueError(fault)
        return value

    return read


_WEB: Final = {"http", "https"}
_web_url = _url(_WEB, "must be a URL such as https://registry.example", "query", "fragment", "username")
_model_url = _url(
    _WEB, "must be a URL such as https://models.example/v1, without a key or a query", "query", "fragment", "username"
)
_collector_url = _url(
    _WEB,
    "must be a URL such as http://localhost:4318; put credentials into OTEL_EXPORTER_OTLP_HEADERS",
    "username",
    "query",
)
_mail_url = _url(
    {"smtp", "smtps", "smtp+tls"},
    "must be smtp://user:password@host:587, or smtps:// or smtp+tls:// for an encrypted connection",
)
_storage_url = _url({"s3"}, "must be a URL such as s3://KEY:SECRET@bucket/prefix?region=eu-central-1")
_database_url = _matching(
    r"(?:postgres(?:ql)?://.+)?",
    "must be postgresql://user:password@host/database, or empty for SQLite in the data folder",
)


def _base_url(value: str) -> str:
    parts = urlsplit(_web_url(value))
    if parts.path not in {"", "/"}:
        message = "must be an origin without a path"
        raise ValueError(message)
    return f"{parts.scheme}://{parts.netloc.lower()}" if value else ""


def backup_address(value: str) -> str:
    """Read the place of backups: off, an S3 address, or the path of a folder; raise ValueError for anything else."""
    if value == "off" or not value.startswith("s3:"):
        return value if value == "off" or not value else str(_path(value).absolute())
    return _storage_url(value)


PERIODS: Final = ("recent", "hourly", "daily", "weekly", "monthly")
"""What a number of backups is kept of: the newest of all, or the newest of each hour, day, week or month."""


def _retention(value: str) -> dict[str, int]:
    found = {name: int(number) for name, number in re.findall(r"([a-z]+)=([0-9]{1,4})(?=[\s,]|$)", value)}
    if len(found) != len(_words(value)) or not set(found) <= set(PERIODS) or not found.get("recent"):
        message = f"must be pairs such as recent=4,daily=7 of {', '.join(PERIODS)}, with at least one recent"
        raise ValueError(message)
    return found


def _endpoint_url(value: str) -> str:
    return _model_url(value).rstrip("/")


class NameServer(NamedTuple):
    """The address and port of a DNS server."""

    address: str
    port: int

    def __str__(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"


def _name_servers(value: str) -> tuple[NameServer, ...]:
    found = []
    for word in _words(value):
        match = re.fullmatch(
            r"\[([0-9a-fA-F:.]+)\](?::([0-9]{1,5}))?|([0-9.]+)(?::([0-9]{1,5}))?|([0-9a-fA-F:.]+)", word
        )
        address, port = (match[1] or match[3] or match[5], int(match[2] or match[4] or 53)) if match else ("", 0)
        if not 1 <= port < 2**16:
            message = "must be addresses such as 192.0.2.53, 192.0.2.53:5353 or [2001:db8::53]:53"
            raise ValueError(message)
        found.append(NameServer(str(ipaddress.ip_address(address)), port))
    return tuple(found)


def _scanner(value: str) -> str:
    port = re.fullmatch(r".+:([0-9]{1,5})", value)
    if value and not value.startswith("/") and (port is None or not 1 <= int(port[1]) < 2**16):
        message = "must be host:port, or a socket path such as /run/clamd.sock"
        raise ValueError(message)
    return value


class Pack(NamedTuple):
    """Credits sold together, and their price in minor units of the instance's currency."""

    credits: int
    price_minor: int

    def __str__(self) -> str:
        return f"{self.credits}={self.price_minor}"


def _packs(value: str) -> tuple[Pack, ...]:
    found = []
    for word in _words(value):
        match = re.fullmatch(r"([1-9]\d{0,8})=([1-9]\d{0,7})", word)
        if match is None:
            message = "must be credits=price pairs such as 100=900,500=4000, with prices in minor units"
            raise ValueError(message)
        found.append(Pack(int(match[1]), int(match[2])))
    if len({pack.credits for pack in found}) < len(found) or len(found) > 12:
        message = "must be at most 12 packs of different sizes"
        raise ValueError(message)
    return tuple(found)


class Setting(Generic[Value]):
    """A setting of :class:`Config`. Its environment variable is ``MUNIMENT_`` and the upper-case name."""

    def __init__(self, default: str, read: Callable[[str], Value], explanation: str) -> None:
        self.default = default
        self.read = read
        self.help = explanation

    def __set_name__(self, _: type, name: str) -> None:
        self.name = name
        self.variable = PREFIX + name.upper()

    def __get__(self, config: object, _: type) -> Value:
        """Declare the type of the attribute; its value is in the instance, where Python looks first."""
        raise AttributeError(self.name)


class Config:
    """The settings of one process, read once, as attributes; see :class:`Setting`."""

    data = Setting("./muniment-data", _path, "Folder of the SQLite database, blobs, keys and exports.")
    database_url = Setting("", _database_url, "PostgreSQL URL; default SQLite in the data folder.")
    base_url = Setting("", _base_url, "Public URL, such as https://registry.example; default the listening address.")
    registry_name = Setting("Muniment", str, "Name of the registry on pages, server cards and documents.")
    secret_key = Setting(
        "", str, "Secret key, the same on all nodes; NEW,PRESENT during a rotation; default a file in the data folder."
    )
    mail_url = Setting("", _mail_url, "smtp://user:password@host:587; default writes mail to the data folder.")
    mail_from = Setting("", str, "Sender address of mail; default registry@ and the host of the public URL.")
    signup = Setting("on", _switch, "Let anyone create an account.")
    oidc_issuer = Setting(
        "", str, "Issuer URL of an OpenID Connect provider that states auth_time, such as https://login.example."
    )
    oidc_client_id = Setting("", str, "Client ID of this registry at the identity provider.")
    oidc_client_secret = Setting("", str, "Client secret of this registry at the identity provider.")
    oidc_name = Setting("single sign-on", str, "Name of the identity provider on the sign-in page.")
    currency = Setting(
        "USD", _matching(r"[A-Z]{3}", "must be an ISO 4217 code such as USD"), "ISO 4217 code of all amounts of money."
    )
    rate_limit = Setting("600", _limit, "Requests per minute and client address; off disables the limit.")
    rate_burst = Setting("100", _natural, "Requests that a client may send at once.")
    account_writes = Setting(
        "60", _limit, "Changes per minute and account, twice as many at once; off disables the limit."
    )
    account_cpu_ms = Setting(
        "2000",
        _limit,
        "CPU milliseconds per minute of an account's pages, five times as many at once; off disables it.",
    )
    trusted_proxies = Setting("", _networks, "Networks of the proxies whose forwarding headers are trusted.")
    forwarded_header = Setting(
        "X-Forwarded-For",
        _forwarded_header,
        "The one header in which trusted proxies name the client: X-Forwarded-For, Forwarded, X-Real-IP,"
        " CF-Connecting-IP or True-Client-IP.",
    )
    admin_listen = Setting(
        "", _listen_address, "host:port that alone serves /metrics and /readyz; default the address of the registry."
    )
    allowed_hosts = Setting("", _words, "Additional Host names accepted by the tool servers.")
    allowed_origins = Setting("", _words, "Additional Origins that may call the tool servers on a loopback Host.")
    cache_mb = Setting("32", _natural, "Response cache of each process, in megabytes.")
    exports_interval_s = Setting("600", _natural, "Minimum seconds between exports; 0 disables exports.")
    changes_kept = Setting("200000", _natural, "Number of entries in the change feed.")
    scrub_days = Setting("7", _natural, "Days in which everything stored is verified once; 0 disables the scrub.")
    max_lag_s = Setting("10", _natural, "Replication lag in seconds after which a node is not ready; PostgreSQL only.")
    standby_wait_s = Setting(
        "10",
        _positive,
        "Seconds that a change waits for a synchronous standby before it counts as unconfirmed; PostgreSQL only.",
    )
    patroni_url = Setting(
        "", _base_url, "Patroni's REST API, such as http://postgres-1:8008, for doctor to read the replication mode."
    )
    max_connections = Setting(
        "4000", _natural, "Open connections per process; the address with the most makes room when exceeded."
    )
    max_connections_per_address = Setting(
        "256", _positive, "Open connections per client address and process; through a trusted proxy, its requests."
    )
    header_timeout_s = Setting("10", _natural, "Time limit for request headers, in seconds.")
    body_timeout_s = Setting("60", _natural, "Time limit for pauses in a request body, in seconds.")
    body_deadline_s = Setting(
        "30", _natural, "Time limit for a whole body, in seconds; uploads need 8 KB per second from then on."
    )
    express_lane = Setting("on", _switch, "Serve cached responses directly from the HTTP parser.")
    storage_url = Setting(
        "",
        _storage_url,
        "s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://… for documents; default the data folder.",
    )
    backups = Setting(
        "",
        backup_address,
        "Where scheduled backups go: a folder, s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://…, or off;"
        " default the folder backups in the data folder on SQLite, and off on PostgreSQL.",
    )
    backup_interval_s = Setting("900", _positive, "Seconds between backups; without changes none is made.")
    backup_keep = Setting(
        "recent=4,hourly=24,daily=7,weekly=4",
        _retention,
        "Backups to keep: the newest, and the newest of each hour, day, week and month that has one.",
    )
    document_max_mb = Setting("50", _natural, "Maximum document size in megabytes.")
    document_quota_mb = Setting("500", _natural, "Document storage per account, in megabytes.")
    clamd = Setting("", _scanner, "host:port or socket path of a clamd that scans documents; default no scan.")
    dns_servers = Setting("", _name_servers, "Name servers that domain proofs are looked up at; default the system's.")
    starting_credits = Setting("100", _natural, "Starting credit balance of a new account.")
    run_cost = Setting("10", _natural, "Price of a report run in credits, unless its framework sets another.")
    model_url = Setting(
        "",
        _endpoint_url,
        "OpenAI-compatible endpoint that evaluates reports, such as https://models.example/v1; default rules only.",
    )
    model_name = Setting("", str, "Model to request from the endpoint; shown in reports.")
    model_key = Setting("", str, "API key of the endpoint; default none.")
    model_run_tokens = Setting("500000", _natural, "Token limit of a report run; rules evaluate the rest.")
    model_run_seconds = Setting(
        "300", _natural, "Time limit for the model in a report run, in seconds; rules evaluate the rest."
    )
    model_timeout_s = Setting("60", _positive, "Time limit for one response of the model, in seconds.")
    model_parallel = Setting("4", _positive, "Concurrent model requests per report run.")
    credit_packs = Setting(
        "", _packs, "Credit packs for sale: credits=price in minor units, such as 100=900,500=4000; default none."
    )
    stripe_secret_key = Setting("", str, "Secret or restricted API key of the Stripe account that sells credits.")
    stripe_webhook_secret = Setting("", str, "Signing secret of Stripe's webhook to /billing/stripe/webhook.")
    stripe_checkout_url = Setting(
        "https://checkout.stripe.com",
        _base_url,
        "URL of Stripe's payment page; change it if the Stripe account has a custom domain.",
    )
    stripe_api_base = Setting("", _base_url, "URL of Stripe's API; default Stripe's own.")
    otlp_url = Setting(
        "", _collector_url, "OpenTelemetry collector for traces, such as http://localhost:4318; default none."
    )
    log_format = Setting("json", _matching("json|text", "must be json or text"), "Log format: json or text.")
    log_requests = Setting("off", _switch, "Log every request.")

    def __init__(self, environment: Mapping[str, str] | None = None, **overrides: object) -> None:
        """
        Read every setting.

        Args:
            environment: the variables; the process's environment by default.
            overrides: parsed values that override the environment, by setting name.

        Raises:
            ConfigError: a value is invalid, or requires another setting.
        """
        source = os.environ if environment is None else environment
        for setting in SETTINGS:
            if setting.name in overrides:
                value = overrides[setting.name]
            else:
                try:
                    value = setting.read(source.get(setting.variable, setting.default))
                except ValueError as error:
                    message = f"{setting.variable} {error}."
                    raise ConfigError(message) from None
            object.__setattr__(self, setting.name, value)
        if self.model_url and not self.model_name:
            message = "MUNIMENT_MODEL_NAME must name a model when MUNIMENT_MODEL_URL is set."
            raise ConfigError(message)

    def __setattr__(self, name: str, value: object) -> None:
        message = f"settings are read once; {name} cannot change"
        raise AttributeError(message)

    @property
    def admin_address(self) -> tuple[str, int] | None:
        """Return the host and port of the administrative listener, if it is separate."""
        host, _, port = self.admin_listen.rpartition(":")
        return (host.strip("[]"), int(port)) if self.admin_listen else None

    @property
    def backup_place(self) -> str:
        """Return the folder or S3 address of scheduled backups; empty if none are made."""
        if self.backups or self.on_postgresql:
            return "" if self.backups == "off" else self.backups
        return str((self.data / "backups").absolute())

    @property
    def database_file(self) -> Path:
        return self.data / "muniment.sqlite3"

    @property
    def published_file(self) -> Path:
        """Return the path of the published documents: the SQLite database, or a node's replica of PostgreSQL."""
        return self.data / "published.sqlite3" if self.on_postgresql else self.database_file

    @property
    def on_postgresql(self) -> bool:
        return self.database_url.startswith(("postgresql://", "postgres://"))


SETTINGS: tuple[Setting[Any], ...] = tuple(each for each in vars(Config).values() if isinstance(each, Setting))

_current: Config | None = None


def current() -> Config:
    """Return the settings of this process, read at the first call."""
    global _current  # noqa: PLW0603 - one configuration per process
    if _current is None:
        _current = Config()
    return _current


def use(config: Config) -> Config:
    """Make *config* the settings of this process; the command line calls it before it imports anything else."""
    global _current  # noqa: PLW0603 - one configuration per process
    _current = config
    return config
