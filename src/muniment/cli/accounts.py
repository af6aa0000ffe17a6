"""Accounts, their tokens and their credits."""

import sys

import click

from muniment.cli.command import main, ready, told
from muniment.kernel.actor import COMMAND, SCOPES


@main.group()
def user() -> None:
    """Make accounts, list them, say what they may do."""


@user.command("create")
@click.argument("email")
@click.option("--role", type=click.Choice(["owner", "reviewer", "operator"]), default="owner", show_default=True)
@click.option("--password-stdin", is_flag=True, help="Read the password from standard input instead of asking for it.")
@click.option("--no-password", is_flag=True, help="Make an account that signs in by a mailed code or a passkey.")
def user_create(email: str, role: str, *, password_stdin: bool, no_password: bool) -> None:
    """Make an account for EMAIL whose address counts as verified."""
    if password_stdin and no_password:
        raise click.UsageError("--password-stdin and --no-password exclude each other.")
    password = None
    if password_stdin:
        password = sys.stdin.readline().rstrip("\n")
    elif not no_password:
        password = click.prompt("Password", hide_input=True, confirmation_prompt=True, err=True)
    ready()
    from muniment.accounts.operations import create_account

    with told():
        account = create_account(COMMAND, email, password, role=role)
    click.echo(f"{account.email} is {account.role} now.")


@user.command("token")
@click.argument("email")
@click.option("--name", required=True, help="What the token is called in lists and in history.")
@click.option("--read-only", is_flag=True, help="Let it see and change nothing.")
@click.option("--scope", "chosen", multiple=True, help="A scope that it holds; may be repeated. Without: all.")
@click.option("--days", type=click.Choice(["30", "90", "365", "never"]), default="90", show_default=True)
def user_token(email: str, name: str, chosen: tuple[str, ...], days: str, *, read_only: bool) -> None:
    """Make a personal access token for EMAIL and print it, and nothing else."""
    if read_only and chosen:
        raise click.UsageError("--read-only and --scope exclude each other.")
    ready()
    from muniment.accounts.operations import find_account
    from muniment.accounts.scopes import READ_SCOPES
    from muniment.accounts.tokens import create_token

    with told():
        minted = create_token(
            COMMAND,
            name,
            permitted=READ_SCOPES if read_only else chosen or SCOPES,
            days=None if days == "never" else int(days),
            account=find_account(email),
        )
    click.echo(minted.text)


@user.command("list")
def user_list() -> None:
    """List every account with its role."""
    ready()
    from muniment.accounts.operations import list_accounts

    for account in list_accounts(COMMAND):
        click.echo(f"{account.email}\t{account.role}\t{'active' if account.is_active else 'inactive'}")


@user.command("role")
@click.argument("email")
@click.argument("role", type=click.Choice(["owner", "reviewer", "operator"]))
def user_role(email: str, role: str) -> None:
    """Give the account at EMAIL another ROLE."""
    ready()
    from muniment.accounts.operations import set_role

    with told():
        account = set_role(COMMAND, email, role)
    click.echo(f"{account.email} is {account.role} now.")


@main.group("credits")
def credits_() -> None:
    """Give credits to accounts."""


@credits_.command("grant")
@click.argument("email")
@click.argument("amount", type=int)
@click.option("--note", default="", help="What the account reads beside the entry.")
@click.option("--key", default="", help="Names the grant: repeating the command with it grants nothing twice.")
def credits_grant(email: str, amount: int, *, note: str, key: str) -> None:
    """Grant AMOUNT credits to the account at EMAIL."""
    ready()
    from muniment.credits.operations import grant

    with told():
        balance = grant(COMMAND, email, amount, note=note, key=key)
    click.echo(f"{email} has {balance.balance:,} credits, of which {balance.held:,} are held.")
