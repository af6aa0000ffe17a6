"""
Record in the audit log which settings changed since the last start.

Values of secrets, and of every text that could hold one, appear as keyed digests.
"""

import hmac
from dataclasses import astuple
from typing import Any, Final

from django.db import connection, transaction

from muniment import config
from muniment.accounts.keys import kept
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record
from muniment.accounts.security.models import SecurityEvent
from muniment.kernel.actor import SYSTEM
from muniment.setting_values import Provider

_SHOWN: Final = frozenset(
    {
        *("base_url", "mail_from", "currency"),
        *("signup", "sign_in", "model_name", "stripe_checkout_url", "log_format", "forwarded_header"),
    }
)
"""Settings with texts that are public anyway; other texts may contain credentials."""
_OF_A_NODE: Final = frozenset(
    {
        *("data", "settings_file", "registry_file", "admin_listen", "cache_mb", "max_connections"),
        *("log_format", "log_level", "log_requests", "backups"),
    }
)
"""Settings in which the nodes of one instance may differ."""
_OPEN_TYPES: Final = (int, float)
KEPT: Final = "settings"
"""The kept secret that keys the digests: a rotation of the secret key changes none of them."""
SECRET: Final = "secret"  # noqa: S105 - a word shown in place of one
_LOCK: Final = "SELECT pg_advisory_xact_lock(hashtextextended('muniment.settings', 0))"


def record_settings() -> bool:
    """Record what changed since the settings were last recorded; return whether anything did."""
    now_set = _described(config.current())
    if _last() == now_set:
        return False
    with transaction.atomic():
        if connection.vendor == "postgresql":  # SQLite has one writer at a time
            with connection.cursor() as cursor:
                cursor.execute(_LOCK)
        before = _last()
        if before == now_set:
            return False  # another process of this start recorded them
        known = before or {}
        names = sorted(name for name in known.keys() | now_set.keys() if known.get(name) != now_set.get(name))
        changed = {name: [known.get(name), now_set.get(name)] for name in names}
        detail = {"changed": changed, "settings": now_set, "digest": _digest(repr(sorted(now_set.items())))}
        record(Event.SETTINGS_CHANGED, actor=SYSTEM, detail=detail)
    return True


def recorded_base_url() -> str:
    """Return the public address with which a server last started; empty if it is unknown."""
    return str((_last() or {}).get("MUNIMENT_BASE_URL", ""))


def _last() -> dict[str, Any] | None:
    rows = SecurityEvent.objects.filter(event=Event.SETTINGS_CHANGED).order_by("-pk")
    detail = rows.values_list("detail", flat=True).first()
    return None if detail is None else dict(detail["settings"])


def _described(current: config.Config) -> dict[str, str]:
    """Return every setting that differs from its default, by variable, as it may be shown."""
    found = {}
    for setting in config.SETTINGS:
        value = getattr(current, setting.name)
        if setting.name in _OF_A_NODE or value == setting.read(setting.default):
            continue
        found[setting.variable] = _shown(setting.name, value)
    return found


def _shown(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    is_open = isinstance(value, _OPEN_TYPES) or name in _SHOWN
    return str(value) if is_open else f"{SECRET} {_digest(name + _whole(value))[:12]}"


def _whole(value: Any) -> str:
    """Return *value* with the secrets of identity providers, which its text leaves out: a change of one is recorded."""
    if not isinstance(value, tuple):
        return str(value)
    return str(tuple(_with_secret(member) for member in value))


def _with_secret(member: Any) -> Any:
    return astuple(member) if isinstance(member, Provider) else member


def _digest(text: str) -> str:
    return hmac.new(kept.secrets_for(KEPT)[0], text.encode(), "sha256").hexdigest()
