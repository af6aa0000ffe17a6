"""Commands for the settings of the registry, which registry.toml declares."""

import click

from muniment.cli.command import main, migrated, problems_as_errors
from muniment.kernel.actor import COMMAND


@main.group()
def settings() -> None:
    """Apply, show and restore what registry.toml declares: name, words, brand and texts."""


@settings.command("apply")
def apply() -> None:
    """
    Apply registry.toml now, also if it was applied before.

    The file is the one in the data folder, or the one that MUNIMENT_REGISTRY_FILE names. A server applies a changed
    file at its start. With faults, nothing is applied and every fault is named.
    """
    migrated()
    from muniment.registry.settings import versions

    with problems_as_errors():
        result = versions.apply_file(COMMAND, again=True)
    if result is None:
        raise click.ClickException("There is no registry.toml in the data folder. Write one: docs/REGISTRY.md.")
    if result.faults:
        raise click.ClickException("\n".join((f"{result.path} was not applied:", *result.faults)))
    click.echo(f"{result.path} is version {result.number} of the settings.")


@settings.command("show")
@click.argument("number", type=click.IntRange(0), required=False)
def show(number: int | None) -> None:
    """
    Print the applied settings, or those of version NUMBER, as a registry.toml.

    What was set on pages is carried over so: write the output to the registry.toml of another instance, and run
    `muniment settings apply` there. Pictures and fonts are named by their addresses; put their files beside it.
    """
    migrated()
    from muniment.registry.settings import versions
    from muniment.registry_toml.reading import written

    with problems_as_errors():
        found = versions.latest_version() if number is None else versions.get_version(number)
    click.echo(written(found.settings), nl=False)


@settings.command("history")
def history() -> None:
    """List the versions with time, author and what they changed."""
    migrated()
    from muniment.registry.settings import versions

    for each in versions.list_versions():
        places = ", ".join(place for place, *_ in each.changes)
        click.echo(f"{each.number}  {each.at:%Y-%m-%d %H:%M} UTC  {each.author}  {each.note}  {places}")


@settings.command("restore")
@click.argument("number", type=click.IntRange(0))
def restore(number: int) -> None:
    """Apply version NUMBER again, as a new version; 0 is a registry without settings."""
    migrated()
    from muniment.registry.settings import versions

    with problems_as_errors():
        made = versions.restore_version(COMMAND, number)
    click.echo(f"Version {number} is applied again, as version {made}.")
