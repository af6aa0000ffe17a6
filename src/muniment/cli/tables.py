"""Import a table by command: propose a mapping, show what it gives, import it, and group what is left out."""

import dataclasses
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
import msgspec

from muniment import config
from muniment.cli.progress import Progress
from muniment.kernel.problems import BadRequest

if TYPE_CHECKING:
    from muniment.registry.exchange.importer import ImportOptions
    from muniment.registry.imports.sources import SourceOptions
    from muniment.registry.tables.fields import Column
    from muniment.registry.tables.operations import Prepared, TableImport

_SHOWN: Final = 3
_SHOWN_CHANGES: Final = 20
_ADDRESSES: Final = ("http://", "https://")
EMPTY: Final = (
    "All rows are blank below the header, or no column with values is mapped. Check the file, or look at its columns"
    " with --write-mapping and import with --mapping."
)


class FileOrAddress(click.ParamType[Path | str]):
    """A path that exists, or a web address."""

    name = "path"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path | str:
        if isinstance(value, str) and value.lower().startswith(_ADDRESSES):
            return value
        found: Path = click.Path(exists=True, path_type=Path).convert(value, param, ctx)
        return found


class MappingChoices(NamedTuple):
    """
    What the command says about the mapping.

    Args:
        mapping: a file to use.
        write_mapping: a file to write the proposed mapping to.
        accepts_guesses: guesses are confirmed.
        keeps_all: a field is declared for each column without one.
        proposes: a mapping is proposed even if one is remembered.
    """

    mapping: Path | None
    write_mapping: Path | None
    accepts_guesses: bool = False
    keeps_all: bool = False
    proposes: bool = False


