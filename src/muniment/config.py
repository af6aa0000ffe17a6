"""
Every setting: its name, its default, a line of help.

The only reader of the environment. Imports nothing of Django and nothing of ours but the kernel, so
that a process can read its settings before anything heavy is loaded.
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
"""What a whole number may be at most: more has no place in a column of costs, nor in a wait of the system's."""


class ConfigError(Exception):
    """A setting holds a value that it does not take. The message names the setting and what it takes."""


def _text(value: str) -> str:
    return value


def _path(value: str) -> Path:
    return Path(value).expanduser()


def _natural(value: str) -> int:
    if not re.fullmatch(r"[0-9]{1,10}", value) or int(value) > MAX_WHOLE:
        message = f"takes a whole number up to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def _positive(value: str) -> int:
    if _natural(value) == 0:
        message = f"takes a whole number from 1 to {MAX_WHOLE:,}"
        raise ValueError(message)
    return int(value)


def _switch(value: str) -> bool:
    if value.lower() not in {"on", "off"}:
        message = "takes on or off"
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
        message = "takes an address such as https://registry.example"
        raise ValueError(message)
    if parts.path not in {"", "/"}:
        message = "takes an origin without a path"
        raise ValueError(message)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def _collector(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in {"http", "https"} or not parts.hostname or parts.username or parts.query):
        message = "takes an address such as http://localhost:4318; credentials go into OTEL_EXPORTER_OTLP_HEADERS"
        raise ValueError(message)
    return value


def _mail_url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme not in {"smtp", "smtps", "smtp+tls"} or not parts.hostname):
        message = "takes smtp://user:password@host:587, with smtps:// or smtp+tls:// for an encrypted connection"
        raise ValueError(message)
    return value


def _currency(value: str) -> str:
    if not re.fullmatch(r"[A-Z]{3}", value):
        message = "takes an ISO 4217 code such as USD"
        raise ValueError(message)
    return value


def _storage_url(value: str) -> str:
    parts = urlsplit(value)
    if value and (parts.scheme != "s3" or not parts.hostname):
        message = "takes an address such as s3://KEY:SECRET@bucket/prefix?region=eu-central-1"
        raise ValueError(message)
    return value


def _database_url(value: str) -> str:
    if value and not re.fullmatch(r"postgres(?:ql)?://.+", value):
        message = "takes postgresql://user:password@host/database; empty keeps SQLite in the data folder"
        raise ValueError(message)
    return value


def _scanner(value: str) -> str:
    port = re.fullmatch(r".+:([0-9]{1,5})", value)
    if value and not value.startswith("/") and (port is None or not 1 <= int(port[1]) < 2**16):
        message = "takes host:port, or the path of a socket such as /run/clamd.sock"
        raise ValueError(message)
    return value


def _log_format(value: str) -> str:
    if value not in {"json", "text"}:
        message = "takes json or text"
        raise ValueError(message)
    return value


def _endpoint_url(value: str) -> str:
    if not value:
        return ""
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment or parts.username:
        message = "takes an address such as https://models.example/v1, without a key or a query"
        raise ValueError(message)
    return value.rstrip("/")


class Pack(NamedTuple):
    """Credits that are bought together, and their price in minor units of the instance's currency."""

    credits: int
    price_minor: int

    def __str__(self) -> str:
        return f"{self.credits}={self.price_minor}"


