"""The settings of a process as the operator's page shows them: in groups, each with the value in effect."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from django.conf import settings as django_settings
from django.utils.functional import Promise
from django.utils.translation import gettext, gettext_lazy, pgettext_lazy

from muniment.config import Config
from muniment.registry_toml import applied
from muniment.setting_sources import FILE
from muniment.shown_settings import ShownSetting, shown_settings

REGISTRY: Final = "/operate/registry"
GROUPS: Final[tuple[tuple[str | Promise, frozenset[str]], ...]] = (
    (
        gettext_lazy("General"),
        frozenset(
            [
                "data",
                "settings_file",
                "registry_file",
                "site_folder",
                "base_url",
                "fetch_logos",
                "currency",
                "plugins",
                "witnesses",
            ]
        ),
    ),
    (
        gettext_lazy("Database and exports"),
        frozenset(
            [
                "database_url",
                "secret_key",
                "cache_mb",
                "exports_interval_s",
            ]
        ),
    ),
    (gettext_lazy("Backups"), frozenset({"backups"})),
    (gettext_lazy("Mail"), frozenset({"mail_url", "mail_from", "review_digest_hours", "visitor_mail"})),
    (
        gettext_lazy("Accounts and sign-in"),
        frozenset(
            ["signup", "sign_in", "oidc_providers"],
        ),
    ),
    (gettext_lazy("Limits"), frozenset({"rate_limit", "rate_burst", "account_writes", "account_cpu_ms"})),
    (
        gettext_lazy("Network"),
        frozenset(
            [
                "trusted_proxies",
                "forwarded_header",
                "admin_listen",
                "allowed_hosts",
                "allowed_origins",
                "dns_servers",
                "link_checks",
            ]
        ),
    ),
    (
        gettext_lazy("Documents and imports"),
        frozenset({"storage_url", "document_max_mb", "import_max_mb", "document_quota_mb", "clamd"}),
    ),
    (
        gettext_lazy("Assessments"),
        frozenset(
            [
                "evaluator",
                "model_url",
                "model_name",
                "model_key",
                "model_run_tokens",
                "model_timeout_s",
            ]
        ),
    ),
    (
        gettext_lazy("Credits and payments"),
        frozenset(
            [
                "starting_credits",
                "run_cost",
                "credit_packs",
                "stripe_secret_key",
                "stripe_webhook_secret",
                "stripe_checkout_url",
            ]
        ),
    ),
    (gettext_lazy("Logs and traces"), frozenset({"log_format", "log_level", "log_requests", "otlp_url"})),
)
_OTHERS: Final = gettext_lazy("Other settings")
_OFF_AT_0: Final = frozenset({"rate_limit", "account_writes", "account_cpu_ms"})
"""Settings that are written as off, and read as 0."""
_NONE: Final = pgettext_lazy("setting", "None")


class SettingRow(NamedTuple):
    """
    A setting.

    Args:
        shown: it, as a surface may show it.
        effect: what is in effect if no value is set; empty if the value says it.
        note: how it relates to the settings of the registry.
    """

    shown: ShownSetting
    effect: str
    note: str

    @property
    def is_changed(self) -> bool:
        return self.shown.origin != "default"


class SettingGroup(NamedTuple):
    """Settings of one subject."""

    title: str | Promise
    rows: list[SettingRow]


def setting_groups(config: Config) -> list[SettingGroup]:
    """Return every setting in its group."""
    rows = {row.shown.variable.removeprefix("MUNIMENT_").lower(): row for row in _rows(config)}
    groups = []
    others = dict(rows)
    for title, names in GROUPS:
        groups.append(SettingGroup(title, [row for name, row in rows.items() if name in names]))
        for name in names:
            others.pop(name, None)
    groups.append(SettingGroup(_OTHERS, list(others.values())))
    return [group for group in groups if group.rows]


def settings_path(config: Config) -> Path:
    """Return the path of the settings file, which need not exist."""
    return Path(config.settings_file) if config.settings_file else (config.data / FILE).absolute()


def _rows(config: Config) -> Iterator[SettingRow]:
    for setting in shown_settings(config):
        name = setting.variable.removeprefix("MUNIMENT_").lower()
        if name in _OFF_AT_0 and setting.value == "0":
            yield SettingRow(setting._replace(value=""), gettext("Off"), "")
            continue
        shown = setting
        if not setting.value:
            shown = setting._replace(value=_path(config, name))
        effect = "" if shown.value else str(_effect(config, name))
        yield SettingRow(shown, effect, _note(config, name))


def _path(config: Config, name: str) -> str:
    """Return the address or path that is in effect where a setting has no value; empty if words say it."""
    match name:
        case "database_url":
            return str(config.database_file.absolute())
        case "storage_url":
            return str((config.data / "blobs").absolute())
        case "backups":
            return config.backup_place
        case "mail_from":
            return str(django_settings.SERVER_EMAIL)
    return ""


def _effect(config: Config, name: str) -> str | Promise:
    found = _EFFECTS.get(name, _NONE)
    return found(config) if callable(found) and not isinstance(found, Promise) else found


def _existing(path: Path) -> str:
    return str(path) if path.exists() else gettext("None: %(path)s does not exist") % {"path": path}


_EFFECTS: Final[dict[str, Callable[[Config], str] | str | Promise]] = {
    "settings_file": lambda config: _existing(settings_path(config)),
    "registry_file": lambda config: _existing((config.data / "registry.toml").absolute()),
    "site_folder": lambda config: _existing(config.site),
    "base_url": gettext_lazy("The address where the server listens"),
    "secret_key": gettext_lazy("A key in the data folder"),
    "mail_url": lambda config: (
        gettext("No mail server: messages are written to %(folder)s") % {"folder": config.data.absolute() / "mail"}
    ),
    "admin_listen": gettext_lazy("The address of the registry"),
    "backups": gettext_lazy("Off"),
    "clamd": gettext_lazy("Documents are not scanned"),
    "dns_servers": gettext_lazy("Those of the system"),
    "model_url": gettext_lazy("No language model: fixed rules are used"),
    "evaluator": lambda config: gettext("The language model") if config.model_url else gettext("Rules"),
}
"""The values in effect where a setting has no value."""


def _note(config: Config, name: str) -> str:
    if name != "fetch_logos":
        return ""
    if config.origins[name] != "default":
        return gettext("Overrides the registry settings.")
    if applied.current().registry.fetch_logos:
        return gettext("Set in the registry settings: on")
    return gettext("Off in the registry settings too.")
