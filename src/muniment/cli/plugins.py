"""The command that lists the installed plugins, the commands of plugins, and checks of optional packages."""

import logging
import sys

import click

from muniment import config
from muniment.assessments.evaluation.language_model import endpoint
from muniment.cli.command import main
from muniment.config import ConfigError
from muniment.plugins.loading import installed
from muniment.plugins.values import API
from muniment.server.observability import telemetry


@main.command()
def plugins() -> None:
    """
    List the installed plugins with their hooks.

    Exits with status 1 if one could not be loaded: until it is mended, updated or left out of MUNIMENT_PLUGINS,
    changes of companies and people are refused, because it may be the one that checks them.
    """
    found = installed()
    for plugin in found.plugins:
        package = f" ({plugin.package})" if plugin.package else ""
        mark, says = "OK", ", ".join(plugin.hooks)
        if plugin.fault:
            mark, says = "FAIL", f"not loaded: {plugin.fault}"
        click.echo(f"{mark:<4}  {plugin.name}{package}: {says}")
    if not found.plugins:
        click.echo(f"No plugins are loaded. The plugin interface has version {API}; see docs/PLUGINS.md.")
    if found.failed:
        sys.exit(1)


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


def require_extras(settings: config.Config) -> None:
    """Check for missing extras before any job runs or is charged."""
    fault = endpoint.lacking() if settings.model_url else ""
    if not fault and settings.otlp_url:
        fault = telemetry.lacking()
    if fault:
        raise click.ClickException(fault)
