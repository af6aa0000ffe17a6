"""Commands for the change feed."""

import click

from muniment.cli.command import main, migrated, record_command


@main.group()
def feed() -> None:
    """Show the change feed, and renew its identity."""


@feed.command()
def show() -> None:
    """
    Print the feed's identity, edition, chain and state digest.

    The state digest covers every published document: two instances with the same digest serve the same documents.
    """
    migrated()
    from muniment.registry.publishing import publisher

    found = publisher.identity()
    for name, value in found._asdict().items():
        click.echo(f"{name.replace('_', ' ')}: {value}")


@feed.command()
def renew() -> None:
    """
    Renew the feed's identity, after the database was restored without `muniment restore`.

    Nodes rebuild their files and serve the former ones meanwhile. Clients that follow the feed see another feedId and
    start again from an export; those that send the chain continue if they have seen nothing that was lost. The servers
    may run.
    """
    migrated()
    from muniment.registry.publishing import publisher

    feed_id = publisher.renew_identity()
    record_command("feed renew", result=feed_id)
    click.echo(f"The feed has the identity {feed_id} from now on.")
