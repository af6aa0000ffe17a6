"""The command: each subcommand a few lines over an operation."""

import os
import sys
import time
from pathlib import Path

import click
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

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


@main.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--draft", is_flag=True, help="Leave new listings unpublished, and published ones as they stand.")
@click.option("--dry-run", is_flag=True, help="Read, check and compare everything; write nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is bad.")
def import_(path: Path, *, draft: bool, dry_run: bool, strict: bool) -> None:
    """
    Import a registry: a folder with companies.jsonl, people.jsonl and frameworks.jsonl, or one such file.

    Rows that stand already are compared and skipped, so running it again changes nothing, and completes
    what was interrupted. Bad rows are told with file, line and field, and never stop the good ones; the
    command then ends with status 1.
    """
    use_django()
    from django.db import DatabaseError

    from muniment.kernel.problems import BadRequest
    from muniment.registry.importing import import_registry, sources_of
    from muniment.store.migrations import migrate as bring_up_to_date

    def tell(label: str, bad: object) -> None:
        bar.console.print(f"{label}{bad}", style="", highlight=False, markup=False, soft_wrap=True)

    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as bar:
        try:
            bring_up_to_date()
            sources = sources_of(path)
            tasks = {each.path: bar.add_task(each.kind, total=each.path.stat().st_size) for each in sources}
            summary = import_registry(
                path,
                draft=draft,
                dry_run=dry_run,
                strict=strict,
                tell=lambda bad: tell("", bad),
                warn=lambda bad: tell("warning: ", bad),
                progress=lambda file, read: bar.update(tasks[file], completed=read),
            )
        except BadRequest as problem:
            raise click.ClickException(f"{problem.message} {problem.hint}") from None
        except KeyboardInterrupt:
            bar.stop()
            click.echo("Stopped. What was written is whole; the same command completes it.", err=True)
            sys.exit(130)
        except (DatabaseError, OSError) as error:
            bar.stop()
            message = f"{error}. What was written is whole; once this is mended, the same command completes it."
            raise click.ClickException(message) from None
    verb = "Would import" if dry_run else "Nothing imported" if strict and summary.bad else "Imported"
    click.echo(f"{verb} in {time.monotonic() - started:.1f} s: {summary}.")
    if summary.bad:
        sys.exit(1)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--private", is_flag=True, help="Write the private specifications and prices of frameworks too.")
def export(folder: Path, *, private: bool) -> None:
    """
    Write the published registry to FOLDER, in the form that import reads.

    With --private, importing it into an empty instance gives the same API answers byte for byte. Drafts,
    accounts and history are no part of it: `muniment backup` keeps those.
    """
    use_django()
    from django.db import DatabaseError

    from muniment.registry.exporting import export_registry
    from muniment.store.migrations import migrate as bring_up_to_date

    try:
        bring_up_to_date()
        counts = export_registry(folder, private=private)
    except (DatabaseError, OSError) as error:
        raise click.ClickException(f"{error}. Files that were there before stand unchanged.") from None
    click.echo(", ".join(f"{rows:,} {kind}" for kind, rows in counts.items()) + f" written to {folder}.")
