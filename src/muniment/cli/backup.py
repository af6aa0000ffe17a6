"""Commands to back up, restore and move an instance."""

import os
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click
import obstore
from django.db.utils import DatabaseError

from muniment import config, setting_values
from muniment.cli.command import main, problems_as_errors, record_command, require_instance, use_django
from muniment.cli.progress import Progress
from muniment.masking import masked

if TYPE_CHECKING:
    from muniment.backup.restoring import Loaded
    from muniment.backup.scheduled.place import Place

SHARE: Final = 0.5
"""The share of the time that a scheduled backup works; it rests for the remainder."""
LOW_PRIORITY: Final = 10
"""The niceness of a scheduled backup: at 19, a machine that is busy for long would give it no time at all."""


@contextmanager
def _progress() -> Iterator[Callable[[str], object]]:
    """Show the progress on the terminal, and turn failures into error messages."""
    from muniment.backup.restoring import Mismatch

    try:
        with problems_as_errors(), Progress() as progress:
            yield progress.state
    except (OSError, DatabaseError, Mismatch, obstore.exceptions.BaseError) as error:
        says = masked(str(error)).partition("Debug source")[0].strip().removesuffix(".")
        raise click.ClickException(f"{says}. Nothing was written; fix the cause and try again.") from None


def _files(number: int, which: str = "") -> str:
    noun = "document file" if number == 1 else "document files"
    return f"{number:,} {which}{noun}"


@main.command()
@click.argument("file", required=False, type=click.Path(dir_okay=False, path_type=Path))
@click.option("--scheduled", is_flag=True, hidden=True, help="Called by the job of scheduled backups.")
def backup(file: Path | None, *, scheduled: bool) -> None:
    """
    Back up the instance to FILE, or to MUNIMENT_BACKUPS.

    The backup contains the database, documents and keys; the instance may stay in use. It is read back and verified
    before it counts. It contains the secret key and the digests of passwords, so it is readable by you only: protect it
    like a password. It contains no settings. If documents have lost their files, everything else is backed up, and the
    exit status is 1.

    Without FILE, the backup is one of the scheduled backups: none is made if nothing has changed, the files of
    documents are copied once for all, and old backups are removed by the schedule of the registry.
    """
    use_django(tells=not scheduled)
    if file is None:
        _to_place(scheduled=scheduled)
        return
    if not file.absolute().parent.is_dir():
        raise click.ClickException(f"The folder {file.absolute().parent} does not exist. Create it, or name another.")
    from muniment.backup.snapshot import back_up

    with _progress() as tell:
        found = back_up(config.current(), file, tell=tell)
        record_command("backup", files=[file.name])
    manifest = found.manifest
    click.echo(
        f"{file}: {found.rows:,} rows, {_files(manifest.blobs.n)}, {found.keys} keys,"
        f" {found.size_bytes:,} bytes; read back and verified."
    )
    _tell_key(in_file=bool(found.header.key_check))
    _refuse_lost([*manifest.lost, *manifest.damaged])


def _tell_key(*, in_file: bool) -> None:
    if not in_file or config.current().secret_key:
        click.echo("The secret key is set in MUNIMENT_SECRET_KEY: store it together with the backup.", err=True)


def _refuse_lost(documents: list[str]) -> None:
    if documents:
        first = ", ".join(documents[:5])
        message = f"{len(documents):,} documents have a missing or damaged file: {first}."
        raise click.ClickException(f"{message} Everything else is backed up; see muniment doctor --storage.")


