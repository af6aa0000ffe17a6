"""The command that verifies the public log of a registry."""

import base64
import sys
from datetime import UTC, datetime
from pathlib import Path

import click

from muniment.cli.command import main
from muniment.cli.ending import Ending
from muniment.kernel.signed_notes import NoteError, WitnessKey
from muniment.kernel.wire import timestamp
from muniment.mirror.origin import Origin, Stopped, origin_address
from muniment.mirror.verifying import (
    RUN_S,
    WHOLE_RUN_S,
    Deadline,
    Verified,
    Verifier,
    Witnessed,
    Witnesses,
    default_state,
)


@main.command()
@click.argument("url")
@click.option(
    "--state",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="File that remembers the checkpoint and the key.  [default: ~/.local/state/muniment/log-HOST.json]",
)
@click.option("--all", "is_all", is_flag=True, help="Compare every document and every leaf, not a sample.")
@click.option("--key", default="", metavar="KEY", help="The key of the log as its operator publishes it elsewhere.")
@click.option(
    "--witness",
    "witnesses",
    multiple=True,
    metavar="KEY",
    help="The key of a witness that must have cosigned the log; repeat it for more.",
)
@click.option(
    "--witnesses-needed",
    type=click.IntRange(min=1),
    metavar="NUMBER",
    help="How many of the witnesses must have cosigned one checkpoint.  [default: all]",
)
def verify(
    url: str,
    state: Path | None,
    *,
    is_all: bool,
    key: str,
    witnesses: tuple[str, ...],
    witnesses_needed: int | None,
) -> None:
    """
    Verify that the registry at URL keeps to its public log, without trusting its operator.

    The first run remembers the signed checkpoint of the log and the key that signed it. Each further run requires a
    proof that the log continues that checkpoint, and that the same key has signed it, or one that this key has named.
    Then documents chosen at random are compared with their leaves, or all of them.

    With --witness, the newest checkpoint that the witnesses have cosigned must be of the same history, and not older
    than two days: so it is the history that others see too.

    The exit status is 0 only if everything holds. Otherwise a message says what it means and what to do. Run the
    command regularly: what was logged before the first run cannot be compared.
    """
    trusted = _witnesses(witnesses, witnesses_needed)
    address = origin_address(url)
    file = state or default_state(address)
    with Ending() as ending:
        run_s = WHOLE_RUN_S if is_all else RUN_S
        deadline = Deadline(run_s, ending.wait)
        origin = Origin(address, wait=deadline.wait, tells=_tell)
        ending.interrupts(origin.interrupt)
        try:
            verifier = Verifier(origin, file, deadline, expected_key=key, witnesses=trusted, tells=_tell)
            verified = verifier.run(is_all=is_all)
        except Stopped:
            raise click.ClickException("ended before everything was verified") from None
        finally:
            origin.close()
    _show(verified, file, is_all=is_all)
    if verified.faults:
        for fault in verified.faults:
            click.echo(f"FAIL {fault}.")
        click.echo(
            f"error: {len(verified.faults)} documents or leaves are not as they were logged. Documents were changed, or"
            " the log is damaged. Ask the operator to run muniment doctor --deep, and compare with others who follow"
            " this registry.",
            err=True,
        )
        sys.exit(1)


def _witnesses(texts: tuple[str, ...], needed: int | None) -> Witnesses:
    keys = []
    for text in texts:
        try:
            keys.append(WitnessKey.parse(text))
        except NoteError as error:
            raise click.BadParameter(f"{text[:80]}: {error}", param_hint="--witness") from None
    distinct = tuple(dict.fromkeys(keys))
    if needed is None:
        needed = len(distinct)
    if needed > len(distinct):
        message = f"name at least {needed} by --witness; {len(distinct)} named"
        raise click.BadParameter(message, param_hint="--witnesses-needed")
    return Witnesses(distinct, needed)


def _show(verified: Verified, file: Path, *, is_all: bool) -> None:
    checkpoint = verified.checkpoint
    click.echo(
        f"Log {checkpoint.origin}: {checkpoint.size:,} leaves, root {base64.b64encode(checkpoint.root).decode()}"
    )
    click.echo(f"Key {verified.key}")
    if verified.former is None:
        click.echo(
            f"First use: remembered in {file}. Compare the key with the one that the operator publishes elsewhere."
        )
    elif verified.former.size == checkpoint.size:
        click.echo(f"OK   The log is the one of {verified.former_at}; nothing was added.")
    else:
        click.echo(f"OK   The log continues the {verified.former.size:,} leaves of {verified.former_at}.")
    if verified.former_key is not None:
        click.echo(f"OK   The key is new. The remembered one has named it: {verified.former_key}")
    if verified.witnessed is not None:
        _show_witnessed(verified.witnessed)
    if verified.faults:
        return
    if is_all:
        click.echo(f"OK   All {verified.documents:,} documents and all {verified.leaves:,} leaves are as logged.")
    else:
        click.echo(
            f"OK   {verified.documents} documents and {verified.leaves} leaves, chosen at random, are as logged."
            " --all compares all."
        )


def _show_witnessed(witnessed: Witnessed) -> None:
    told = []
    for cosignature in witnessed.cosignatures:
        at = timestamp(datetime.fromtimestamp(cosignature.at, UTC))
        told.append(f"{cosignature.key.name} at {at}")
    rest = f" Not cosigned yet: {witnessed.behind:,}." if witnessed.behind else ""
    click.echo(f"OK   Cosigned leaves: {witnessed.checkpoint.size:,}, by {', '.join(told)}.{rest}")


def _tell(sentence: str) -> None:
    click.echo(sentence[:1].upper() + sentence[1:] + ".", err=True)
