"""Commands to back up, restore and move an instance."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click
import obstore
from django.db.utils import DatabaseError
from rich.console import Console

from muniment import config
from muniment.cli.command import main, problems_as_errors, record_command, use_django
from muniment.server.observability.logs import masked


@contextmanager
def _progress() -> Iterator[Callable[[str], object]]:
    """Show the progress on the terminal, and turn failures into error messages."""
    from muniment.backup.loading import Mismatch

    console = Console(stderr=True)
    try:
        with problems_as_errors(), console.status("…") as status:
            yield lambda doing: status.update(click.unstyle(doing))
    except (OSError, DatabaseError, Mismatch, obstore.exceptions.BaseError) as error:
        says = masked(str(error)).partition("Debug source")[0].strip().removesuffix(".")
        raise click.ClickException(f"{says}. Nothing was written; fix the cause and try again.") from None


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """
    Back up the instance to FILE.

    The backup contains the database, documents and keys; the instance may stay in use. The file is read back and
    verified before it gets its name. It contains the secret key and the digests of passwords, so it is readable by you
    only: protect it like a password. It contains no settings. If documents have lost their files, everything else is
    backed up, and the exit status is 1.
    """
    use_django()
    from muniment.backup.operations import back_up

    with _progress() as tell:
        found = back_up(config.current(), file, tell=tell)
        record_command("backup", files=[file.name])
    manifest = found.manifest
    click.echo(
        f"{file}: {found.rows:,} rows, {manifest.blobs.n:,} document files, {found.keys} keys,"
        f" {found.size_bytes:,} bytes; read back and verified."
    )
    if not found.header.key_check or config.current().secret_key:
        click.echo("The secret key is set in MUNIMENT_SECRET_KEY: store it together with the backup.", err=True)
    if manifest.lost or manifest.damaged:
        ill = [*manifest.lost, *manifest.damaged]
        message = f"{len(ill):,} documents have a missing or damaged file: {', '.join(ill[:5])}."
        raise click.ClickException(f"{message} Everything else is backed up; see muniment doctor --storage.")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
def restore(file: Path) -> None:
    """
    Restore FILE into an empty instance.

    The instance may be on SQLite or PostgreSQL. The file is verified first; then everything is written, or nothing. An
    instance that has been used is refused. Stop its servers first and start them afterwards. A backup of an older
    version is migrated; one of a newer version is refused.
    """
    use_django()
    from muniment.backup.operations import restore as restore_from

    with _progress() as tell:
        loaded = restore_from(config.current(), file, tell=tell)
        record_command("restore", files=[file.name])
    click.echo(f"Restored {loaded.rows:,} rows and {loaded.blobs:,} document files, as of {loaded.header.made_at}.")
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
    target = config.use(_target(source, sys.stdin.readline().strip() if to == "-" else to, storage))
    use_django()
    from muniment.backup.moving import move as move_to

    with _progress() as tell:
        loaded = move_to(source, target, tell=tell)
        record_command("move")
    files = f"{loaded.blobs:,} document files" if loaded.blobs else "no document files"
    click.echo(f"Moved and verified {loaded.rows:,} rows and {files}. Start with these settings:")
    for setting in ("data", "database_url", "storage_url"):
        click.echo(f"MUNIMENT_{setting.upper()}={masked(str(getattr(target, setting)))}")
    click.echo("The old instance is unchanged; remove it when you are sure.", err=True)
    for note in loaded.notes:
        click.echo(f"Note: {note}", err=True)


def _target(source: config.Config, to: str, storage: str) -> config.Config:
    storage_url = source.storage_url if not storage else "" if storage == "folder" else storage
    if storage_url and not storage_url.startswith("s3://"):
        raise click.UsageError("--storage must be s3://KEY:SECRET@bucket/prefix, or folder.")
    scheme, colon, rest = to.partition(":")
    if scheme in {"postgresql", "postgres"} and rest.startswith("//"):
        return config.Config(database_url=to, storage_url=storage_url)
    if scheme == "sqlite" and colon and rest:
        return config.Config(database_url="", data=Path(rest).expanduser(), storage_url=storage_url)
    raise click.UsageError("--to must be postgresql://user@host/database, or sqlite:FOLDER.")
