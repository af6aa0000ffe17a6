"""Commands for the instance: doctor, OpenAPI document, migrations, republish, scrub, connect-kit."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click

from muniment import __version__, config
from muniment.api.contract import openapi_document
from muniment.backup.container import verify
from muniment.cli.command import main, migrated, problems_as_errors, record_command, refusals, use_django
from muniment.declared_fields import instance_schema
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases import storing
from muniment.registry_toml.applied import registry_name
from muniment.server.doctor import examine, examine_ledger, examine_storage, examine_values, settings_lines
from muniment.server.findings import FAIL, Finding, exit_status

if TYPE_CHECKING:
    from muniment.scrub.progress import Progress


@main.command()
@click.option("--ledger", is_flag=True, help="Also verify every credit balance against its transfers.")
@click.option("--storage", is_flag=True, help="Also verify every document against its blob.")
@click.option("--values", is_flag=True, help="Also list the stored values that break a rule.")
@click.option("--deep", is_flag=True, help="Verify everything stored; exits with 0 for OK, 3 for WARN, 1 for FAIL.")
@click.option("--json", "as_json", is_flag=True, help="Print the findings as JSON, without the settings.")
@click.option("--packed", is_flag=True, hidden=True, help="With --json: print the templates and values of texts.")
@click.option(
    "--backup",
    type=click.Path(dir_okay=False, exists=True, path_type=Path),
    help="Verify this backup instead, without an instance.",
)
def doctor(
    *, ledger: bool, storage: bool, values: bool, deep: bool, as_json: bool, packed: bool, backup: Path | None
) -> None:
    """
    Check the instance.

    Checks the settings, the data folder, the database, the published documents and the document store. Exits with
    status 1 if a check fails. Changes nothing, except that a small probe is written to the store, read and deleted.

    With --deep, it also reads everything stored and compares it with its source or its digest; the instance may be
    running. It then exits with status 3 if nothing fails, but a check warns.
    """
    if backup is not None:
        _verify(backup)
        return
    if as_json and deep:
        raise click.UsageError("--json and --deep cannot be combined.")
    current = config.current()
    if not as_json:
        click.echo("\n".join(settings_lines(current)))
        click.echo()
    findings = examine(current)
    further_checks = ((ledger, examine_ledger), (storage, examine_storage), (values, examine_values))
    for is_wanted, check in further_checks:
        # They need what the checks before them have found good.
        if is_wanted and _are_good(findings):
            findings.extend(check())
    _show_all(findings, as_json=as_json, is_packed=packed)
    if deep:
        findings.extend(_shown_deeply(current))
        sys.exit(exit_status(findings))
    if not _are_good(findings):
        sys.exit(FAIL)


def _are_good(findings: list[Finding]) -> bool:
    return all(finding.is_good for finding in findings)


def _shown_deeply(current: config.Config) -> Iterator[Finding]:
    """Show the findings about everything stored one by one: a large registry takes minutes."""
    use_django()
    from muniment.server.deep_checks import examine_deeply

    for finding in examine_deeply(current):
        _show(finding)
        yield finding


def _show_all(findings: list[Finding], *, as_json: bool, is_packed: bool) -> None:
    if not as_json:
        for finding in findings:
            _show(finding)
        return
    rows = []
    for finding in findings:
        rows.append({"mark": finding.mark, "what": finding.what, "says": finding.says, "state": finding.state})
    shown = storing.packed(rows) if is_packed else rows
    click.echo(json.dumps(shown, ensure_ascii=False))


def _show(finding: Finding) -> None:
    click.echo(f"{finding.mark:<4}  {finding.what}: {finding.says}")


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
    click.echo(json.dumps(openapi_document(found, instance_schema(found)), ensure_ascii=False, indent=2))


@main.command()
def migrate() -> None:
    """
    Apply database migrations, and render published documents again if their form changed.

    `serve` and `import` do this automatically; use this command to run it as a separate deployment step.
    """
    upgrade = migrated(may_lack_instance=True)
    if upgrade.migrations:
        click.echo(f"{upgrade.migrations} migrations applied.")
    if upgrade.renewed:
        click.echo("The published documents were rendered again in this version's form.")
    if not any(upgrade):
        click.echo("Nothing to do: no migrations are pending.")


@main.command()
@click.option(
    "--rebuild", is_flag=True, help="Write every document again in one transaction, under a new feed; writers wait."
)
def republish(*, rebuild: bool) -> None:
    """
    Publish every document again from its source.

    Renders each public listing, person and framework, replaces published documents that differ, and removes those
    without a public source. Reads continue, and changes wait for one batch at a time. Followers of the feed receive
    what was replaced as changes; after a rebuild they start over.
    """
    migrated()
    from muniment.registry.publishing import republishing

    with problems_as_errors():
        done = republishing.republish(rebuild=rebuild)
    record_command("republish", rebuild=rebuild, replaced=done.replaced, unlisted=done.unlisted)
    click.echo(f"{done.examined:,} documents rendered, {done.replaced:,} replaced, {done.unlisted:,} removed.")
    click.echo(f"State digest: {done.before or 'unreadable'} before, {done.after or 'unreadable'} after.")
    if done.is_rebuilt:
        click.echo("Every document was written again, under a new feed: nodes and followers start over.")


@main.command()
@click.argument("code", required=False)
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
def currency(code: str | None, *, yes: bool) -> None:
    """
    Show the currency of the stored amounts, or declare that they are in CODE.

    Amounts are stored as numbers, and the first start stores MUNIMENT_CURRENCY beside them. A process with another
    setting does not start. With CODE, this command relabels every amount and converts none: use it once, if the amounts
    were entered under the wrong setting. Stop all processes before.
    """
    use_django()
    from muniment.registry import currency as stored
    from muniment.store.database.migrations import migrate as apply_migrations

    with refusals():
        apply_migrations()
    present = stored.stored_currency()
    if code is None:
        click.echo(present or "None is stored yet; the next start stores MUNIMENT_CURRENCY.")
        return
    if not yes:
        click.confirm(f"Every amount is now in {present}. Label it {code}, without conversion?", abort=True, err=True)
    with problems_as_errors():
        stored.relabel(code)
    record_command("currency", before=present, after=code)
    click.echo(f"The amounts are in {code}; every document was published again.")


@main.command()
def scrub() -> None:
    """
    Verify everything stored now, and mend what can be made again from its source.

    `serve` does the same slowly, once every 7 days. Exits with status 1 if something is damaged that cannot
    be mended.
    """
    migrated()
    from muniment.scrub import instance

    shown: set[str] = set()

    def tell(progress: "Progress") -> None:
        for damage in (*progress.damages, *progress.former):
            outcome = "MENDED" if damage.is_mended else "DAMAGED"
            line = f"{outcome}  {damage.check}: {damage}"
            if line not in shown:
                click.echo(line)
            shown.add(line)

    done = instance.run_whole_pass(tell)
    click.echo(f"{done.examined:,} items examined, {len(done.former):,} damaged.")
    if done.former:
        sys.exit(FAIL)


@main.command("connect-kit")
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
def connect_kit(folder: Path) -> None:
    """
    Write links, server.json files and bundles that connect clients.

    FOLDER gets connect.md and connect.html with a link or command for each client, server.json and
    manage/server.json for MCP registries, and registry.mcpb and my-registry.mcpb for desktop apps in a private
    network. They have the address of MUNIMENT_BASE_URL and no token. Existing files of these names are replaced.
    """
    settings = config.current()
    base = settings.base_url
    if not base:
        raise click.UsageError("Set MUNIMENT_BASE_URL to the address of the instance.")
    use_django(may_lack_instance=True)
    from muniment.mcp.cards import Identity
    from muniment.web.connecting import kit_page
    from muniment.web.connecting.bundle import bundle
    from muniment.web.connecting.links import tool_servers

    name = registry_name()
    public, manage = tool_servers(base, name)
    identity = Identity(base_url=base, title=name, version=__version__)
    page = kit_page.as_markdown(public, manage, name)
    files = {
        "connect.md": page.encode(),
        "connect.html": kit_page.as_html(page, name).encode(),
        "server.json": _indented(identity.registry_entry(manage=False)),
        "manage/server.json": _indented(identity.registry_entry(manage=True)),
        f"{public.key}.mcpb": bundle(public, signed_in=False),
        f"{manage.key}.mcpb": bundle(manage, signed_in=True),
    }
    try:
        for path, content in files.items():
            (folder / path).parent.mkdir(parents=True, exist_ok=True)
            (folder / path).write_bytes(content)
    except OSError as error:
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    for path in files:
        click.echo(str(folder / path))


def _indented(value: JSONObject) -> bytes:
    return f"{json.dumps(value, ensure_ascii=False, indent=2)}\n".encode()
