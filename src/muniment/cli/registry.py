"""Commands for registry data: import, export, owners, former names, logos, framework specifications."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click
import msgspec
from django.db.utils import DatabaseError

from muniment.cli import tables
from muniment.cli.command import main, migrated, problems_as_errors, record_command, refusals, use_django
from muniment.cli.following import follow
from muniment.cli.progress import Progress
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import BadRequest

if TYPE_CHECKING:
    from muniment.registry.exchange.importer import Summary
    from muniment.registry.imports.sources import SourceOptions
    from muniment.registry.logos.fetching import Fetched
    from muniment.registry.review.pruning import Pruning


@main.command("import")
@click.argument("path", type=tables.FileOrAddress(), required=False)
@click.option("--mapping", type=click.Path(exists=True, dir_okay=False, path_type=Path), help="Use an edited mapping.")
@click.option("--write-mapping", type=click.Path(dir_okay=False, path_type=Path), help="Write the proposed mapping.")
@click.option("--preview", "is_preview", is_flag=True, help="Show what a table would give; write nothing.")
@click.option(
    "--accept-guesses",
    "accepts_guesses",
    is_flag=True,
    help="Use fields that are guessed from values or misspelled headings.",
)
@click.option(
    "--keep-all", "keeps_all", is_flag=True, help="Declare a field for each column without one, and import it."
)
@click.option("--propose", "proposes", is_flag=True, help="Propose a mapping even if one is remembered.")
@click.option("--list", "is_list", is_flag=True, help="List the imports.")
@click.option("--undo", type=int, metavar="ID", help="Undo an import.")
@click.option("--draft", is_flag=True, help="Keep new listings unpublished, and published ones unchanged.")
@click.option("--dry-run", is_flag=True, help="Read, validate and compare everything; write nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row or value is invalid.")
@click.option("--overwrite", is_flag=True, help="Replace fields that people changed since the last import.")
@click.option("--relist", is_flag=True, help="Publish what was unlisted.")
@click.option("--prune", is_flag=True, help="Unlist what earlier imports brought and the files no longer hold.")
@click.option("--complete", is_flag=True, help="The table is the full list: compare it with all earlier imports.")
@click.option("--source", metavar="NAME", help="Compare with earlier imports of this source; default: the file's name.")
@click.option("--prune-limit", type=click.IntRange(0), help="Let --prune unlist N rows; default a tenth of each kind.")
@click.option("--follow", metavar="URL", help="Merge the registry at URL, and each change that it publishes.")
@click.option(
    "--kind",
    "kinds",
    type=click.Choice(["company", "person", "framework"]),
    multiple=True,
    help="Follow only this kind; repeat it for several.",
)
@click.option("--once", is_flag=True, help="Follow until now, and end.")
@click.option("--restart", is_flag=True, help="Read everything of the followed registry again.")
def import_(
    path: Path | str | None,
    *,
    mapping: Path | None,
    write_mapping: Path | None,
    is_preview: bool,
    is_list: bool,
    undo: int | None,
    **options: Any,
) -> None:
    """
    Import a registry or a table from PATH.

    PATH is a folder with companies.jsonl, people.jsonl and frameworks.jsonl, and the long lists of companies in
    captable.jsonl, positions.jsonl and proposals.jsonl; or one such file; or a table: CSV, XLSX, ODS, JSON, JSON Lines,
    a ZIP of these, or the URL of one. A table is imported by a mapping of its columns, which is proposed and printed;
    write it with --write-mapping, edit it, and import with --mapping. What a table does not have stays as it is
    stored. What is left out is reported in groups, with rows, an example and what to do.

    Rows without changes are
    skipped, so running the command again changes nothing, or completes an interrupted import. Invalid rows are reported
    with file, line and field, and skipped; of a value that cannot be true, only the value is left out. The exit status
    is then 1.

    A field that an owner or a reviewer changed since the last import is kept and reported, unless --overwrite replaces
    it. What was unlisted stays so, unless --relist publishes it.

    --prune works on each kind that has a file, or a row of the table. It names every row; with --dry-run, it only
    names them. Rows that owners or reviewers created, and claimed profiles, are never pruned. The files of an export
    are the full list; a table is compared with the last import of a file of its name, or of --source, and with
    --complete with everything that imports brought. Without --prune, rows that are gone are named and stay public.

    --undo restores what was stored before an import, unpublishes the rows that it created, and publishes again those
    that it unlisted; rows that changed since are kept and named. --list shows the imports with their ids.

    --follow merges another registry into this one: its exports, then each change, until the command is ended; the next
    run continues there. What exists here under the same slug, and did not come from that registry, is kept and named.
    """
    follow_only = {}
    for name in ("kinds", "once", "restart"):
        follow_only[name] = options.pop(name)
    followed = options.pop("follow")
    actions = [path is not None, is_list, undo is not None, followed is not None]
    if sum(actions) != 1:
        raise click.UsageError("Give one of PATH, --list, --undo and --follow.")
    if followed is not None:
        _follow(followed, options, follow_only)
        return
    if any(follow_only.values()):
        raise click.UsageError("--kind, --once and --restart belong to --follow.")
    if path is None:
        _list_or_undo(undo)
        return
    choices = tables.MappingChoices(
        mapping,
        write_mapping,
        accepts_guesses=options.pop("accepts_guesses"),
        keeps_all=options.pop("keeps_all"),
        proposes=options.pop("proposes"),
    )
    use_django(may_lack_instance=True)
    from muniment.registry.exchange.importer import ImportOptions
    from muniment.registry.publishing.upgrade import bring_up_to_date
    from muniment.registry.tables.operations import is_table

    if isinstance(path, str) or mapping or write_mapping or is_preview or is_table(path):
        with refusals():
            bring_up_to_date()
        again = _source_options(path, options)
        tables.run(path, ImportOptions(**options), again, choices, is_preview=is_preview)
        return
    if options.pop("complete") or options.pop("source"):
        raise click.UsageError("--complete and --source are for tables; the files of an export are the full list.")
    _import_registry(path, **options)


def _follow(address: str, options: dict[str, Any], follow_options: dict[str, Any]) -> None:
    for name, value in options.items():
        if value and name != "prune_limit":
            raise click.UsageError(f"--follow takes no --{name.replace('_', '-')}.")
    follow(address, limit=options["prune_limit"], **follow_options)


def _list_or_undo(undo: int | None) -> None:
    migrated()
    with problems_as_errors():
        if undo is None:
            tables.list_runs()
        else:
            tables.undo(undo)


def _source_options(path: Path | str, options: dict[str, Any]) -> "SourceOptions":
    """Return how a table's source is treated, and take that out of the *options* of the command."""
    from muniment.registry.imports.sources import SourceOptions, source_named

    file_name = path if isinstance(path, str) else path.name
    return SourceOptions(
        source_named(options.pop("source") or file_name),
        is_complete=options.pop("complete"),
        unlists=options.pop("prune"),
        limit=options.pop("prune_limit"),
    )


