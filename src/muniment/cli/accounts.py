"""Commands for accounts, tokens and credits."""

import os
import sys
from collections.abc import Collection
from pathlib import Path

import click

from muniment.cli.command import main, migrated, problems_as_errors
from muniment.kernel.actor import COMMAND, SCOPES

LISTENING = "http://127.0.0.1:8000"
"""The address on which a server listens by default."""


@main.group()
def user() -> None:
    """Manage accounts and their tokens."""


@user.command("create")
@click.argument("email")
@click.option("--role", type=click.Choice(["owner", "reviewer", "operator"]), default="owner", show_default=True)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it.")
@click.option("--no-password", is_flag=True, help="Let the account sign in by an emailed code or a passkey.")
def user_create(email: str, role: str, *, password_stdin: bool, no_password: bool) -> None:
    """Create an account for EMAIL, with the address verified."""
    if password_stdin and no_password:
        raise click.UsageError("--password-stdin and --no-password cannot be combined.")
    password = None
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not no_password:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    migrated()
    from muniment.accounts.operations import create_account

    with problems_as_errors():
        account = create_account(COMMAND, email, password, role=role)
    click.echo(f"{account.email} is now {account.role}.")


@user.command("invite")
@click.argument("email")
@click.option("--role", type=click.Choice(["owner", "reviewer", "operator"]), default="owner", show_default=True)
@click.option("--own", default="", metavar="SLUG", help="The listing that the person will own.")
def user_invite(email: str, role: str, own: str) -> None:
    """
    Mail EMAIL a link with which the person creates an account, once and within 7 days.

    It works also where sign-up is closed. Operators see, resend and revoke invitations at /operate/invitations.
    """
    migrated()
    from muniment.mail.places import base_url
    from muniment.registry.inviting.accounts import invite_person

    with problems_as_errors():
        made = invite_person(COMMAND, email, role=role, own=own, base_url=base_url() or LISTENING)
    click.echo(f"An invitation to {made.email} as {made.role} is on its way; it expires on {made.expires_at:%Y-%m-%d}.")


@user.command("token")
@click.argument("email")
@click.option("--name", required=True, help="Name of the token in lists and in the history.")
@click.option("--read-only", is_flag=True, help="Permit reading only.")
@click.option("--scope", "chosen", multiple=True, help="A scope of the token; may be repeated.  [default: all]")
@click.option("--days", type=click.Choice(["30", "90", "365", "never"]), default="90", show_default=True)
def user_token(email: str, name: str, chosen: tuple[str, ...], days: str, *, read_only: bool) -> None:
    """Create a personal access token for EMAIL and print it."""
    if read_only and chosen:
        raise click.UsageError("--read-only and --scope cannot be combined.")
    migrated()
    from muniment.accounts import operations, scopes, tokens

    permitted: Collection[str] = chosen or SCOPES
    if read_only:
        permitted = scopes.READ_SCOPES
    lifetime_days = None if days == "never" else int(days)
    with problems_as_errors():
        account = operations.find_account(email)
        token = tokens.create_token(COMMAND, name, permitted=permitted, days=lifetime_days, account=account)
    click.echo(token.text)


@user.command("list")
def user_list() -> None:
    """List all accounts with their roles."""
    migrated()
    from muniment.accounts.operations import list_accounts

    for account in list_accounts(COMMAND):
        state = "active" if account.is_active else "inactive"
        click.echo(f"{account.email}\t{account.role}\t{state}")


@user.command("role")
@click.argument("email")
@click.argument("role", type=click.Choice(["owner", "reviewer", "operator"]))
def user_role(email: str, role: str) -> None:
    """Change the role of the account EMAIL to ROLE."""
    migrated()
    from muniment.accounts.operations import set_role

    with problems_as_errors():
        account = set_role(COMMAND, email, role)
    click.echo(f"{account.email} is now {account.role}.")


@user.command("remove-factors")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def user_remove_factors(email: str, *, yes: bool) -> None:
    """
    Remove every second factor and passkey of the account EMAIL.

    For an account that has lost them, or whose factors no longer open after the secret key was lost. First make sure
    that it is the owner who asks. The owner is told by mail.
    """
    migrated()
    from muniment.accounts.operations import remove_factors

    if not yes:
        click.confirm(f"Remove all second factors of {email}?", abort=True, err=True)
    with problems_as_errors():
        count = remove_factors(COMMAND, email)
    click.echo(f"{count} second factors and passkeys of {email} removed.")


@user.command("sign-in-link")
@click.argument("email")
def user_sign_in_link(email: str) -> None:
    """
    Print a link that signs the account EMAIL in once, within 15 minutes.

    It works also where people sign in only at an identity provider. Second factors are still asked for.
    """
    migrated()
    from muniment.accounts.identity_providers import sign_in_link
    from muniment.mail.places import base_url

    with problems_as_errors():
        link = sign_in_link(COMMAND, email)
    click.echo(f"{base_url() or LISTENING}{link}")


@user.command("export")
@click.argument("email")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def user_export(email: str, file: Path) -> None:
    """
    Write everything stored about the account EMAIL to FILE.

    FILE is a ZIP archive with a JSON file for each kind of thing, and the account's documents. Readable by you only.
    """
    migrated()
    from muniment.accounts import personal_data
    from muniment.accounts.operations import find_account
    from muniment.accounts.security.events import Event
    from muniment.accounts.security.log import record

    with problems_as_errors():
        account = find_account(email)
        try:
            with os.fdopen(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as out:
                personal_data.write_archive(account, out)
            record(Event.DATA_EXPORTED, account=account, actor=COMMAND)
        except OSError as error:
            raise click.ClickException(f"{error}.") from None
    click.echo(f"{file}: everything about {account.email}, {file.stat().st_size:,} bytes.")


@user.command("delete")
@click.argument("email")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def user_delete(email: str, *, yes: bool) -> None:
    """
    Delete the account EMAIL at once.

    Deletes its credentials, sessions, requests and unpublished drafts. Published listings stay and can be claimed, a
    public profile stays (see `muniment person erase`), and the ledger keeps the account's number.
    """
    migrated()
    from muniment.accounts.personal_data import delete_account

    if not yes:
        click.confirm(f"Delete {email}? This cannot be undone.", abort=True, err=True)
    with problems_as_errors():
        delete_account(COMMAND, email)
    click.echo(f"{email} is deleted.")


@main.group("credits")
def credits_() -> None:
    """Manage credits."""


@credits_.command("grant")
@click.argument("email")
@click.argument("amount", type=int)
@click.option("--note", default="", help="Note shown to the account with the entry.")
@click.option(
    "--key", default="", help="Idempotency key: repeating the command with the same key grants nothing twice."
)
def credits_grant(email: str, amount: int, *, note: str, key: str) -> None:
    """Grant AMOUNT credits to the account EMAIL."""
    migrated()
    from muniment.credits.operations import grant

    with problems_as_errors():
        balance = grant(COMMAND, email, amount, note=note, key=key)
    click.echo(f"{email} has {balance.balance:,} credits, {balance.held:,} of them held.")
