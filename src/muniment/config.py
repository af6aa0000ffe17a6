"""
Settings: the name, default and help of each.

The only reader of the environment and of the settings file. Imports neither Django nor other packages except the
kernel, so that a process can read its settings before it loads anything large.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from muniment import setting_sources
from muniment import setting_values as values

PREFIX = "MUNIMENT_"
DATA: Final = "./muniment-data"
DEMO_DATA: Final = Path("muniment-demo")
"""The data folder of the demo, if none is named."""
Value = TypeVar("Value")


class ConfigError(Exception):
    """A setting has an invalid value. The message names the setting and the expected format."""


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

    data = Setting(
        DATA,
        values.path,
        "Folder of the SQLite database, blobs, keys and exports; the option --data overrides it.",
    )
    settings_file = Setting(
        "", values.file, "TOML file of settings; default settings.toml in the data folder, if it exists."
    )
    registry_file = Setting(
        "", values.file, "TOML file of the registry settings; default registry.toml in the data folder, if it exists."
    )
    site_folder = Setting(
        "",
        values.file,
        "Folder of the registry's own templates and message catalogues (templates/, locale/); default site in the data"
        " folder.",
    )
    database_url = Setting("", values.database_url, "PostgreSQL URL; default SQLite in the data folder.")
    base_url = Setting(
        "", values.base_url, "Public URL, such as https://registry.example; default the listening address."
    )
    secret_key = Setting(
        "", str, "Secret key, the same on all nodes; NEW,PRESENT during a rotation; default a file in the data folder."
    )
    mail_url = Setting(
        "",
        values.mail_url,
        "smtp+tls://user:password@host:587, or smtps:// or smtp://; default writes mail to the data folder.",
    )
    mail_from = Setting("", str, "Sender address of mail; default registry@ and the host of the public URL.")
    fetch_logos = Setting(
        "off", values.switch, "Fetch the logos that listings name by URL, once each, and serve them from this registry."
    )
    signup = Setting(
        "on",
        values.sign_up,
        "Who may create an account: on for everyone, off, or mail domains such as example.org example.net.",
    )
    sign_in = Setting(
        "all",
        values.matching("all|providers", "must be all or providers"),
        "Ways to sign in: all, or only at identity providers, as soon as an operator has signed in at one.",
    )
    oidc_providers = Setting(
        "",
        values.providers,
        "OpenID Connect providers, with roles by group: a JSON list, or tables in the settings file; see"
        " docs/SIGN-IN.md.",
    )
    currency = Setting(
        "USD",
        values.matching(r"[A-Z]{3}", "must be an ISO 4217 code such as USD"),
        "ISO 4217 code of all amounts of money.",
    )
    witnesses = Setting(
        "",
        values.witnesses,
        "Witnesses that cosign the public log: the verifier key and the URL of each; see docs/VERIFYING.md.",
    )
    rate_limit = Setting("600", values.limit, "Requests per minute and client address; off disables the limit.")
    rate_burst = Setting("100", values.natural, "Requests that a client may send at once.")
    account_writes = Setting(
        "60", values.limit, "Changes per minute and account, twice as many at once; off disables the limit."
    )
    account_cpu_ms = Setting(
        "2000",
        values.limit,
        "CPU milliseconds per minute of an account's pages, five times as many at once; off disables it.",
    )
    trusted_proxies = Setting("", values.networks, "Networks of the proxies whose forwarding headers are trusted.")
    forwarded_header = Setting(
        "X-Forwarded-For",
        values.forwarded_header,
        "The one header in which trusted proxies name the client: X-Forwarded-For, Forwarded, X-Real-IP,"
        " CF-Connecting-IP or True-Client-IP.",
    )
    admin_listen = Setting(
        "",
        values.listen_address,
        "host:port that alone serves /metrics and /readyz; default the address of the registry.",
    )
    allowed_hosts = Setting("", values.words, "Additional Host names accepted by the tool servers.")
    allowed_origins = Setting("", values.words, "Additional Origins that may call the tool servers on a loopback Host.")
    cache_mb = Setting("32", values.natural, "Response cache of each process, in megabytes.")
    exports_interval_s = Setting("600", values.natural, "Minimum seconds between exports; 0 disables exports.")
    storage_url = Setting(
        "",
        values.storage_url,
        "s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://… for documents, or an address of a plugin's scheme;"
        " default the data folder.",
    )
    backups = Setting(
        "",
        values.backup_address,
        "Where scheduled backups go: a folder, s3://KEY:SECRET@bucket/prefix?region=…&endpoint=https://…, or off;"
        " default the folder backups in the data folder on SQLite, and off on PostgreSQL.",
    )
    document_max_mb = Setting("50", values.natural, "Maximum document size in megabytes.")
    import_max_mb = Setting(
        "50", values.natural, "Maximum size of a file imported from a URL, in megabytes; uploads: at most 12 MB."
    )
    document_quota_mb = Setting("500", values.natural, "Document storage per account, in megabytes.")
    clamd = Setting("", values.scanner, "host:port or socket path of a clamd that scans documents; default no scan.")
    dns_servers = Setting(
        "", values.name_servers, "Name servers that domain proofs are looked up at; default the system's."
    )
    link_checks = Setting("on", values.switch, "Open the links of submissions to tell reviewers which are dead.")
    review_digest_hours = Setting(
        "24", values.natural, "Minimum hours between two emails to a reviewer about waiting items; 0 sends none."
    )
    visitor_mail = Setting(
        "on", values.switch, "Let visitors without an account get updates of listings and searches by email."
    )
    starting_credits = Setting("100", values.natural, "Starting credit balance of a new account.")
    run_cost = Setting("10", values.natural, "Price of a report run in credits, unless its framework sets another.")
    model_url = Setting(
        "",
        values.endpoint_url,
        "OpenAI-compatible endpoint that evaluates reports, such as https://models.example/v1; default rules only.",
    )
    model_name = Setting("", str, "Model to request from the endpoint; shown in reports.")
    model_key = Setting("", str, "API key of the endpoint; default none.")
    model_run_tokens = Setting("500000", values.natural, "Token limit of a report run; rules evaluate the rest.")
    model_timeout_s = Setting("60", values.positive, "Time limit for one response of the model, in seconds.")
    credit_packs = Setting(
        "", values.packs, "Credit packs for sale: credits=price in minor units, such as 100=900,500=4000; default none."
    )
    stripe_secret_key = Setting("", str, "Secret or restricted API key of the Stripe account that sells credits.")
    stripe_webhook_secret = Setting("", str, "Signing secret of Stripe's webhook to /billing/stripe/webhook.")
    stripe_checkout_url = Setting(
        "https://checkout.stripe.com",
        values.base_url,
        "URL of Stripe's payment page; change it if the Stripe account has a custom domain.",
    )
    otlp_url = Setting(
        "", values.collector_url, "OpenTelemetry collector for traces, such as http://localhost:4318; default none."
    )
    plugins = Setting(
        "all",
        values.plugins,
        "Plugins to load, of the installed ones: all, off, or their names; see docs/PLUGINS.md.",
    )
    evaluator = Setting(
        "",
        values.evaluators,
        "Who assesses reports: rules, model, or the name of a plugin's evaluator, for one framework as"
        " framework-id=name; default the language model if there is one, else rules.",
    )
    log_format = Setting("json", values.matching("json|text", "must be json or text"), "Log format: json or text.")
    log_level = Setting(
        "info",
        values.matching("info|debug", "must be info or debug"),
        "Least level of Muniment's own log lines: info, or debug, which adds the trace of a start that fails.",
    )
    log_requests = Setting("off", values.switch, "Log every request.")

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
        chosen = str(overrides.get("settings_file", source.get(f"{PREFIX}SETTINGS_FILE", "")))
        data = str(overrides.get("data", source.get(f"{PREFIX}DATA", DATA)))
        try:
            from_file, file = setting_sources.find_file(values.path(chosen) if chosen else None, values.path(data))
            mirrored, currency = setting_sources.find_mirrored(values.path(data))
        except ValueError as error:
            raise ConfigError(str(error)) from None
        origins = {}
        for setting in SETTINGS:
            if setting.name in overrides:
                origins[setting.name], value = "command", overrides[setting.name]
            else:
                origin, text, where = "default", setting.default, setting.variable
                if setting.variable in source:
                    origin, text = "environment", source[setting.variable]
                elif setting.name in from_file:
                    origin, text, where = str(file), from_file[setting.name], f"{setting.name} in {file}"
                origins[setting.name] = origin
                try:
                    value = setting.read(text)
                except ValueError as error:
                    raise ConfigError(f"{where} {error}.") from None
            object.__setattr__(self, setting.name, value)
        known = {setting.variable: setting.name for setting in SETTINGS}
        unknown = [*setting_sources.unknown_variables(source, PREFIX, known.keys())]
        if file is not None:
            unknown += setting_sources.unknown_names(from_file, known.values(), file)
        object.__setattr__(self, "mirrored", mirrored)
        if currency:
            object.__setattr__(self, "currency", currency)
        object.__setattr__(self, "origins", origins)
        object.__setattr__(self, "unknown", unknown)
        self._require_consistency()

    def _require_consistency(self) -> None:
        """Raise ConfigError if a setting needs another one."""
        if self.mirrored and self.on_postgresql:
            message = f"{self.data} is a mirror, which has no database. Unset MUNIMENT_DATABASE_URL."
            raise ConfigError(message)
        if self.sign_in == "providers" and not self.oidc_providers:
            message = "MUNIMENT_SIGN_IN=providers needs MUNIMENT_OIDC_PROVIDERS."
            raise ConfigError(message)
        if "model" in self.evaluator.values() and not self.model_url:
            message = "MUNIMENT_EVALUATOR names the language model, which needs MUNIMENT_MODEL_URL."
            raise ConfigError(message)
        if self.model_url and not self.model_name:
            message = "MUNIMENT_MODEL_NAME must name a model when MUNIMENT_MODEL_URL is set."
            raise ConfigError(message)

    mirrored: str
    """The address of the registry that the data folder is a mirror of; empty if it is an instance of its own."""
    origins: dict[str, str]
    """The source of each setting by name: the environment, the path of a file, a command, or default."""
    unknown: list[str]
    """A sentence for each variable and each name in the file that is no setting."""

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
        if self.mirrored:
            return ""
        if self.backups or self.on_postgresql:
            return "" if self.backups == "off" else self.backups
        return str((self.data / "backups").absolute())

    @property
    def is_named(self) -> bool:
        """Return whether the operator chose the instance: its data folder or its database."""
        return self.origins["data"] != "default" or bool(self.database_url)

    @property
    def site(self) -> Path:
        """Return the folder of the registry's own templates and message catalogues; it need not exist."""
        return Path(self.site_folder) if self.site_folder else (self.data / "site").absolute()

    @property
    def database_file(self) -> Path:
        return self.data / "muniment.sqlite3"

    @property
    def published_file(self) -> Path:
        """Return the path of the published documents: the SQLite database, or a copy of those of another source."""
        return self.data / "published.sqlite3" if self.has_copy else self.database_file

    @property
    def has_copy(self) -> bool:
        """Return whether the published documents are a copy: a node's of PostgreSQL, or a mirror's of its origin."""
        return self.on_postgresql or bool(self.mirrored)

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


def use_data(folder: Path) -> Config:
    """Make *folder* the data folder of this process and of the processes that it starts."""
    os.environ[f"{PREFIX}DATA"] = str(folder.expanduser().absolute())
    return use(Config())
