"""What keeps an instance from being lost: backup and restore."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import click

from muniment import config
from muniment.cli.command import main, told, use_django


@contextmanager
def _shown() -> Iterator[Callable[[str], object]]:
    """Show on a terminal what is being done, and tell whatever stops it with its way out."""
    from django.db import DatabaseError
    from rich.console import Console

    from muniment.backup.loading import Differs

    console = Console(stderr=True)
    try:
        with told(), console.status("…") as status:
            yield lambda doing: status.update(click.unstyle(doing))
    except (OSError, DatabaseError, Differs) as error:
        raise click.ClickException(f"{error}. Nothing was written.") from None


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
