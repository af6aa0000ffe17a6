"""Commands for the public log."""

import base64

import click
from django.db import connection

from muniment.cli.command import main, migrated, record_command
from muniment.kernel.wire import timestamp
from muniment.masking import masked


@main.group()
def log() -> None:
    """Show the public log, and rotate the key that signs it."""


@log.command()
def show() -> None:
    """
    Print the log's origin, size, root and keys, and what its witnesses have cosigned.

    Publish the first key where visitors trust you, for example on your own website: `muniment verify URL --key KEY`
    then needs to trust no other source.
    """
    migrated()
    from muniment.registry.publishing import signed_log, witnesses

    signed_log.settle()
    found = signed_log.read_log(connection.connection)
    assert found is not None  # noqa: S101 - it has just been settled
    state = found.state
    click.echo(f"origin: {state.origin}")
    click.echo(f"size: {state.size}")
    click.echo(f"root: {base64.b64encode(state.root).decode()}")
    click.echo(f"begun at: {state.begun_at}")
    if state.former is not None:
        click.echo(f"began again instead of: {state.former.origin}, which had {state.former.size} leaves")
    for key in found.keys:
        click.echo(f"key: {key}")
    for witness in witnesses.statuses():
        at = "never" if witness.cosigned_at is None else timestamp(witness.cosigned_at)
        click.echo(f"witness: {witness.name} {witness.url}")
        click.echo(f"  cosigned: {witness.size} leaves, {witness.behind} behind, at {at}")
        if witness.trouble:
            mark = "FAIL" if witness.accuses else "WARN"
            click.echo(f"  {mark} {witness.explanation} ({masked(witness.detail)})")


@log.command()
def rotate_key() -> None:
    """
    Let a new key sign the log from now on.

    The former key names it and signs too for 90 days, so that everyone who knows the former key accepts the new one.
    The servers may run.
    """
    migrated()
    from muniment.registry.publishing import signed_log

    rotated = signed_log.rotate_key()
    record_command("log rotate-key", result=rotated.key)
    click.echo(f"The log is signed by {rotated.key} from now on.")
    if not rotated.is_vouched:
        click.echo(
            "The former key could not be opened, so it does not name the new one: everyone who verifies the log must"
            " be told the new key.",
            err=True,
        )
