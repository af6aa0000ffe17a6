"""The command: each subcommand a few lines over an operation."""

import os

import click

from muniment import config


def use_django() -> None:
    """Load Django with this process's settings; commands that need no database never call it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    import django

    django.setup()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="muniment")
def main() -> None:
    """Muniment: a registry in a box, for people and for agents."""
    try:
        config.current()
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None


@main.command()
def migrate() -> None:
    """
    Bring the database to this version's form.

    `serve` and `import` do so by themselves; this is for deployments that want it as a step of its own.
    """
    use_django()
    from muniment.store.migrations import migrate as bring_up_to_date

    applied = bring_up_to_date()
    click.echo(f"{applied} migrations applied." if applied else "Nothing to do: the database has this version's form.")
