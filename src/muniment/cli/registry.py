"""Commands for registry data: import, export, owners, framework specifications."""

import sys
import time
from pathlib import Path
from typing import IO, Any

import click
import msgspec
from django.db.utils import DatabaseError
from rich.console import Console
from rich.progress import Progress, TimeElapsedColumn

from muniment.cli.command import main, migrated, problems_as_errors, record_command, refusals, use_django
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest


@main.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--draft", is_flag=True, help="Keep new listings unpublished, and published ones unchanged.")
@click.option("--dry-run", is_flag=True, help="Read, validate and compare everything; write nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row or value is invalid.")
@click.option("--overwrite", is_flag=True, help="Replace fields that people changed since the last import.")
@click.option("--relist", is_flag=True, help="Publish what was unlisted.")
@click.option("--prune", is_flag=True, help="Unlist what earlier imports brought and the files no longer hold.")
@click.option("--prune-limit", type=click.IntRange(0), help="Let --prune unlist N rows; default a tenth of each kind.")
def import_(path: Path, *, prune: bool, prune_limit: int | None, **options: Any) -> None:
    """
    Import a registry from PATH.

    PATH is a folder with companies.jsonl, people.jsonl and frameworks.jsonl, or one such file. Rows without changes are
    skipped, so running the command again changes nothing, or completes an interrupted import. Invalid rows are reported
    with file, line and field, and skipped; of a value that cannot be true, only the value is left out. The exit status
    is then 1.

    A field that an owner or a reviewer changed since the last import is kept and reported, unless --overwrite replaces
    it. What was unlisted stays so, unless --relist publishes it.

    --prune works on each kind that has a file. It names every row before anything is written; with --dry-run, it only
    names them. Rows that owners or reviewers created, and claimed profiles, are never pruned.
    """
    use_django()
    from muniment.registry.exchange.importer import import_registry, sources_of
    from muniment.registry.publishing.upgrade import bring_up_to_date
    from muniment.registry.review.pruning import Pruning, plan_pruning

    if options["draft"] and prune:
        raise click.UsageError("--draft leaves published rows unchanged, so it cannot be combined with --prune.")

    def tell(label: str, bad: object) -> None:
        bar.console.print(f"{label}{bad}", style="", highlight=False, markup=False, soft_wrap=True)

    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as bar:
        try:
            with refusals():
                bring_up_to_date()
            sources = sources_of(path)
            pruning = plan_pruning(path, limit=prune_limit) if prune else Pruning([])
            for row in pruning.rows:
                tell("prune: ", row)
            if options["dry_run"] and pruning.refusal:
                tell("warning: ", f"{pruning.refusal} Without --dry-run, this is refused: see --prune-limit.")
            elif not options["dry_run"]:
                pruning.check()
            tasks = {each.path: bar.add_task(each.kind, total=each.path.stat().st_size) for each in sources}
            summary = import_registry(
                path,
                **options,
                tell=lambda bad: tell("", bad),
                warn=lambda bad: tell("warning: ", bad),
                progress=lambda file, read: bar.update(tasks[file], completed=read),
            )
            is_clean = not (summary.bad or summary.dropped)
            is_refused = options["strict"] and not is_clean
            unlisted = 0 if options["dry_run"] or is_refused else pruning.unlist(COMMAND)
        except BadRequest as problem:
            raise click.ClickException(f"{problem.message} {problem.hint}") from None
        except KeyboardInterrupt:
            bar.stop()
            said = "Stopped. The imported rows are complete; run the same command again to import the rest."
            click.echo(said, err=True)
            sys.exit(130)
        except (DatabaseError, OSError) as error:
            bar.stop()
            message = f"{error}. The imported rows are complete; fix the cause and run the same command again."
            raise click.ClickException(message) from None
    verb = "Would import" if options["dry_run"] else "Nothing imported" if is_refused else "Imported"
    pruned = f"; {len(pruning.rows):,} to unlist" if options["dry_run"] else f"; {unlisted:,} unlisted"
    click.echo(f"{verb} in {time.monotonic() - started:.1f} s: {summary}{pruned if prune else ''}.")
    if not is_clean:
        sys.exit(1)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--private", is_flag=True, help="Include the private specifications and prices of frameworks.")
def export(folder: Path, *, private: bool) -> None:
    """
    Export the published registry to FOLDER.

    The files are in the format that import reads. With --private, an import into an empty instance gives byte-identical
    API responses. Drafts, accounts and history are not included; use `muniment backup` for those.
    """
    use_django()
    from muniment.registry.exchange.exporter import export_registry
    from muniment.registry.publishing.upgrade import bring_up_to_date

    try:
        with refusals():
            bring_up_to_date()
        counts = export_registry(folder, private=private)
        if private:
            record_command("export --private", result=", ".join(f"{rows:,} {kind}" for kind, rows in counts.items()))
    except (DatabaseError, OSError) as error:
        raise click.ClickException(f"{error}. Existing files are unchanged.") from None
    click.echo(", ".join(f"{rows:,} {kind}" for kind, rows in counts.items()) + f" written to {folder}.")


@main.command()
@click.argument("email")
@click.argument("slug")
def own(email: str, slug: str) -> None:
    """Make the account EMAIL an owner of the listing SLUG."""
    migrated()
    from muniment.accounts.operations import find_account
    from muniment.registry.company.owners import add_owner

    with problems_as_errors():
        account = find_account(email)
        add_owner(COMMAND, slug, account.pk)
    click.echo(f"{account.email} now owns {slug}.")


@main.group()
def framework() -> None:
    """Manage the private specifications of frameworks."""


@framework.command("author")
@click.argument("framework_id")
@click.argument("file", type=click.File("rb"))
def framework_author(framework_id: str, file: IO[bytes]) -> None:
    """
    Set the specification of the framework FRAMEWORK_ID.

    FILE is a JSON document in the format assessment-spec/1; - reads standard input. Errors are reported with their
    paths. An unchanged document creates no new version.
    """
    try:
        document = msgspec.json.decode(file.read())
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        message = f"{file.name} is not valid JSON: {error}. Use the format assessment-spec/1."
        raise click.ClickException(message) from None
    migrated()
    from muniment.registry.frameworks.operations import author_framework

    with problems_as_errors():
        found = author_framework(COMMAND, framework_id, document)
    click.echo(f"{framework_id} now uses version {found.version} of its specification.")