def _import_registry(path: Path, *, prune: bool, prune_limit: int | None, **options: Any) -> None:
    from muniment.registry.exchange.importer import ImportOptions, import_registry
    from muniment.registry.exchange.reading import sources_of
    from muniment.registry.imports.sources import unlist_gone
    from muniment.registry.publishing.upgrade import bring_up_to_date
    from muniment.registry.review.pruning import Pruning, plan_pruning

    if options["draft"] and prune:
        raise click.UsageError("--draft leaves published rows unchanged, so it cannot be combined with --prune.")

    is_dry_run = options["dry_run"]
    started = time.monotonic()
    with _import_errors(), Progress() as progress:
        with refusals():
            bring_up_to_date()
        sources = sources_of(path)
        pruning = plan_pruning(path, limit=prune_limit) if prune else Pruning([])
        _announce(pruning, progress, is_dry_run=is_dry_run)
        labels = {source.path: source.kind for source in sources}
        summary = import_registry(
            path,
            ImportOptions(**options),
            tell=progress.message,
            warn=lambda bad: progress.message(f"warning: {bad}"),
            progress=lambda file, read: progress.reach(labels[file], read, file.stat().st_size),
            publishing=lambda done, total: progress.reach("people again", done, total),
        )
        is_clean = not (summary.bad or summary.dropped)
        is_refused = options["strict"] and not is_clean
        unlist_gone(pruning, summary)
    pruned = _pruned(pruning, summary, is_dry_run=is_dry_run) if prune else ""
    verb = "Imported"
    if is_dry_run:
        verb = "Would import"
    elif is_refused:
        verb = "Nothing imported"
    click.echo(f"{verb} in {time.monotonic() - started:.1f} s: {summary}{pruned}.")
    _end(is_clean=is_clean, is_empty=summary.is_empty)