def _packs(value: str) -> tuple[Pack, ...]:
    found = []
    for word in _words(value):
        match = re.fullmatch(r"([1-9]\d{0,8})=([1-9]\d{0,7})", word)
        if match is None:
            message = "takes credits=price pairs such as 100=900,500=4000, the price in minor units"
            raise ValueError(message)
        found.append(Pack(int(match[1]), int(match[2])))
    if len({pack.credits for pack in found}) < len(found) or len(found) > 12:
        message = "takes at most 12 packs, each of a size of its own"
        raise ValueError(message)
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting: the environment variable is ``MUNIMENT_`` and the upper-case name."""

    name: str
    default: str
    read: Callable[[str], Any]
    help: str

    @property
    def variable(self) -> str:
        """Give the name of the environment variable."""
        return PREFIX + self.name.upper()


SETTINGS: tuple[Setting, ...] = (
    Setting("data", "./muniment-data", _path, "Folder of the SQLite database, blobs, keys and exports."),
    Setting("database_url", "", _database_url, "postgresql://… to grow; empty keeps SQLite in the data folder."),
    Setting(
        "base_url", "", _base_url, "Public address, such as https://registry.example; empty means the address served."
    ),
    Setting("registry_name", "Muniment", _text, "What the registry calls itself on pages, cards and documents."),
    Setting("secret_key", "", _text, "Signs cookies and links; empty makes one in the data folder; nodes share one."),
    Setting("mail_url", "", _mail_url, "smtp://user:password@host:587; empty puts mail into the data folder."),
    Setting("mail_from", "registry@localhost", _text, "The address that mail comes from."),
    Setting("signup", "on", _switch, "Let anyone make an account."),
    Setting("oidc_issuer", "", _text, "An identity provider to sign in with, such as https://login.example."),
    Setting("oidc_client_id", "", _text, "What the identity provider calls this registry."),
    Setting("oidc_client_secret", "", _text, "The secret shared with the identity provider."),
    Setting("oidc_name", "single sign-on", _text, "What the sign-in page calls the identity provider."),
    Setting("currency", "USD", _currency, "ISO 4217 code of every amount of money in this registry."),
    Setting("rate_limit", "600", _limit, "Requests a minute for each client address; off removes the limit."),
    Setting("rate_burst", "100", _natural, "Requests that a client may send at once before the rate holds it."),
    Setting("trusted_proxies", "", _networks, "Networks whose Forwarded and X-Forwarded-For headers are believed."),
    Setting("allowed_hosts", "", _words, "Further Host names that the tool servers answer to."),
    Setting("allowed_origins", "", _words, "Further Origins that may call the tool servers on a loopback Host."),
    Setting("cache_mb", "32", _natural, "Megabytes of finished answers that a process keeps."),
    Setting(
        "exports_interval_s",
        "600",
        _natural,
        "Seconds at least between two makings of the whole-registry files; 0 makes none.",
    ),
    Setting("changes_kept", "200000", _natural, "Entries that the change feed keeps."),
    Setting(
        "max_lag_s",
        "10",
        _natural,
        "Seconds behind the newest edition after which a node is not ready; PostgreSQL only.",
    ),
    Setting("max_connections", "4000", _natural, "Connections that a process holds; beyond it the most idle one goes."),
    Setting("header_timeout_s", "10", _natural, "Seconds that a client has to send a request's headers."),
    Setting("body_timeout_s", "60", _natural, "Seconds that a client may pause while it sends a body."),
    Setting("express_lane", "on", _switch, "Answer ready responses from within the HTTP parser."),
    Setting(
        "storage_url",
        "",
        _storage_url,
        "s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://… for documents; empty keeps them in the data folder.",
    ),
    Setting("document_max_mb", "50", _natural, "Megabytes of the largest document."),
    Setting("document_quota_mb", "500", _natural, "Megabytes of documents that an account may keep."),
    Setting("clamd", "", _scanner, "host:port or socket path of a clamd that scans documents; empty scans nothing."),
    Setting("starting_credits", "100", _natural, "Credits that an account has when it first looks at them."),
    Setting(
        "run_cost", "10", _natural, "Credits that a report run costs, unless its framework has a price of its own."
    ),
    Setting(
        "model_url",
        "",
        _endpoint_url,
        "OpenAI-compatible endpoint whose model judges reports, such as https://models.example/v1; empty means rules.",
    ),
    Setting("model_name", "", _text, "The model that the endpoint is asked for; reports name it."),
    Setting("model_key", "", _text, "The key that the endpoint wants; empty sends none."),
    Setting("model_run_tokens", "500000", _natural, "Tokens that one report run may use; rules judge what is left."),
    Setting("model_run_seconds", "300", _natural, "Seconds that one report run may ask; rules judge what is left."),
    Setting("model_timeout_s", "60", _positive, "Seconds that the model has for one answer."),
    Setting("model_parallel", "4", _positive, "Questions to the model at once, for each run."),
    Setting(
        "credit_packs",
        "",
        _packs,
        "What can be bought: credits=price in minor units, such as 100=900,500=4000; empty sells nothing.",
    ),
    Setting("stripe_secret_key", "", _text, "Secret or restricted key of the Stripe account that sells credits."),
    Setting("stripe_webhook_secret", "", _text, "Signing secret of Stripe's webhook to /billing/stripe/webhook."),
    Setting(
        "stripe_checkout_url",
        "https://checkout.stripe.com",
        _base_url,
        "Where Stripe's payment page is; another address when the Stripe account has a domain of its own.",
    ),
    Setting("stripe_api_base", "", _base_url, "Where Stripe's API is; empty means Stripe's own address."),
    Setting(
        "otlp_url",
        "",
        _collector,
        "An OpenTelemetry collector that traces go to, such as http://localhost:4318; empty sends none.",
    ),
    Setting("log_format", "json", _log_format, "json for machines, text for people."),
    Setting("log_requests", "off", _switch, "Write a line for each request."),
)


class Config:
    """The settings of one process, read once, an attribute each; see :data:`SETTINGS`."""

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
            environment: the variables; the process's own when absent.
            overrides: finished values that win over the environment, by setting name.

        Raises:
            ConfigError: a value that its setting does not take, or one that needs another.
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
            message = "MUNIMENT_MODEL_URL names an endpoint; MUNIMENT_MODEL_NAME says which of its models judges."
            raise ConfigError(message)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse: settings are read once."""
        message = f"settings are read once; {name} cannot change"
        raise AttributeError(message)

    @property
    def database_file(self) -> Path:
        """Where the SQLite database stands: everything on SQLite, nothing on PostgreSQL."""
        return self.data / "muniment.sqlite3"

    @property
    def published_file(self) -> Path:
        """Where the published documents stand: the database itself on SQLite, a node's own copy on PostgreSQL."""
        return self.data / "published.sqlite3" if self.on_postgresql else self.database_file

    @property
    def on_postgresql(self) -> bool:
        """Tell whether the database is PostgreSQL."""
        return self.database_url.startswith(("postgresql://", "postgres://"))


_current: Config | None = None


def current() -> Config:
    """Give the settings of this process, read at the first call."""
    global _current  # noqa: PLW0603 - one process, one configuration
    if _current is None:
        _current = Config()
    return _current


def use(config: Config) -> Config:
    """Make *config* the settings of this process: the command line does so before anything else is imported."""
    global _current  # noqa: PLW0603 - one process, one configuration
    _current = config
    return config
