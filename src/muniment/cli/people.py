"""Commands for people: correct, unlist, merge, erase."""

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
    companies = "company" if count == 1 else "companies"
    verb = "Would erase" if dry_run else "Erased"
    click.echo(f"{verb} {slug}: the profile and positions at {count:,} {companies}.")
    if erased.account:
        click.echo(f"The account {erased.account} stays; delete it with muniment user delete.", err=True)
    for folder in erased.unwritten:
        click.echo(f"The suppression list could not be written to {folder}.", err=True)


@person.command("correct")
@click.argument("slug")
@click.option("--name", help="The correct name.")
@click.option("--bio", help="The correct description; empty removes it.")
def person_correct(slug: str, *, name: str | None, bio: str | None) -> None:
    """Correct the profile of the person SLUG."""
    migrated()
    from muniment.registry.people.moderation import correct_person
    from muniment.registry.people.profiles import ProfileChange

    given = {"name": name, "bio": bio}
    change = ProfileChange({key: value or None for key, value in given.items() if value is not None})
    with problems_as_errors():
        update = correct_person(COMMAND, slug, change)
    click.echo(f"{slug}: {', '.join(update.applied) or 'nothing'} changed.")


@person.command("unlist")
@click.argument("slug")
@click.option("--note", required=True, help="The reason; emailed if the profile belongs to an account.")
def person_unlist(slug: str, note: str) -> None:
    """Remove the profile of the person SLUG from everything public."""
    migrated()
    from muniment.registry.people.moderation import unlist_person

    with problems_as_errors():
        unlist_person(COMMAND, slug, note)
    click.echo(f"{slug} is unlisted.")


@person.command("relist")
@click.argument("slug")
def person_relist(slug: str) -> None:
    """Publish the profile of the person SLUG again that a reviewer or operator unlisted."""
    migrated()
    from muniment.registry.people.moderation import relist_person

    with problems_as_errors():
        relist_person(COMMAND, slug)
    click.echo(f"{slug} is public again.")


@person.command("merge")
@click.argument("slug")
@click.argument("into")
def person_merge(slug: str, into: str) -> None:
    """Merge the person SLUG into the person INTO, who keeps the positions and the history of both."""
    migrated()
    from muniment.registry.people.moderation import merge_people

    with problems_as_errors():
        merge_people(COMMAND, slug, into)
    click.echo(f"{slug} is now {into}.")


def _show(mentions: Iterable[tuple[str, str, str, str]]) -> None:
    for what, where, field, _ in mentions:
        click.echo(f"{what} {where}: {field} names the person")
