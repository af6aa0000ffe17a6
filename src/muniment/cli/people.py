"""Commands for people: erase a person."""

from collections.abc import Iterable

import click

from muniment.cli.command import main, migrated, problems_as_errors
from muniment.kernel.actor import COMMAND


@main.group()
def person() -> None:
    """Manage people in the registry."""


@person.command("erase")
@click.argument("slug")
@click.option("--dry-run", is_flag=True, help="Show what would be erased and what would remain; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def person_erase(slug: str, *, dry_run: bool, yes: bool) -> None:
    """
    Erase the person SLUG for good.

    Removes the profile, its picture and history, and every position that names the person, from the database, the
    published documents, the search index and later exports and backups. Imports and restores do not bring the person
    back. Texts, documents and reports that name the person are listed, for you to decide.
    """
    migrated()
    from muniment.registry.people.erasing import erase_person
    from muniment.registry.publishing.redaction import compact_database

    with problems_as_errors():
        if not dry_run and not yes:
            _show(erase_person(COMMAND, slug, dry_run=True).mentions)
            click.confirm(f"Erase {slug}? This cannot be undone.", abort=True, err=True)
        erased = erase_person(COMMAND, slug, dry_run=dry_run)
        if not dry_run:
            compact_database()
    _show(erased.mentions)
    count = len(erased.companies)
    places = f"positions at {count:,} {'company' if count == 1 else 'companies'}"
    click.echo(f"{'Would erase' if dry_run else 'Erased'} {slug}: the profile and {places}.")
    if erased.account:
        click.echo(f"The account {erased.account} stays; delete it with muniment user delete.", err=True)
    for folder in erased.unwritten:
        click.echo(f"The suppression list could not be written to {folder}.", err=True)


def _show(mentions: Iterable[tuple[str, str, str, str]]) -> None:
    for what, where, field, _ in mentions:
        click.echo(f"{what} {where}: {field} names the person")