def _to_place(*, scheduled: bool) -> None:
    import msgspec

    from muniment.backup.scheduled import job
    from muniment.backup.scheduled.making import Pace, make_backup
    from muniment.backup.scheduled.schedule import schedule

    settings = config.current()
    share: float = 1
    if scheduled:
        share = SHARE
        os.nice(LOW_PRIORITY)
        threading.Thread(target=_end_with_parent, daemon=True).start()
    with _progress():
        found = make_backup(settings, pace=Pace(share))
    result = job.JobResult(
        place=found.place,
        covered_at=found.covered_at,
        interval_s=schedule().interval_s,
        name=found.name,
        size_bytes=found.size_bytes,
        kept=found.kept,
        lost=found.lost,
        damaged=found.damaged,
    )
    if scheduled:
        click.echo(msgspec.json.encode(result))
        return
    with _progress():
        job.record_run(result)  # not in the audit log, which would be a change for the next run
    for each in found.damaged:
        click.echo(f"Note: {each}.", err=True)
    if found.name is None:
        click.echo(f"Nothing has changed since the newest backup in {found.place}.")
        return
    click.echo(
        f"{found.place}: {found.name}, {found.rows:,} rows, {found.size_bytes:,} bytes,"
        f" {_files(found.files_copied, 'new ')}; read back and verified. Backups kept: {found.kept:,},"
        f" removed: {found.removed:,}."
    )
    _tell_key(in_file=True)
    _refuse_lost(found.lost)


def _end_with_parent() -> None:
    """End this process when the process that started it closes the input, or dies."""
    # Not sys.stdin: the interpreter could not end while this thread holds the lock of its buffer.
    while os.read(0, 1024):
        continue
    os._exit(1)


@main.command()
@click.argument("place", required=False)
@click.option("--verify", is_flag=True, help="Read each backup back, with the files of documents.")
def backups(place: str | None, *, verify: bool) -> None:
    """
    List the scheduled backups in PLACE, a folder or an S3 address.

    The default is the place that MUNIMENT_BACKUPS sets. Exits with status 1 if a backup is damaged.
    """
    use_django(may_lack_instance=True)
    from muniment.backup.scheduled.reading import check_all, shown

    with _progress():
        opened = _place(place)
        index, records = opened.index(), opened.records()
        faults = {record.name: index.damaged.get(record.name, "") for record in records}
        if verify:
            data = config.current().data
            scratch = data if data.is_dir() else None
            with tempfile.TemporaryDirectory(dir=scratch) as folder:
                faults = {checked.record.name: checked.fault for checked in check_all(opened, Path(folder))}
    for record in reversed(records):
        fault = faults[record.name]
        facts = (
            f"{shown(record.made_at)}  {record.name}  {record.size_bytes:,} bytes, {record.rows:,} rows,"
            f" {_files(record.files)}, edition {record.edition:,}"
        )
        if fault:
            click.echo(f"FAIL  {facts}: {fault}")
        else:
            click.echo(f"OK    {facts}")
    if not records:
        click.echo(f"No backups in {opened.shown}.")
    elif index.covered_at is not None and index.covered_at > records[-1].made_at:
        click.echo(f"Nothing had changed since the newest until {shown(index.covered_at)}.")
    if any(faults.values()):
        sys.exit(1)


def _place(address: str | None) -> "Place":
    from muniment.backup.scheduled.place import Place

    settings = config.current()
    chosen = address or settings.backup_place
    if not chosen or chosen == "off":
        raise click.UsageError("Name the place, or set MUNIMENT_BACKUPS.")
    try:
        setting_values.backup_address(chosen)
    except ValueError as error:
        raise click.UsageError(f"The place {error}.") from None
    if not chosen.startswith("s3:") and not Path(chosen).is_dir():
        if chosen == settings.backup_place and not Path(chosen).exists():
            raise click.ClickException(f"No backups in {chosen} yet; a running instance makes the first.")
        raise click.ClickException(f"{chosen} is not a folder.")
    return Place(chosen, settings.data)


