"""Commands for the updates that visitors get by email: count, list, end."""

import click

from muniment.cli.command import main, migrated, record_command
from muniment.kernel.actor import COMMAND


@main.group()
def subscriptions() -> None:
    """Manage the updates that visitors get by email."""


@subscriptions.command("count")
def subscriptions_count() -> None:
    """Count the subscriptions by what they are about."""
    migrated()
    from muniment.searches.subscriptions import count_subscriptions

    counts = count_subscriptions(COMMAND)
    for topic, count in counts.by_topic.items():
        click.echo(f"{topic}\t{count:,}")
    click.echo(f"addresses\t{counts.addresses:,}")
    click.echo(f"not confirmed\t{counts.unconfirmed:,}")


@subscriptions.command("list")
@click.argument("email")
def subscriptions_list(email: str) -> None:
    """List the subscriptions of the address EMAIL."""
    migrated()
    from muniment.searches.subscriptions import list_subscriptions

    for row in list_subscriptions(COMMAND, email):
        state = f"since {row.confirmed_at:%Y-%m-%d}" if row.confirmed_at else "not confirmed"
        click.echo(f"{row.topic}\t{row.key}\t{row.pace}\t{state}")


@subscriptions.command("end")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def subscriptions_end(email: str, *, yes: bool) -> None:
    """Delete the address EMAIL with its subscriptions and the messages to it."""
    migrated()
    from muniment.searches.subscriptions import end_subscriptions

    if not yes:
        click.confirm(f"Delete the subscriptions of {email}?", abort=True, err=True)
    count = end_subscriptions(COMMAND, email)
    record_command("subscriptions end", subscriptions=count)  # not the address, which is erased
    noun = "subscription" if count == 1 else "subscriptions"
    click.echo(f"{count:,} {noun} ended; the address is deleted.")
