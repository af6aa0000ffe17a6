"""The instance as a whole: its health, its database's form, its contract."""

import json
import sys
from pathlib import Path

import click

from muniment import config
from muniment.cli.command import main, ready, told


@main.command()
@click.option("--ledger", is_flag=True, help="Hold every balance of credits against its transfers too.")
@click.option("--storage", is_flag=True, help="Hold every document against its blob too.")
@click.option(
    "--backup",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Prove this backup instead, without an instance.",
)
def doctor(*, ledger: bool, storage: bool, backup: Path | None) -> None:
    """
    Look the instance over: every setting, the data folder, the database, what is published, the store.

    Ends with status 1 when something needs mending, and says what. Changes nothing; the store is proved by
    a small probe that is written, read and deleted.
    """
    if backup is not None:
        _prove(backup)
        return
    from muniment.server.doctor import examine, examine_ledger, examine_storage, settings_lines

    current = config.current()
    click.echo("\n".join(settings_lines(current)))
    click.echo()
    findings = examine(current)
    if ledger and all(finding.is_good for finding in findings):
        findings.append(examine_ledger())
    if storage and all(finding.is_good for finding in findings):
        findings.extend(examine_storage())
    for finding in findings:
        click.echo(f"{'ok  ' if finding.is_good else 'MEND'}  {finding.what}: {finding.says}")
    if not all(finding.is_good for finding in findings):
        sys.exit(1)


def _prove(backup: Path) -> None:
    from muniment.backup.proof import prove

    with told():
        try:
            found = prove(backup)
        except OSError as error:
            raise click.ClickException(f"{error}. The backup was not proved.") from None
    header, manifest = found.header, found.manifest
    click.echo(f"ok    every byte is as it was written: {found.size_bytes:,} bytes")
    click.echo(f"ok    made {header.made_at} by Muniment {header.version} from {header.database}")
    for table, count in manifest.tables.items():
        if count.n:
            click.echo(f"ok    {table}: {count.n:,} rows")
    click.echo(f"ok    files of documents: {manifest.blobs.n:,} of {manifest.blob_bytes:,} bytes; {found.keys} keys")
    for documents, what in ((manifest.lost, "had lost their file"), (manifest.damaged, "had a damaged file")):
        if documents:
            click.echo(f"MEND  {len(documents):,} documents {what} when it was made: {', '.join(documents[:5])}")
    if manifest.lost or manifest.damaged:
        sys.exit(1)


@main.command()
def openapi() -> None:
    """
    Print the contract of the REST API: OpenAPI 3.1, JSON.

    The same document that the instance serves at /openapi.json.
    """
    from muniment.api.contract import openapi_document
    from muniment.schema.objects import registry_schema

    found = config.current()
    click.echo(json.dumps(openapi_document(found, registry_schema(found.currency)), ensure_ascii=False, indent=2))


@main.command()
def migrate() -> None:
    """
    Bring the database to this version's form.

    `serve` and `import` do so by themselves; this is for deployments that want it as a step of its own.
    """
    applied = ready()
    click.echo(f"{applied} migrations applied." if applied else "Nothing to do: the database has this version's form.")
