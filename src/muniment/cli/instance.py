"""Commands for the instance: doctor, OpenAPI document, migrations."""

import json
import sys
from pathlib import Path

import click

from muniment import config
from muniment.api.contract import openapi_document
from muniment.backup.proof import verify
from muniment.cli.command import main, migrated, problems_as_errors
from muniment.schema.objects import registry_schema
from muniment.server.doctor import examine, examine_ledger, examine_storage, examine_values, settings_lines


@main.command()
@click.option("--ledger", is_flag=True, help="Also verify every credit balance against its transfers.")
@click.option("--storage", is_flag=True, help="Also verify every document against its blob.")
@click.option("--values", is_flag=True, help="Also list the stored values that break a rule.")
@click.option(
    "--backup",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Verify this backup instead, without an instance.",
)
def doctor(*, ledger: bool, storage: bool, values: bool, backup: Path | None) -> None:
    """
    Check the instance.

    Checks the settings, the data folder, the database, the published documents and the document store. Exits with
    status 1 if a check fails. Changes nothing, except that a small probe is written to the store, read and deleted.
    """
    if backup is not None:
        _verify(backup)
        return
    current = config.current()
    click.echo("\n".join(settings_lines(current)))
    click.echo()
    findings = examine(current)
    if ledger and all(finding.is_good for finding in findings):
        findings.append(examine_ledger())
    if storage and all(finding.is_good for finding in findings):
        findings.extend(examine_storage())
    if values and all(finding.is_good for finding in findings):
        findings.extend(examine_values())
    for finding in findings:
        click.echo(f"{finding.mark:<4}  {finding.what}: {finding.says}")
    if not all(finding.is_good for finding in findings):
        sys.exit(1)


def _verify(backup: Path) -> None:
    with problems_as_errors():
        try:
            found = verify(backup)
        except OSError as error:
            raise click.ClickException(f"{error}. The backup was not verified.") from None
    header, manifest = found.header, found.manifest
    click.echo(f"OK    checksum matches: {found.size_bytes:,} bytes")
    click.echo(f"OK    made {header.made_at} by Muniment {header.version} from {header.database}")
    for table, count in manifest.tables.items():
        if count.n:
            click.echo(f"OK    {table}: {count.n:,} rows")
    click.echo(f"OK    document files: {manifest.blobs.n:,} of {manifest.blob_bytes:,} bytes; {found.keys} keys")
    for documents, what in ((manifest.lost, "missing"), (manifest.damaged, "damaged")):
        if documents:
            click.echo(f"FAIL  {len(documents):,} document files were {what} at that time: {', '.join(documents[:5])}")
    if manifest.lost or manifest.damaged:
        sys.exit(1)


@main.command()
def openapi() -> None:
    """Print the OpenAPI 3.1 document of the REST API as JSON, as served at /openapi.json."""
    found = config.current()
    click.echo(json.dumps(openapi_document(found, registry_schema(found.currency)), ensure_ascii=False, indent=2))


@main.command()
def migrate() -> None:
    """
    Apply database migrations, and render published documents again if their form changed.

    `serve` and `import` do this automatically; use this command to run it as a separate deployment step.
    """
    upgrade = migrated()
    if upgrade.migrations:
        click.echo(f"{upgrade.migrations} migrations applied.")
    if upgrade.renewed:
        click.echo("The published documents were rendered again in this version's form.")
    if not any(upgrade):
        click.echo("Nothing to do: no migrations are pending.")
