"""Commands of plugins."""

import logging

import click

from muniment.config import ConfigError
from muniment.plugins.loading import installed

log = logging.getLogger(__name__)


def commands_of_plugins(built_in: frozenset[str]) -> dict[str, click.Command]:
    """Return the commands of plugins by name; one with the name of a built-in or an earlier one is left out."""
    found: dict[str, click.Command] = {}
    try:
        calls = installed().calls("commands")
    except ConfigError:
        return {}  # the command itself says so
    for call in calls:
        try:
            for command in call() or ():
                _add(found, command, call.plugin, built_in)
        except Exception:
            log.exception("plugin %s failed in commands", call.plugin)
    return found


def _add(found: dict[str, click.Command], command: object, plugin: str, built_in: frozenset[str]) -> None:
    name = command.name if isinstance(command, click.Command) else None
    if not isinstance(command, click.Command) or not name:
        log.error("plugin %s: %r is no command with a name", plugin, command)
    elif name in built_in or name in found:
        log.error("plugin %s: the command %s exists already, so it is left out", plugin, name)
    else:
        found[name] = command