@main.command()
@click.argument("source", metavar="[FILE|PLACE]", required=False)
@click.option("--at", metavar="TIME", help="Restore the newest scheduled backup not after TIME, or latest.")
def restore(source: str | None, at: str | None) -> None:
    """
    Restore FILE into an empty instance.

    The instance may be on SQLite or PostgreSQL. The file is verified first; then everything is written, or nothing. An
    instance that has been used is refused. Stop its servers first and start them afterwards. A backup of an older
    version is migrated; one of a newer version is refused.

    With --at, the newest good backup in PLACE that is not after TIME is restored, and the command says which one it is
    and what is lost. PLACE is a folder or an S3 address, by default the one that MUNIMENT_BACKUPS sets. TIME is written
    as 2026-11-22T14:00Z or 2026-11-22T15:00+01:00.
    """
    if at is None and (source is None or not Path(source).is_file()):
        raise click.UsageError("Name the file of a backup, or a time with --at.")
    use_django(may_lack_instance=True)
    if at is not None:
        _restore_at(source, at)
        return
    from muniment.backup.restoring import restore as restore_from

    file = Path(source or "")
    with _progress() as tell:
        loaded = restore_from(config.current(), file, tell=tell)
        record_command("restore", files=[file.name])
    _tell_restored(loaded)


def _restore_at(source: str | None, at: str) -> None:
    from muniment.backup.scheduled.reading import Choice, parse_time, restore_at, shown

    def tell_choice(choice: Choice) -> None:
        for each in choice.skipped:
            click.echo(f"Note: damaged, skipped: {each}.", err=True)
        until = "" if moment is None else f", the newest not after {shown(moment)}"
        click.echo(f"{choice.record.name} of {shown(choice.record.made_at)}{until}. {choice.lost}")

    with _progress() as tell:
        moment = parse_time(at)
        choice, loaded = restore_at(config.current(), _place(source), moment, tell=tell, chosen=tell_choice)
        record_command("restore", files=[choice.record.name])
    _tell_restored(loaded)


def _tell_restored(loaded: "Loaded") -> None:
    click.echo(f"Restored {loaded.rows:,} rows and {_files(loaded.blobs)}, as of {loaded.header.made_at}.")
    for note in loaded.notes:
        click.echo(f"Note: {note}", err=True)


@main.command()
@click.option("--to", required=True, help="postgresql://…, or sqlite:FOLDER; - reads it from standard input.")
@click.option("--storage", default="", help="s3://… for document files, or folder.  [default: the current store]")
def move(to: str, storage: str) -> None:
    """
    Move the instance to another database.

    It can move from SQLite to PostgreSQL, or back. Stop its servers and workers first; the old instance stays
    unchanged. All data is counted and compared before the move counts as complete; if it is interrupted, run the same
    command again. Afterwards start with the settings that the command prints.
    """
    source = config.current()
    require_instance(source)
    if to == "-":
        to = sys.stdin.readline().strip()
    target = config.use(_target(source, to, storage))
    use_django(may_lack_instance=True)
    from muniment.backup.moving import move as move_to

    with _progress() as tell:
        loaded = move_to(source, target, tell=tell)
        record_command("move")
    files = _files(loaded.blobs) if loaded.blobs else "no document files"
    click.echo(f"Moved and verified {loaded.rows:,} rows and {files}. Start with these settings:")
    for setting in ("data", "database_url", "storage_url"):
        click.echo(f"MUNIMENT_{setting.upper()}={masked(str(getattr(target, setting)))}")
    click.echo("The old instance is unchanged; remove it when you are sure.", err=True)
    for note in loaded.notes:
        click.echo(f"Note: {note}", err=True)


def _target(source: config.Config, to: str, storage: str) -> config.Config:
    storage_url = storage or source.storage_url
    if storage == "folder":
        storage_url = ""
    try:
        setting_values.storage_url(storage_url)
    except ValueError as error:
        raise click.UsageError(f"--storage {error}, or folder.") from None
    scheme, colon, rest = to.partition(":")
    if scheme in {"postgresql", "postgres"} and rest.startswith("//"):
        return config.Config(database_url=to, storage_url=storage_url)
    if scheme == "sqlite" and colon and rest:
        return config.Config(database_url="", data=Path(rest).expanduser(), storage_url=storage_url)
    raise click.UsageError("--to must be postgresql://user@host/database, or sqlite:FOLDER.")