def _pruned(pruning: "Pruning", summary: "Summary", *, is_dry_run: bool) -> str:
    """Return how many rows --prune unlists, where the summary of the import does not say it."""
    if is_dry_run:
        return f"; {len(pruning.rows):,} to unlist"
    return "" if summary.unlisted else "; 0 unlisted"


def _announce(pruning: "Pruning", progress: Progress, *, is_dry_run: bool) -> None:
    """Name every row that --prune unlists. Raise BadRequest if there are too many; a dry run only warns of it."""
    for row in pruning.rows:
        progress.message(f"prune: {row}")
    if not is_dry_run:
        pruning.check()
    elif pruning.refusal:
        progress.message(f"warning: {pruning.refusal} Without --dry-run, this is refused: see --prune-limit.")


@contextmanager
def _import_errors() -> Iterator[None]:
    """Exit with a message that says what of an import is done."""
    try:
        yield
    except BadRequest as problem:
        raise click.ClickException(f"{problem.message} {problem.hint}") from None
    except KeyboardInterrupt:
        message = "Stopped. The imported rows are complete; run the same command again to import the rest."
        click.echo(message, err=True)
        sys.exit(130)
    except BrokenPipeError:
        raise
    except (DatabaseError, OSError) as error:
        message = f"{error}. The imported rows are complete; fix the cause and run the same command again."
        raise click.ClickException(message) from None


def _end(*, is_clean: bool, is_empty: bool) -> None:
    """End an import with its exit status."""
    if is_empty:
        click.echo("The files have no lines. Check that they are the ones to import.", err=True)
    if not is_clean:
        sys.exit(1)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--private", is_flag=True, help="Include the private specifications and prices of frameworks.")
