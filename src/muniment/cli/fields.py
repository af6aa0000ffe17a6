"""The command that lists the declared fields."""

import sys

import click

from muniment.cli.command import main, migrated


@main.command()
@click.option("--presets", "shows_presets", is_flag=True, help="List the declarations that ship instead.")
def fields(*, shows_presets: bool) -> None:
    """
    List the declared fields with the number of their values, and name values that do not fit; then exits with 1.

    registry.toml declares them: docs/FIELDS.md. `muniment settings apply` applies a changed file.
    """
    if shows_presets:
        from muniment.schema.declared.presets import PRESETS

        for name, preset in PRESETS.items():
            click.echo(f"{name}: {preset['label']}, {preset['kind']}")
        return
    migrated()
    from django.conf import settings

    from muniment.registry.declared.stored import stored_values

    if not settings.DECLARED_FIELDS:
        click.echo("No fields are declared.")
        return
    found = stored_values(settings.DECLARED_FIELDS)
    for each in found:
        declared = each.declared
        state = ", retired" if declared.retired else ""
        click.echo(f"{declared.of}.{declared.key}: {declared.label}, {declared.kind}{state}: {each.n:,} values")
    unfit = [each for each in found if each.unfit]
    for each in unfit:
        click.echo(f"FAIL  {each.fault}", err=True)
    if unfit:
        sys.exit(1)
