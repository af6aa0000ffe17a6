"""The command: each subcommand a few lines over an operation."""

import errno
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import click

from muniment import config
from muniment.kernel.actor import COMMAND, SCOPES
from muniment.kernel.problems import Problem


def use_django() -> None:
    """Load Django with this process's settings; commands that need no database never call it."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    import django

    django.setup()


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="muniment")
def main() -> None:
    """Muniment: a registry in a box, for people and for agents."""
    try:
        config.current()
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None


@main.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 is everywhere.")
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option("--demo", is_flag=True, help="Load a small fictional registry first, if there is none.")
def serve(host: str, port: int, *, demo: bool) -> None:
    """
    Serve the registry: API, tool servers and pages on one address.

    Needs no set-up: the first start makes the data folder, its keys and the database. Reads are answered
    within half a second; the pages follow a few seconds later (/readyz tells when). SIGTERM or Ctrl-C ends
    it after what is being answered.
    """
    settings = config.current()
    try:
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        from muniment.server.listening import bind

        listener = bind(host, port)
    except OSError as error:
        way_out = (
            "choose another with --port"
            if error.errno == errno.EADDRINUSE
            else "check --host, --port and the data folder"
        )
        raise click.ClickException(f"Cannot serve on {host}:{port} from {settings.data}: {error}; {way_out}.") from None
    if not settings.base_url:
        shown = {"0.0.0.0": "localhost", "::": "localhost"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104 - named, not bound
        settings = config.use(config.Config(base_url=f"http://{shown}:{port}"))
    from muniment.server.process import serve as run

    click.echo(f"{settings.registry_name} on {settings.base_url} (data in {settings.data})", err=True)
    run(settings, listener, load=_load_demo if demo else None)


def _load_demo() -> None:
    from muniment.accounts import mail
    from muniment.registry.demonstration import demo_sign_ins
    from muniment.registry.importing import import_registry
    from muniment.registry.models import Company

    if not Company.objects.exists():
        summary = import_registry(Path(__file__).parent / "demo")
        click.echo(f"Demo registry loaded: {summary}.", err=True)
    for sign_in in demo_sign_ins():
        click.echo(f"Sign in as {sign_in.role}: {sign_in.email}  {sign_in.password}", err=True)
        if sign_in.token:
            click.echo(f"Token of the {sign_in.role}, for /api/manage/mcp: {sign_in.token}", err=True)
    mail.print_messages()


@main.command()
@click.option("--ledger", is_flag=True, help="Hold every balance of credits against its transfers too.")
@click.option("--storage", is_flag=True, help="Hold every document against its blob too.")
def doctor(*, ledger: bool, storage: bool) -> None:
    """
    Look the instance over: every setting, the data folder, the database, what is published, the store.

    Ends with status 1 when something needs mending, and says what. Changes nothing; the store is proved by
    a small probe that is written, read and deleted.
    """
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


@main.command()
@click.argument("email")
@click.argument("slug")
def own(email: str, slug: str) -> None:
    """Make the account at EMAIL an owner of the listing SLUG."""
    _ready()
    from muniment.accounts.operations import find_account
    from muniment.registry.operations import add_owner

    with _told():
        account = find_account(email)
        add_owner(COMMAND, slug, account.pk)
    click.echo(f"{account.email} owns {slug} now.")


@main.command()
def openapi() -> None:
    """
    Print the contract of the REST API: OpenAPI 3.1, JSON.

    The same document that the instance serves at /openapi.json.
    """
    from muniment.api.contract import openapi_document

    click.echo(json.dumps(openapi_document(config.current()), ensure_ascii=False, indent=2))


@main.command()
def migrate() -> None:
    """
    Bring the database to this version's form.

    `serve` and `import` do so by themselves; this is for deployments that want it as a step of its own.
    """
    use_django()
    from muniment.store.migrations import migrate as bring_up_to_date

    applied = bring_up_to_date()
    click.echo(f"{applied} migrations applied." if applied else "Nothing to do: the database has this version's form.")


@main.command("import")
@click.argument("path", type=click.Path(exists=True, path_type=Path))
@click.option("--draft", is_flag=True, help="Leave new listings unpublished, and published ones as they stand.")
@click.option("--dry-run", is_flag=True, help="Read, check and compare everything; write nothing.")
@click.option("--strict", is_flag=True, help="Import nothing if any row is bad.")
def import_(path: Path, *, draft: bool, dry_run: bool, strict: bool) -> None:
    """
    Import a registry: a folder with companies.jsonl, people.jsonl and frameworks.jsonl, or one such file.

    Rows that stand already are compared and skipped, so running it again changes nothing, and completes
    what was interrupted. Bad rows are told with file, line and field, and never stop the good ones; the
    command then ends with status 1.
    """
    use_django()
    from django.db import DatabaseError
    from rich.console import Console
    from rich.progress import Progress, TimeElapsedColumn

    from muniment.kernel.problems import BadRequest
    from muniment.registry.importing import import_registry, sources_of
    from muniment.store.migrations import migrate as bring_up_to_date

    def tell(label: str, bad: object) -> None:
        bar.console.print(f"{label}{bad}", style="", highlight=False, markup=False, soft_wrap=True)

    console = Console(stderr=True)
    started = time.monotonic()
    with Progress(*Progress.get_default_columns(), TimeElapsedColumn(), console=console) as bar:
        try:
            bring_up_to_date()
            sources = sources_of(path)
            tasks = {each.path: bar.add_task(each.kind, total=each.path.stat().st_size) for each in sources}
            summary = import_registry(
                path,
                draft=draft,
                dry_run=dry_run,
                strict=strict,
                tell=lambda bad: tell("", bad),
                warn=lambda bad: tell("warning: ", bad),
                progress=lambda file, read: bar.update(tasks[file], completed=read),
            )
        except BadRequest as problem:
            raise click.ClickException(f"{problem.message} {problem.hint}") from None
        except KeyboardInterrupt:
            bar.stop()
            click.echo("Stopped. What was written is whole; the same command completes it.", err=True)
            sys.exit(130)
        except (DatabaseError, OSError) as error:
            bar.stop()
            message = f"{error}. What was written is whole; once this is mended, the same command completes it."
            raise click.ClickException(message) from None
    verb = "Would import" if dry_run else "Nothing imported" if strict and summary.bad else "Imported"
    click.echo(f"{verb} in {time.monotonic() - started:.1f} s: {summary}.")
    if summary.bad:
        sys.exit(1)


@main.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option("--private", is_flag=True, help="Write the private specifications and prices of frameworks too.")
def export(folder: Path, *, private: bool) -> None:
    """
    Write the published registry to FOLDER, in the form that import reads.

    With --private, importing it into an empty instance gives the same API answers byte for byte. Drafts,
    accounts and history are no part of it: `muniment backup` keeps those.
    """
    use_django()
    from django.db import DatabaseError

    from muniment.registry.exporting import export_registry
    from muniment.store.migrations import migrate as bring_up_to_date

    try:
        bring_up_to_date()
        counts = export_registry(folder, private=private)
    except (DatabaseError, OSError) as error:
        raise click.ClickException(f"{error}. Files that were there before stand unchanged.") from None
    click.echo(", ".join(f"{rows:,} {kind}" for kind, rows in counts.items()) + f" written to {folder}.")


@main.group()
def user() -> None:
    """Make accounts, list them, say what they may do."""


def _ready() -> None:
    """Load Django and bring the database to this version's form."""
    use_django()
    from muniment.store.migrations import migrate as bring_up_to_date

    bring_up_to_date()


