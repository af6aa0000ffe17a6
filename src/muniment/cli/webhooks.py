"""Commands for webhooks: list, test, replay, resume, delete."""

from typing import TYPE_CHECKING

import click

from muniment.cli.command import main, migrated, problems_as_errors, record_command
from muniment.kernel.actor import COMMAND

if TYPE_CHECKING:
    from muniment.webhooks.models import Endpoint


@main.group()
def webhooks() -> None:
    """Manage webhooks: those of the registry, and those of accounts."""


@webhooks.command("list")
def webhooks_list() -> None:
    """List the webhooks of the registry and of all accounts with their states."""
    migrated()
    from muniment.webhooks import endpoints

    for row in endpoints.list_all_endpoints(COMMAND):
        of = "registry" if row.account is None else row.account.email
        state = endpoints.state_of(row)
        click.echo(f"{row.pk}\t{of}\t{state}{_since(row, state)}\t{row.url}")


def _since(row: "Endpoint", state: str) -> str:
    """Return since when or until when a webhook is in a state, or why."""
    if state == "failing" and row.failing_since:
        return f" since {row.failing_since:%Y-%m-%d %H:%M}"
    if state == "paused" and row.paused_until:
        return f" until {row.paused_until:%Y-%m-%d %H:%M}"
    if state == "ended" and row.ended == "gone":
        return ": it answered 410"
    if state == "ended":
        return ": it failed for a week"
    return ""


@webhooks.command("test")
@click.argument("webhook_id", metavar="ID")
def webhooks_test(webhook_id: str) -> None:
    """Send a test event to the webhook ID."""
    migrated()
    from muniment.webhooks import endpoints

    with problems_as_errors():
        sent = endpoints.send_test(COMMAND, webhook_id, of_registry=True)
    record_command("webhooks test", webhook=webhook_id)
    click.echo(f"The event {sent.event_id} is sent by the next worker.")


@webhooks.command("replay")
@click.argument("webhook_id", metavar="ID")
@click.argument("event_id", metavar="[EVENT]", required=False)
@click.option("--failed", is_flag=True, help="Send all events again that were given up.")
def webhooks_replay(webhook_id: str, event_id: str | None, *, failed: bool) -> None:
    """
    Send the event EVENT of the webhook ID again, or all that were given up.

    EVENT is the id that the receiver was sent as Webhook-Id.
    """
    if failed == bool(event_id):
        raise click.UsageError("Name an event, or use --failed.")
    migrated()
    from muniment.webhooks import endpoints

    with problems_as_errors():
        if event_id:
            found = endpoints.find_delivery(COMMAND, webhook_id, event_id, of_registry=True)
            endpoints.replay(COMMAND, webhook_id, found.pk, of_registry=True)
            count = 1
        else:
            count = endpoints.replay_failed(COMMAND, webhook_id, of_registry=True)
    record_command("webhooks replay", webhook=webhook_id, events=count)
    words = "event is" if count == 1 else "events are"
    click.echo(f"{count:,} {words} sent again.")


@webhooks.command("resume")
@click.argument("webhook_id", metavar="ID")
def webhooks_resume(webhook_id: str) -> None:
    """Start the webhook ID again that was ended, or is paused."""
    migrated()
    from muniment.webhooks import endpoints

    with problems_as_errors():
        row = endpoints.resume_endpoint(COMMAND, webhook_id, of_registry=True)
    record_command("webhooks resume", webhook=webhook_id)
    click.echo(f"{row.url} is sent what waits for it.")


@webhooks.command("delete")
@click.argument("webhook_id", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def webhooks_delete(webhook_id: str, *, yes: bool) -> None:
    """Delete the webhook ID with the events that wait for it."""
    migrated()
    from muniment.webhooks import endpoints

    with problems_as_errors():
        row = endpoints.get_endpoint(COMMAND, webhook_id, of_registry=True)
        if not yes:
            click.confirm(f"Delete the webhook {row.url}?", abort=True, err=True)
        endpoints.delete_endpoint(COMMAND, webhook_id, of_registry=True)
    record_command("webhooks delete", webhook=webhook_id)  # not its URL, which may hold a secret
    click.echo(f"{row.url} is sent nothing more.")
