"""The link that sets up a new instance in the browser: the command, and what the start of the server prints."""

import logging

import click

from muniment import config
from muniment.cli.command import main, migrated, problems_as_errors

log = logging.getLogger("muniment.server")


@main.command("setup-link")
def setup_link() -> None:
    """
    Print a new link that sets up the registry in the browser, once, within 24 hours.

    Its first step creates the operator's account. The link that was printed before no longer works. Refused once there
    is an operator.
    """
    migrated()
    from muniment.accounts.first_run.operations import make_link
    from muniment.kernel.actor import COMMAND

    with problems_as_errors():
        path = make_link(COMMAND)
    click.echo(f"{_base()}{path}")


def tell_setup_link() -> None:
    """Print the link at the start of a server, if there is no operator yet; without it, the server serves the same."""
    from allauth.account.models import EmailAddress
    from django.db import DatabaseError

    from muniment.accounts.first_run.operations import offer_link
    from muniment.registry.demo_accounts import OWNER

    try:
        # A stranger can register the address of the demo, and not verify it.
        is_demo = EmailAddress.objects.filter(email=OWNER, verified=True).exists()
        path = "" if is_demo else offer_link()
    except DatabaseError as error:
        log.warning("no set-up link was made: %s; run muniment setup-link", error)
        return
    if path:
        click.echo(
            f"Set up this registry in your browser, with a link that works once and for 24 hours:\n{_base()}{path}",
            err=True,
        )


def _base() -> str:
    return config.current().base_url or "http://127.0.0.1:8000"