def run(
    source: Path | str, options: "ImportOptions", again: "SourceOptions", choices: MappingChoices, *, is_preview: bool
) -> None:
    """
    Import a table, or show what an import would do.

    Raises:
        click.ClickException: it cannot be read, or its mapping needs a choice.
    """
    from muniment.registry.tables.keeping import keep_all
    from muniment.registry.tables.operations import prepare

    try:
        mapping_text = ""
        if choices.mapping:
            mapping_text = choices.mapping.read_text("utf-8")
        prepared = prepare(source, mapping_text)
        if prepared.is_proposed and not choices.proposes:
            _use_remembered(prepared)
        if choices.keeps_all:
            keep_all(prepared.mapping, prepared.sheets)
        if choices.write_mapping:
            _write_mapping(prepared, choices.write_mapping)
            return
        if prepared.is_proposed:
            _settle(prepared, is_preview=is_preview, accepts_guesses=choices.accepts_guesses)
        if is_preview:
            _preview(prepared, options, again)
        else:
            _import(prepared, options, again)
    except BadRequest as problem:
        raise click.ClickException(f"{problem.message} {problem.hint}") from None
    except BrokenPipeError:
        raise
    except (OSError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{error}. Nothing was imported.") from None


def _write_mapping(prepared: "Prepared", file: Path) -> None:
    file.write_text(prepared.mapping_text(), "utf-8")
    click.echo(f"Mapping written to {file}. Edit it, and import with --mapping {file}.")
    _echo_questions(prepared)


def _settle(prepared: "Prepared", *, is_preview: bool, accepts_guesses: bool) -> None:
    """Show a proposed mapping; let a person settle its guesses and choices. Without one, guesses are refused."""
    _echo_mapping(prepared)
    if not accepts_guesses:
        if sys.stdin.isatty():
            _confirm(prepared)
        elif not is_preview:
            prepared.mapping.refuse_guesses()
    if sys.stdin.isatty():
        _ask(prepared)


def _use_remembered(prepared: "Prepared") -> None:
    """Use the mapping that was confirmed in the browser for a file with the same headings; say so, or why not."""
    from muniment.registry.imports.uploads import remembered

    def tell_why_not(reason: str) -> None:
        click.echo(f"The mapping of the last import with these headings is not used. {reason}", err=True)

    mapping = remembered(prepared.mapping, tell_why_not)
    if mapping:
        prepared.mapping, prepared.is_proposed = mapping, False
        sentence = "Columns are mapped as in the last import of a file with the same headings"
        click.echo(f"{sentence}, at /operate/import; --propose proposes a mapping instead.", err=True)


def _echo_mapping(prepared: "Prepared") -> None:
    click.echo(f"# Proposed mapping of {prepared.file.name}")
    for sheet in prepared.sheets:
        if sheet.is_guess:
            click.echo(f"# The encoding {sheet.encoding} is a guess. If these lines are wrong, set another:")
            for line in sheet.samples:
                click.echo(f"#   {line}")
            break
    click.echo(prepared.mapping_text())


def _echo_questions(prepared: "Prepared") -> None:
    for question in prepared.mapping.questions():
        click.echo(f"? {question}")


def _confirm(prepared: "Prepared") -> None:
    """Ask whether guesses are right, in a terminal."""
    for table in prepared.mapping.table:
        if "kind" in table.check:
            table.kind = click.prompt(
                f"{table.name}: kind of the rows", type=click.Choice(("companies", "people")), default=table.kind
            )
        if "header" in table.check:
            question = f"{table.name}: is row {table.header} the row with the headings?"
            if not click.confirm(question, default=True):
                raise click.ClickException("Write the mapping with --write-mapping, and correct header.")
        if "currency" in table.check:
            own = config.current().currency
            question = f"{table.name}: amounts in another currency than {own} will be left out. Import the rest?"
            if not click.confirm(question, default=False):
                raise click.ClickException(
                    "Nothing was imported. MUNIMENT_CURRENCY sets the currency of a new registry."
                )
        table.check = []
    for table, column in prepared.mapping.guesses():
        question = f'{table.name}: does the column "{column.heading}" hold {column.field}?'
        if not click.confirm(question, default=True):
            column.field = ""
        column.check = False


_ASKED: Final = {
    "order": ("DMY", "MDY", "EXCEL", "UNIX"),
    "decimal": (",", "."),
    "unit": ("1", "1000", "1000000"),
}


def _ask(prepared: "Prepared") -> None:
    """Ask for the choices that a mapping needs, in a terminal."""
    for table in prepared.mapping.table:
        if table.kind == "skip":
            continue
        if table.combine == "?":
            question = f"{table.name}: are several rows with the same name one organization?"
            is_one = click.confirm(question, default=True)
            table.combine = "yes" if is_one else "no"
        for column in table.column:
            if column.field:
                _ask_of_column(column, f"{table.name}: {column.heading}")


def _ask_of_column(column: "Column", place: str) -> None:
    for option, choices in _ASKED.items():
        if getattr(column, option) in {"?", 0}:
            choice = click.prompt(f"{place}: {option}", type=click.Choice(choices))
            value = int(choice) if option == "unit" else choice
            setattr(column, option, value)
    if column.separator == "?":
        is_list = click.confirm(f'{place}: does a comma separate people (no: "Last, First")?', default=True)
        column.separator = "," if is_list else ""
    if column.currency == "?":
        column.currency = click.prompt(f"{place}: currency, such as EUR").upper()


def _preview(prepared: "Prepared", options: "ImportOptions", again: "SourceOptions") -> None:
    from muniment.registry.tables.operations import import_table

    _echo_questions(prepared)
    for doubt in prepared.mapping.doubts():
        click.echo(f"? {doubt}; an import needs --accept-guesses")
    prepared.mapping.settle_questions()
    found = import_table(prepared, dataclasses.replace(options, dry_run=True), again)
    for kind, lines in (("company", found.records.companies), ("person", found.records.people)):
        for row, line in lines[:_SHOWN]:
            click.echo(f"{kind} of row {row}: {msgspec.json.encode(line).decode()}")
        if len(lines) > _SHOWN:
            click.echo(f"… and {len(lines) - _SHOWN:,} more")
    _echo_results(found, again)
    _echo_losses(found)
    click.echo(f"Would import {prepared.file.name}: {found.summary}. Nothing was written.")
    if found.summary.is_empty:
        click.echo(EMPTY, err=True)


def _declare_kept(prepared: "Prepared") -> None:
    """Declare the fields of the columns that are kept, and name them."""
    from muniment.kernel.actor import COMMAND
    from muniment.registry.publishing.upgrade import bring_up_to_date
    from muniment.registry.tables.keeping import declare_kept

    made = declare_kept(COMMAND, prepared.mapping, prepared.file.name)
    if made:
        bring_up_to_date()
        click.echo(f"Declared fields: {', '.join(made)}. Change them at /operate/fields.")


def _import(prepared: "Prepared", options: "ImportOptions", again: "SourceOptions") -> None:
    from muniment.registry.tables.operations import import_table

    prepared.mapping.refuse_questions()  # before fields are declared, which would stay without an import
    if not options.dry_run:
        _declare_kept(prepared)
    started = time.monotonic()
    with Progress() as progress:
        found = import_table(
            prepared,
            options,
            again,
            progress=lambda file, read: progress.reach(file.stem, read, file.stat().st_size),
        )
    if options.dry_run or found.gone.rows:
        _echo_results(found, again)
    _echo_losses(found)
    is_clean = not (found.summary.bad or found.summary.dropped)
    _echo_summary(found, options, time.monotonic() - started, is_clean=is_clean)
    if not is_clean or not (found.records.companies or found.records.people):
        sys.exit(1)


def _echo_summary(found: "TableImport", options: "ImportOptions", seconds: float, *, is_clean: bool) -> None:
    verb = "Imported"
    if options.dry_run:
        verb = "Would import"
    elif options.strict and not is_clean:
        verb = "Nothing imported"
    click.echo(f"{verb} in {seconds:.1f} s: {found.summary}.")
    if found.summary.is_empty:
        click.echo(EMPTY, err=True)
    if found.summary.import_run:
        click.echo(f"To undo it: muniment import --undo {found.summary.import_run}")


def _echo_results(found: "TableImport", again: "SourceOptions") -> None:
    """Print the first changed rows, each field before and after, and the rows that the table no longer has."""
    is_preview = found.summary.import_run is None
    if is_preview:
        _echo_changes(found)
    if again.unlists:
        for each in found.gone.rows:
            click.echo(f"prune: {each}", err=True)
        if is_preview and found.gone.refusal:
            click.echo(f"warning: {found.gone.refusal} An import is refused: see --prune-limit.", err=True)
    else:
        _echo_gone(found)


def _echo_changes(found: "TableImport") -> None:
    changed = [row for row in found.results if row.entry is not None]
    for row in changed[:_SHOWN_CHANGES]:
        assert row.entry is not None  # noqa: S101 - chosen above
        for name, after in row.entry.after.items():
            before = row.entry.before.get(name)
            sides = " → ".join(msgspec.json.encode(side).decode() for side in (before, after))
            click.echo(f"changed: {row.kind} {row.slug} (row {row.row}): {name}: {sides}")
    if len(changed) > _SHOWN_CHANGES:
        click.echo(f"… and {len(changed) - _SHOWN_CHANGES:,} more changed rows")


def _echo_gone(found: "TableImport") -> None:
    gone = found.gone.rows
    if not gone:
        return
    for each in gone[:_SHOWN_CHANGES]:
        click.echo(f"gone: {each}", err=True)
    if len(gone) > _SHOWN_CHANGES:
        click.echo(f"… and {len(gone) - _SHOWN_CHANGES:,} more", err=True)
    click.echo("The table no longer has these rows, which stay public; --prune unlists them.", err=True)


def _echo_losses(found: "TableImport") -> None:
    from muniment.registry.tables.records import grouped

    groups = grouped(found.losses)
    if groups:
        click.echo(f"Left out or doubtful, in {len(groups):,} groups:", err=True)
        for group in groups:
            click.echo(f"- {group}", err=True)


def list_runs() -> None:
    """Print the imports, latest first."""
    from muniment.registry.imports.undoing import list_imports

    for run in list_imports():
        undo = ""
        if run.undone_by:
            undo = f"\tundone by {run.undone_by}"
        elif run.undoes:
            undo = f"\tundoes {run.undoes}"
        result = run.result or "not finished"
        click.echo(f"{run.key}\t{run.started_at:%Y-%m-%d %H:%M}\t{run.files}\t{result}{undo}")


def undo(key: int) -> None:
    """Undo an import, and name the rows that are kept."""
    from muniment.kernel.actor import COMMAND
    from muniment.registry.imports.undoing import undo_import

    found = undo_import(COMMAND, key)
    for row in found.kept:
        click.echo(f"kept: {row.kind} {row.slug}: {row.reason}", err=True)
    click.echo(
        f"Undone: {found.restored:,} rows restored, {found.unpublished:,} new rows unpublished,"
        f" {len(found.kept):,} kept. To redo it: muniment import --undo {found.key}"
    )
