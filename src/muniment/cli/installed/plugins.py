"""The command that lists the installed plugins."""

import sys

import click

from muniment.cli.command import main
from muniment.plugins.loading import installed
from muniment.plugins.values import API


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
        says = f"not loaded: {plugin.fault}" if plugin.fault else ", ".join(plugin.hooks)
        click.echo(f"{'FAIL' if plugin.fault else 'OK':<4}  {plugin.name}{package}: {says}")
    if not found.plugins:
        click.echo(f"No plugins are loaded. The plugin interface has version {API}; see docs/PLUGINS.md.")
    if found.failed:
        sys.exit(1)
