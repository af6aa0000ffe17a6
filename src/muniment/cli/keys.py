"""Commands for the secret keys."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import click

from muniment import config
from muniment.accounts.keys.key_file import new_key
from muniment.cli.command import main, migrated, problems_as_errors, use_django
from muniment.kernel.actor import COMMAND

if TYPE_CHECKING:
    from muniment.accounts.keys import keyring


@main.group(invoke_without_command=True)
@click.pass_context
def keys(context: click.Context) -> None:
    """Show and rotate the secret keys. Without a command: `status`."""
    if context.invoked_subcommand is None:
        context.invoke(status)


@keys.command("status")
def status() -> None:
    """Show each key by its fingerprint, what is sealed under it, and when a former one can go."""
    _ready()
    from muniment.accounts.keys import keyring

    keys_status = keyring.status()
    for key in keys_status.keys:
        _show_key(key)
    unopened = _counted(keys_status.unopened)
    if unopened:
        click.echo(f"no key of this node opens {unopened}")
    if not any(key.state for key in keys_status.keys):
        click.echo("The database has no fingerprint of its key: run muniment keys adopt.")
    for process in keys_status.processes:
        click.echo(f"{process.name} signs with {process.signs_with}")


def _show_key(key: "keyring.KeyStatus") -> None:
    state = key.state or "not in use yet"
    if not key.is_here:
        state += ", MISSING HERE"
    click.echo(f"{key.fingerprint}  {state}")
    sealed = _counted(key.needed_by)
    if sealed:
        click.echo(f"    sealed under it: {sealed}")
    if key.signed_until is not None:
        click.echo(f"    signed links and codes are accepted until {key.signed_until:%Y-%m-%d %H:%M} UTC")
    if key.can_go:
        click.echo(f"    nothing depends on it: run muniment keys drop {key.fingerprint}")


def _counted(counts: Mapping[str, int]) -> str:
    """Return the kinds of things of which there are any, with their numbers; empty if there are none."""
    texts = []
    for words, count in counts.items():
        if count:
            texts.append(f"{count:,} {words}")
    return ", ".join(texts)


@keys.command("new")
def new() -> None:
    """Print a new random key. It changes nothing."""
    click.echo(new_key())


@keys.command("require")
def require() -> None:
    """Fail unless MUNIMENT_SECRET_KEY is set, for deployments whose nodes have no data folder in common."""
    if not config.current().secret_key.strip():
        message = "MUNIMENT_SECRET_KEY is empty. Set it to the output of muniment keys new, the same on every node."
        raise click.ClickException(message)


@keys.command("adopt")
@click.option("--replace", is_flag=True, help="The key of this database is lost; continue without what it sealed.")
def adopt(*, replace: bool) -> None:
    """
    Record this node's key as the key of the database.

    Nodes with another key then refuse to start. Servers do this by themselves where they can tell which key is right.
    With --replace, everybody signs in again, and second factors that were set up before must be removed by
    `muniment user remove-factors` and set up again.
    """
    _ready()
    from muniment.accounts.keys import keyring

    with problems_as_errors():
        fingerprint = keyring.adopt(COMMAND, replace=replace)
    click.echo(f"The database uses the key {fingerprint}.")
    lost = _counted(keyring.status().unopened)
    if lost:
        click.echo(f"Lost with the former key: {lost}.", err=True)


@keys.command("rotate")
@click.option(
    "--wait",
    type=click.IntRange(0, 3_600),
    default=90,
    show_default=True,
    help="Seconds to wait for processes that lack the new key.",
)
def rotate(wait: int) -> None:
    """
    Replace the secret key by a new one, and seal everything again under it.

    Where the key is a file in the data folder, this command makes the new key. Where MUNIMENT_SECRET_KEY is set, make
    it with `muniment keys new`, set MUNIMENT_SECRET_KEY=NEW,PRESENT on every node and restart them first. Servers stay
    up. The command waits until every running process has the new key, and can be repeated if it was interrupted.
    """
    migrated()
    from muniment.accounts.keys import keyring

    with problems_as_errors():
        keyring.rotate(COMMAND, tell=lambda doing: click.echo(doing, err=True), wait_s=wait)
        found = keyring.status()
    for key in found.keys:
        if key.state == "current":
            click.echo(f"{key.fingerprint} is the key now.")
        elif key.state == "former" and key.signed_until is not None:
            click.echo(
                f"{key.fingerprint} can go after {key.signed_until:%Y-%m-%d %H:%M} UTC:"
                f" run muniment keys drop {key.fingerprint}"
            )


@keys.command("drop")
@click.argument("fingerprint")
def drop(fingerprint: str) -> None:
    """Remove the former key FINGERPRINT. Refused while something depends on it."""
    migrated()
    from muniment.accounts.keys import keyring

    with problems_as_errors():
        is_in_file = keyring.drop(COMMAND, fingerprint)
    where = "" if is_in_file else " Remove it from MUNIMENT_SECRET_KEY on every node."
    click.echo(f"{fingerprint} is no longer a key of this database.{where}")


def _ready() -> None:
    """Load Django without settling on a key: these commands also run where the key is wrong."""
    use_django()
    from muniment.store.database.migrations import pending

    if pending():
        raise click.ClickException("Migrations are pending. Run muniment migrate first.")
