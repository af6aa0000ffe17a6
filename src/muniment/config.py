"""
Settings: the name, default and help of each.

The only reader of the environment. Imports neither Django nor other packages except the kernel, so that a process can
read its settings before it loads anything large.
"""

import ipaddress
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

PREFIX = "MUNIMENT_"
MAX_WHOLE = 2**31 - 1
"""The largest whole number: must fit a database column of costs, and a system timeout."""


class ConfigError(Exception):
    """A setting has an invalid value. The message names the setting and the expected format."""


def _text(value: str) -> str:
    return value


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


def _base_url(value: str) -> str:
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        message = "must be a URL such as https://registry.example"
        raise ValueError(message)
    if parts.path not in {"", "/"}:
        message = "must be an origin without a path"
        raise ValueError(message)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _collector(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query):
        message = "must be a URL such as http://localhost:4318; put credentials into OTEL_EXPORTER_OTLP_HEADERS"
        raise ValueError(message)
    return value


def _mail_url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in {"smtp", "smtps", "smtp+tls"} or not parts.hostname):
        message = "must be smtp://user:password@host:587, or smtps:// or smtp+tls:// for an encrypted connection"
        raise ValueError(message)
    return value


def _currency(value: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", value):
        message = "must be an ISO 4217 code such as USD"
        raise ValueError(message)
    return value


def _storage_url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme != "s3" or not parts.hostname):
        message = "must be a URL such as s3://KEY:SECRET@bucket/prefix?region=eu-central-1"
        raise ValueError(message)
    return value


def _database_url(value: str) -> str:
    if value and not re.fullmatch(r"postgres(?:ql)?://.+", value):
        message = "must be postgresql://user:password@host/database, or empty for SQLite in the data folder"
        raise ValueError(message)
    return value


def _scanner(value: str) -> str:
    port = re.fullmatch(r".+:([0-9]{1,5})", value)
    if value and not value.startswith("/") and (port is None or not 1 <= int(port[1]) < 2**16):
        message = "must be host:port, or a socket path such as /run/clamd.sock"
        raise ValueError(message)
    return value


def _log_format(value: str) -> str:
    if value not in {"json", "text"}:
        message = "must be json or text"
        raise ValueError(message)
    return value