def export(folder: Path, *, private: bool) -> None:
    """
    Export the published registry to FOLDER.

    The files are in the format that import reads. With --private, an import into an empty instance gives byte-identical
    API responses, except for what accounts add to a listing: that its owner maintains it, and its verified domain.
    Drafts, accounts and history are not included; use `muniment backup` for those.
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
    from muniment.registry.company.listings import add_owner

    with problems_as_errors():
        account = find_account(email)
        add_owner(COMMAND, slug, account.pk)
    click.echo(f"{account.email} now owns {slug}.")


@main.group("former-name")
def former_name() -> None:
    """Manage the former names of listings."""


@former_name.command("list")
@click.argument("slug")
def former_name_list(slug: str) -> None:
    """List the former names of the listing SLUG, each with its last day of use and who hides it."""
    migrated()
    from muniment.registry.names.operations import list_former_names

    with problems_as_errors():
        names = list_former_names(COMMAND, slug)
    for each in names:
        hidden = f"\thidden by {each['hidden']}" if "hidden" in each else ""
        click.echo(f"{each['name']}\t{each.get('until') or ''}{hidden}".rstrip("\t"))


@former_name.command("hide")
@click.argument("slug")
@click.argument("name")
def former_name_hide(slug: str, name: str) -> None:
    """Hide the former name NAME of the listing SLUG from everything public; owners cannot show it again."""
    _set_former_name(slug, name, is_hidden=True)


@former_name.command("show")
@click.argument("slug")
@click.argument("name")
def former_name_show(slug: str, name: str) -> None:
    """Show the hidden former name NAME of the listing SLUG again."""
    _set_former_name(slug, name, is_hidden=False)


def _set_former_name(slug: str, name: str, *, is_hidden: bool) -> None:
    migrated()
    from muniment.registry.names.operations import hide_former_name, show_former_name

    with problems_as_errors():
        if is_hidden:
            hide_former_name(COMMAND, slug, name)
        else:
            show_former_name(COMMAND, slug, name)
    state = "hidden" if is_hidden else "public"
    click.echo(f"{slug}: the former name is {state}.")


@former_name.command("remove")
@click.argument("slug")
@click.argument("name")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def former_name_remove(slug: str, name: str, *, yes: bool) -> None:
    """
    Remove the former name NAME of the listing SLUG for good.

    The name leaves every public page, the search, the API, the history, and later exports and backups. Imports and
    restores do not bring it back. A slug made of it stays.
    """
    migrated()
    from muniment.registry.names.operations import remove_former_name
    from muniment.registry.publishing.redaction import compact_database

    if not yes:
        click.confirm(f"Remove a former name of {slug}? This cannot be undone.", abort=True, err=True)
    with problems_as_errors():
        unwritten = remove_former_name(COMMAND, slug, name)
        compact_database()
    click.echo(f"{slug}: the former name is removed.")
    for folder in unwritten:
        click.echo(f"The suppression list could not be written to {folder}.", err=True)


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
    from muniment.registry.frameworks.authoring import author_framework

    with problems_as_errors():
        found = author_framework(COMMAND, framework_id, document)
    click.echo(f"{framework_id} now uses version {found.version} of its specification.")


@main.group()
def logos() -> None:
    """Manage the logos that listings name by URL."""


@logos.command("fetch")
@click.option("--again", is_flag=True, help="Retry the addresses that failed now, before they are due.")
def logos_fetch(*, again: bool) -> None:
    """
    Fetch the logos of published listings now.

    Each logo is fetched once, from public addresses only, checked, resized and served from this registry; pages and
    apps never show the picture of another site. An address that fails is retried after an hour, or after 30 days
    if the reason is lasting. The command works with MUNIMENT_FETCH_LOGOS=off too. It can be stopped at any time; run
    it again to continue.
    """
    migrated()
    from muniment.registry.logos import stored

    if again:
        stored.retry_failed()
    total, reasons = stored.due().count(), dict[str, int]()
    fetched = tried = 0
    try:
        with Progress() as progress:

            def tell(found: "Fetched", listings: int) -> None:
                nonlocal tried
                tried += listings
                progress.reach("logos", tried, total)
                if found.fault is not None:
                    reasons[found.fault.reason] = reasons.get(found.fault.reason, 0) + listings
                    progress.message(f"{found.address}: {found.fault.reason}")

            while True:
                done = stored.fetch_due(tell=tell)
                fetched += done.fetched
                if not done.left or not (done.fetched or done.failed):
                    break
    except KeyboardInterrupt:
        click.echo("Stopped. Run the same command again to fetch the rest.", err=True)
        sys.exit(130)
    record_command("logos fetch", fetched=fetched, failed=sum(reasons.values()))
    click.echo(f"{fetched:,} of {total:,} listings have a logo now.")
    for reason, count in sorted(reasons.items(), key=lambda each: -each[1]):
        click.echo(f"{count:,} without: {reason}")


@logos.command("remove")
@click.confirmation_option(prompt="Remove every fetched logo from this registry?")
def logos_remove() -> None:
    """Remove every logo that was fetched; uploaded ones stay. Listings show monograms again."""
    migrated()
    from muniment.registry.logos import stored

    removed = stored.remove_all()
    record_command("logos remove", removed=removed)
    click.echo(f"{removed:,} fetched logos removed.")
