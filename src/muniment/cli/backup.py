"""What keeps an instance from being lost, and lets it grow: backup, restore, move."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from muniment import config
from muniment.cli.command import main, told, use_django


@contextmanager
def _shown() -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being done, and tell whatever stops it with its way out."""
    import obstore
    from django.db import DatabaseError
    from rich.console import Console

    from muniment.backup.loading import Mismatch
    from muniment.server.app.logs import masked

    console = Console(stderr=True)
    try:
        with told(), console.status("…") as status:
            yield lambda doing: status.update(click.unstyle(doing))
    except (OSError, DatabaseError, Mismatch, obstore.exceptions.BaseError) as error:
        says = masked(str(error)).partition("Debug source")[0].strip().removesuffix(".")
        raise click.ClickException(f"{says}. Nothing was written; once this is mended, try again.") from None


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def backup(file: Path) -> None:
    """
    Write the whole instance into FILE: database, documents, keys; it may be served and written meanwhile.

    The file is read back and proved before it gets its name. It holds the key that signs and digests of
    passwords, so it is made readable by you alone: keep it like a password. Settings are no part of it.
    Ends with status 1, with a good backup of everything else, when documents have lost their file.
    """
    use_django()
    from muniment.backup.operations import back_up

    with _shown() as tell:
        found = back_up(config.current(), file, tell=tell)
    manifest = found.manifest
    click.echo(
        f"{file}: {found.rows:,} rows, {manifest.blobs.n:,} files of documents, {found.keys} keys,"
        f" {found.size_bytes:,} bytes; read back and proved."
    )
    if not found.header.key_check or config.current().secret_key:
        click.echo("The secret key is a setting here: keep MUNIMENT_SECRET_KEY beside the backup.", err=True)
    if manifest.lost or manifest.damaged:
        ill = [*manifest.lost, *manifest.damaged]
        message = f"{len(ill):,} documents have lost their file, or it is damaged: {', '.join(ill[:5])}."
        raise click.ClickException(f"{message} Everything else is in the backup; see muniment doctor --storage.")


@main.command()
@click.argument("file", type=click.Path(dir_okay=False, exists=True, path_type=Path))
def restore(file: Path) -> None:
    """
    Make an empty instance what the one was that FILE was made of, on SQLite or PostgreSQL.

    The file is proved first; then everything is written, or nothing. Refuses an instance that anybody has
    used. Stop its servers before, and start them after. A backup of an older version is brought to this
    version's form; one of a newer version is refused.
    """
    use_django()
    from muniment.backup.operations import restore as restore_from

    with _shown() as tell:
        loaded = restore_from(config.current(), file, tell=tell)
    click.echo(
        f"{loaded.rows:,} rows and {loaded.blobs:,} files of documents are restored, as of {loaded.header.made_at}."
    )
    for note in loaded.notes:
        click.echo(f"Note: {note}", err=True)


@main.command()
@click.option("--to", required=True, help="postgresql://…, or sqlite:FOLDER; - reads it from standard input.")
@click.option("--storage", default="", help="s3://… for the files of documents, or folder.  [default: as set]")
def move(to: str, storage: str) -> None:
    """
    Move the whole instance to another database: from SQLite to PostgreSQL, or back.

    Stop its servers and workers before; the old instance stays as it was. Everything is counted and compared
    before the new one counts; if the move breaks off, the same command begins again. Afterwards start with the
    settings that the command names.
    """
    source = config.current()
    target = config.use(_moved(source, sys.stdin.readline().strip() if to == "-" else to, storage))
    use_django()
    from muniment.backup.moving import move as move_to
    from muniment.server.app.logs import masked

    with _shown() as tell:
        loaded = move_to(source, target, tell=tell)
    files = f"{loaded.blobs:,} files of documents" if loaded.blobs else "no files of documents"
    click.echo(f"{loaded.rows:,} rows and {files} are moved and compared. Start with these settings:")
    for setting in ("data", "database_url", "storage_url"):
        click.echo(f"MUNIMENT_{setting.upper()}={masked(str(getattr(target, setting)))}")
    click.echo("The old instance stands as it was; remove it when you are sure.", err=True)
    for note in loaded.notes:
        click.echo(f"Note: {note}", err=True)


def _moved(source: config.Config, to: str, storage: str) -> config.Config:
    """Give the settings of the new instance."""
    storage_url = source.storage_url if not storage else "" if storage == "folder" else storage
    if storage_url and not storage_url.startswith("s3://"):
        raise click.UsageError("--storage takes s3://KEY:SECRET@bucket/prefix, or folder.")
    scheme, colon, rest = to.partition(":")
    if scheme in {"postgresql", "postgres"} and rest.startswith("//"):
        return config.Config(database_url=to, storage_url=storage_url)
    if scheme == "sqlite" and colon and rest:
        return config.Config(database_url="", data=Path(rest).expanduser(), storage_url=storage_url)
    raise click.UsageError("--to takes postgresql://user@host/database, or sqlite:FOLDER.")