@contextmanager
def _told() -> Iterator[None]:
    """Say a refusal on the terminal, with its way out, and end with 1."""
    try:
        yield
    except Problem as problem:
        raise click.ClickException(f"{problem.message} {problem.hint}") from None


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
    _ready()
    from muniment.accounts.operations import create_account

    with _told():
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
    _ready()
    from muniment.accounts.operations import find_account
    from muniment.accounts.scopes import READ_SCOPES
    from muniment.accounts.tokens import create_token

    with _told():
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
    _ready()
    from muniment.accounts.operations import list_accounts

    for account in list_accounts(COMMAND):
        click.echo(f"{account.email}\t{account.role}\t{'active' if account.is_active else 'inactive'}")


@user.command("role")
@click.argument("email")
@click.argument("role", type=click.Choice(["owner", "reviewer", "operator"]))
def user_role(email: str, role: str) -> None:
    """Give the account at EMAIL another ROLE."""
    _ready()
    from muniment.accounts.operations import set_role

    with _told():
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
    _ready()
    from muniment.credits.operations import grant

    with _told():
        balance = grant(COMMAND, email, amount, note=note, key=key)
    click.echo(f"{email} has {balance.balance:,} credits, of which {balance.held:,} are held.")


@main.group()
def framework() -> None:
    """Write the private specifications of frameworks."""


@framework.command("author")
@click.argument("framework_id")
@click.argument("file", type=click.File("rb"))
def framework_author(framework_id: str, file: IO[bytes]) -> None:
    """
    Give the framework FRAMEWORK_ID the specification in FILE (assessment-spec/1, JSON; - reads standard input).

    Every fault is told with its path. The same document again makes no new version.
    """
    import msgspec

    try:
        document = msgspec.json.decode(file.read())
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise click.ClickException(f"{file.name} is no JSON: {error}. Write it as assessment-spec/1.") from None
    _ready()
    from muniment.registry.frameworks import author_framework

    with _told():
        found = author_framework(COMMAND, framework_id, document)
    click.echo(f"{framework_id} runs by version {found.version} of its specification.")


@main.command()
@click.option("--threads", type=click.IntRange(1, 32), default=2, show_default=True, help="Jobs at once.")
@click.option("--drain", type=click.IntRange(0, 600), default=20, show_default=True, help="Seconds to end in.")
def worker(threads: int, drain: int) -> None:
    """
    Work off the queue, beside the worker that `serve` runs inside.

    SIGTERM or Ctrl-C takes no further job, lets those that run reach their next checkpoint, and hands
    the rest to other workers.
    """
    import signal
    import threading

    use_django()
    from muniment.jobs.worker import Worker
    from muniment.store.migrations import migrate as bring_up_to_date

    bring_up_to_date()
    stop = threading.Event()
    for each in (signal.SIGTERM, signal.SIGINT):
        signal.signal(each, lambda *_: stop.set())
    running = Worker(threads=threads).start()
    click.echo(f"Working as {running.name}.", err=True)
    stop.wait()
    if not running.stop(within_s=drain):
        click.echo("Not everything reached a checkpoint in time; others take it up after its lease.", err=True)
