"""What stands in the registry: import, export, owners, specifications."""

import sys
import time
from pathlib import Path
from typing import IO

import click

from muniment.cli.command import main, ready, told, use_django
from muniment.kernel.actor import COMMAND


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
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    from muniment.kernel.problems import BadRequest
    from muniment.registry.exchange.importer import import_registry, sources_of
    from muniment.store.database.migrations import migrate as bring_up_to_date

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

    from muniment.registry.exchange.exporter import export_registry
    from muniment.store.database.migrations import migrate as bring_up_to_date

    try:
        bring_up_to_date()
        counts = export_registry(folder, private=private)
    except (DatabaseError, OSError) as error:
        raise click.ClickException(f"{error}. Files that were there before stand unchanged.") from None
    click.echo(", ".join(f"{rows:,} {kind}" for kind, rows in counts.items()) + f" written to {folder}.")


@main.command()
@click.argument("email")
@click.argument("slug")
def own(email: str, slug: str) -> None:
    """Make the account at EMAIL an owner of the listing SLUG."""
    ready()
    from muniment.accounts.operations import find_account
    from muniment.registry.company.operations import add_owner

    with told():
        account = find_account(email)
        add_owner(COMMAND, slug, account.pk)
    click.echo(f"{account.email} owns {slug} now.")


@main.group()
def framework() -> None:
    """Write the private specifications of frameworks."""


@framework.command("author")
@click.argument("framework_id")
@click.argument("file", type=click.File("rb"))
def framework_author(framework_id: str, file: IO[bytes]) -> None:
    """
    Give the framework FRAMEWORK_ID the specification in FILE (assessment-spec/1, JSON; - reads standard input).

    Every fault is told with its path. The same document again makes no new version.
    """
    import msgspec

    try:
        document = msgspec.json.decode(file.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise click.ClickException(f"{file.name} is no JSON: {error}. Write it as assessment-spec/1.") from None
    ready()
    from muniment.registry.frameworks.operations import author_framework

    with told():
        found = author_framework(COMMAND, framework_id, document)
    click.echo(f"{framework_id} runs by version {found.version} of its specification.")