def _endpoint_url(value: str) -> str:
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        message = "must be a URL such as https://models.example/v1, without a key or a query"
        raise ValueError(message)
    return value.rstrip("/")


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


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting. Its environment variable is ``MUNIMENT_`` and the upper-case name."""

    name: str
    default: str
    read: Callable[[str], Any]
    help: str

    @property
    def variable(self) -> str:
        return PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("data", "./muniment-data", _path, "Folder of the SQLite database, blobs, keys and exports."),
    Setting("database_url", "", _database_url, "PostgreSQL URL; default SQLite in the data folder."),
    Setting("base_url", "", _base_url, "Public URL, such as https://registry.example; default the listening address."),
    Setting("registry_name", "Muniment", _text, "Name of the registry on pages, server cards and documents."),
    Setting(
        "secret_key",
        "",
        _text,
        "Key that signs cookies and links, shared by all nodes; default a file in the data folder.",
    ),
    Setting("mail_url", "", _mail_url, "smtp://user:password@host:587; default writes mail to the data folder."),
    Setting("mail_from", "registry@localhost", _text, "Sender address of mail."),
    Setting("signup", "on", _switch, "Let anyone create an account."),
    Setting("oidc_issuer", "", _text, "Issuer URL of an OpenID Connect provider, such as https://login.example."),
    Setting("oidc_client_id", "", _text, "Client ID of this registry at the identity provider."),
    Setting("oidc_client_secret", "", _text, "Client secret of this registry at the identity provider."),
    Setting("oidc_name", "single sign-on", _text, "Name of the identity provider on the sign-in page."),
    Setting("currency", "USD", _currency, "ISO 4217 code of all amounts of money."),
    Setting("rate_limit", "600", _limit, "Requests per minute and client address; off disables the limit."),
    Setting("rate_burst", "100", _natural, "Requests that a client may send at once."),
    Setting("trusted_proxies", "", _networks, "Networks whose Forwarded and X-Forwarded-For headers are trusted."),
    Setting("allowed_hosts", "", _words, "Additional Host names accepted by the tool servers."),
    Setting("allowed_origins", "", _words, "Additional Origins that may call the tool servers on a loopback Host."),
    Setting("cache_mb", "32", _natural, "Response cache of each process, in megabytes."),
    Setting(
        "exports_interval_s",
        "600",
        _natural,
        "Minimum seconds between exports; 0 disables exports.",
    ),
    Setting("changes_kept", "200000", _natural, "Number of entries in the change feed."),
    Setting(
        "max_lag_s",
        "10",
        _natural,
        "Replication lag in seconds after which a node is not ready; PostgreSQL only.",
    ),
    Setting(
        "max_connections",
        "4000",
        _natural,
        "Open connections per process; the longest-idle connection is closed when exceeded.",
    ),
    Setting("header_timeout_s", "10", _natural, "Time limit for request headers, in seconds."),
    Setting("body_timeout_s", "60", _natural, "Time limit for pauses in a request body, in seconds."),
    Setting("express_lane", "on", _switch, "Serve cached responses directly from the HTTP parser."),
    Setting(
        "storage_url",
        "",
        _storage_url,
        "s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://… for documents; default the data folder.",
    ),
    Setting("document_max_mb", "50", _natural, "Maximum document size in megabytes."),
    Setting("document_quota_mb", "500", _natural, "Document storage per account, in megabytes."),
    Setting("clamd", "", _scanner, "host:port or socket path of a clamd that scans documents; default no scan."),
    Setting("starting_credits", "100", _natural, "Starting credit balance of a new account."),
    Setting("run_cost", "10", _natural, "Price of a report run in credits, unless its framework sets another."),
    Setting(
        "model_url",
        "",
        _endpoint_url,
        "OpenAI-compatible endpoint that evaluates reports, such as https://models.example/v1; default rules only.",
    ),
    Setting("model_name", "", _text, "Model to request from the endpoint; shown in reports."),
    Setting("model_key", "", _text, "API key of the endpoint; default none."),
    Setting("model_run_tokens", "500000", _natural, "Token limit of a report run; rules evaluate the rest."),
    Setting(
        "model_run_seconds",
        "300",
        _natural,
        "Time limit for the model in a report run, in seconds; rules evaluate the rest.",
    ),
    Setting("model_timeout_s", "60", _positive, "Time limit for one response of the model, in seconds."),
    Setting("model_parallel", "4", _positive, "Concurrent model requests per report run."),
    Setting(
        "credit_packs",
        "",
        _packs,
        "Credit packs for sale: credits=price in minor units, such as 100=900,500=4000; default none.",
    ),
    Setting("stripe_secret_key", "", _text, "Secret or restricted API key of the Stripe account that sells credits."),
    Setting("stripe_webhook_secret", "", _text, "Signing secret of Stripe's webhook to /billing/stripe/webhook."),
    Setting(
        "stripe_checkout_url",
        "https://checkout.stripe.com",
        _base_url,
        "URL of Stripe's payment page; change it if the Stripe account has a custom domain.",
    ),
    Setting("stripe_api_base", "", _base_url, "URL of Stripe's API; default Stripe's own."),
    Setting(
        "otlp_url",
        "",
        _collector,
        "OpenTelemetry collector for traces, such as http://localhost:4318; default none.",
    ),
    Setting("log_format", "json", _log_format, "Log format: json or text."),
    Setting("log_requests", "off", _switch, "Log every request."),
)


class Config:
    """The settings of one process, read once, as attributes; see :data:`SETTINGS`."""

    data: Path
    database_url: str
    base_url: str
    registry_name: str
    secret_key: str
    mail_url: str
    mail_from: str
    signup: bool
    oidc_issuer: str
    oidc_client_id: str
    oidc_client_secret: str
    oidc_name: str
    currency: str
    rate_limit: int
    rate_burst: int
    trusted_proxies: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]
    allowed_hosts: tuple[str, ...]
    allowed_origins: tuple[str, ...]
    cache_mb: int
    exports_interval_s: int
    changes_kept: int
    max_lag_s: int
    max_connections: int
    header_timeout_s: int
    body_timeout_s: int
    express_lane: bool
    storage_url: str
    document_max_mb: int
    document_quota_mb: int
    clamd: str
    starting_credits: int
    run_cost: int
    model_url: str
    model_name: str
    model_key: str
    model_run_tokens: int
    model_run_seconds: int
    model_timeout_s: int
    model_parallel: int
    credit_packs: tuple[Pack, ...]
    stripe_secret_key: str
    stripe_webhook_secret: str
    stripe_checkout_url: str
    stripe_api_base: str
    otlp_url: str
    log_format: str
    log_requests: bool

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
    def database_file(self) -> Path:
        return self.data / "muniment.sqlite3"

    @property
    def published_file(self) -> Path:
        """Return the path of the published documents: the SQLite database, or a node's replica of PostgreSQL."""
        return self.data / "published.sqlite3" if self.on_postgresql else self.database_file

    @property
    def on_postgresql(self) -> bool:
        return self.database_url.startswith(("postgresql://", "postgres://"))


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
