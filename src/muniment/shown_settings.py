"""The settings of a process as they may be shown: secrets hidden, credentials in addresses masked."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from muniment.config import SETTINGS, Config
from muniment.masking import masked

_HIDDEN: Final = frozenset({"secret", "password", "token", "key"})
"""A setting whose name contains one of these words is a secret."""


class ShownSetting(NamedTuple):
    """A setting; *origin* is the environment, the path of a file, a command, or default."""

    variable: str
    value: str
    origin: str
    default: str
    help: str
    is_secret: bool


def shown_settings(config: Config) -> Iterator[ShownSetting]:
    """Yield each setting; the value of a secret says only whether it is set."""
    for setting in SETTINGS:
        value = getattr(config, setting.name)
        is_secret = bool(_HIDDEN & set(setting.name.split("_")))
        if is_secret:
            shown = "(set)" if value else ""
        else:
            shown = masked(shown_value(value))
        yield ShownSetting(
            setting.variable, shown, config.origins[setting.name], setting.default, setting.help, is_secret
        )


def shown_value(value: object) -> str:
    """Return a value as its environment variable would hold it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if type(value) is tuple:  # others say themselves how they are written
        return " ".join(map(str, value))
    if isinstance(value, dict):
        return ",".join(f"{name}={each}" for name, each in value.items())
    return str(value)
