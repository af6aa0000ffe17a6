"""The command for the audit log."""

from typing import Any

import click
import msgspec

from muniment.cli.command import main, migrated, problems_as_errors
from muniment.kernel.actor import COMMAND
from muniment.kernel.csv_text import CsvText


@main.command()
@click.option("--since", default="", help="Only events since this date or time, or an age such as 7d or 12h.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
@click.option("--csv", "as_csv", is_flag=True, help="Print CSV.")
def audit(since: str, *, as_json: bool, as_csv: bool) -> None:
    """
    Print the audit log, the latest event first.

    The audit log has what operators, reviewers and commands did: roles, decisions, takedowns, imports, settings. No
    command and no page changes it.
    """
    if as_json and as_csv:
        raise click.UsageError("--json and --csv cannot be combined.")
    migrated()
    from muniment.accounts.security.events import details_of, title_of
    from muniment.accounts.security.log import (
        COLUMNS,
        AuditFilter,
        audit_events,
        csv_cells,
        event_wire,
        read_since,
        stream_events,
    )

    with problems_as_errors():
        start = read_since(since) if since else None
        events = stream_events(audit_events(COMMAND, AuditFilter(since=start)))
        text = CsvText()
        if as_csv:
            text.write(COLUMNS)
            click.echo(text.take(), nl=False)
        for event in events:
            values = event_wire(event)
            if as_json:
                click.echo(msgspec.json.encode(values).decode())
            elif as_csv:
                text.write(csv_cells(values))
                click.echo(text.take(), nl=False)
            else:
                click.echo(_line(values, title_of(event), details_of(event)))


def _line(values: dict[str, Any], title: str, details: list[tuple[str, str]]) -> str:
    by = values["actor"] or values["credential"] or values["via"]
    account = [f"Account: {values['account']}"] if values["account"] else []
    said = "; ".join([*account, *(f"{label}: {value}" for label, value in details)])
    return "\t".join([values["at"], by, title, said])
