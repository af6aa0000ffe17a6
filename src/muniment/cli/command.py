"""The main command and helpers shared by its subcommands."""

import difflib
import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import msgspec

from muniment import config, private_files
from muniment.kernel.actor import COMMAND
from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Problem
from muniment.masking import masked
from muniment.server.app.start_failure import failure_of
from muniment.server.process.exit_status import REFUSED
from muniment.store.database.faults import disk_fault
from muniment.store.sqlite.lost import note_of

if TYPE_CHECKING:
    from muniment.registry.publishing.upgrade import Upgrade

MODULES: Final = {
    **dict.fromkeys(("backup", "backups", "move", "restore"), "backup"),
    **dict.fromkeys(("credits", "user"), "accounts"),
    "setup-link": "serving",
    **dict.fromkeys(("connect-kit", "currency", "doctor", "migrate", "openapi", "republish", "scrub"), "instance"),
    **dict.fromkeys(("export", "former-name", "framework", "import", "logos", "own"), "registry"),
    "audit": "audit",
    "feed": "feed",
    "fields": "fields",
    "keys": "keys",
    "log": "log",
    "mirror": "mirror",
    "person": "people",
    "plugins": "plugins",
    "serve": "serving",
    "settings": "settings",
    "subscriptions": "subscriptions",
    "verify": "verify",
    "webhooks": "webhooks",
    "worker": "worker",
}
"""The module of each command. It is imported when the command is used: `serve` must not wait for the others."""


class Commands(click.Group):
    """The main group. It loads the module of a command on first use, and its errors begin with ``error:``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted({*MODULES, *_of_plugins()})

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MODULES:
            importlib.import_module(f"muniment.cli.{MODULES[cmd_name]}")
        found = super().get_command(ctx, cmd_name)
        if found is None:
            found = _of_plugins().get(cmd_name)
        if found is not None:
            _take_data(found)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError:
            near = difflib.get_close_matches(args[0], self.list_commands(ctx), 1)  # click knows the loaded ones alone
            if not near or args[0].startswith("-"):
                raise
            raise click.UsageError(f"No such command {args[0]!r}. Did you mean {near[0]}?", ctx) from None

    def all(self) -> dict[str, click.Command]:
        """Return every command by name, for the reference."""
        for module in sorted(set(MODULES.values())):
            importlib.import_module(f"muniment.cli.{module}")
        for command in self.commands.values():
            _take_data(command)
        return dict(sorted(self.commands.items()))

    def main(self, *args: Any, **extra: Any) -> Any:
        extra["standalone_mode"] = False
        try:
            code = super().main(*args, **extra)
        except click.ClickException as error:
            text = io.StringIO()
            error.show(text)
            click.echo(text.getvalue().replace("Error: ", "error: ", 1), nl=False, err=True)
            sys.exit(error.exit_code)
        except click.Abort:
            click.echo("error: aborted", err=True)
            sys.exit(1)
        except BrokenPipeError:
            # What reads the output has ended, such as `head`; nothing more is written, also not at Python's end.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            sys.exit(1)
        except Problem as problem:
            click.echo(f"error: {problem.message} {problem.hint}", err=True)
            sys.exit(1)
        except (config.ConfigError, ImportError, PermissionError) as error:
            click.echo(f"error: {failure_of(error).reason}", err=True)
            sys.exit(1)
        except Exception as error:
            fault = disk_fault(error)
            if not fault:
                raise
            click.echo(f"error: {fault}: {masked(str(error)).strip()}; what was not confirmed is not done", err=True)
            sys.exit(1)
        sys.exit(code)


def _of_plugins() -> dict[str, click.Command]:
    from muniment.cli.plugins import commands_of_plugins

    return commands_of_plugins(frozenset(MODULES))


def _take_data(command: click.Command) -> None:
    """Add the option --data to *command* and its subcommands."""
    if _DATA not in command.params:
        command.params.append(_DATA)
    for each in getattr(command, "commands", {}).values():
        _take_data(each)


def _read_settings(context: click.Context, _: click.Parameter, folder: Path | None) -> None:
    """Read the settings of the command, with the data folder that it names; a group leaves that to its subcommand."""
    try:
        if folder is not None:
            config.use_data(folder)
            _forget_plugins()
        elif not isinstance(context.command, click.Group):
            config.current()
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None


def _forget_plugins() -> None:
    """Let plugins be chosen again: to find a command of one, they were loaded by the settings of another folder."""
    from muniment.plugins import loading

    loading.use(None)


_DATA: Final = click.Option(
    ["--data"],
    type=click.Path(file_okay=False, path_type=Path),
    metavar="FOLDER",
    expose_value=False,
    is_eager=True,
    callback=_read_settings,
    help="Data folder of the instance.  [default: MUNIMENT_DATA, or ./muniment-data]",
)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="muniment")
def main() -> None:
    """Muniment: a registry in a box, for people and for agents."""
    private_files.begin()


_take_data(main)


def use_django(*, may_lack_instance: bool = False, may_be_mirror: bool = False, tells: bool = True) -> None:
    """
    Load Django with this process's settings. Commands without a database skip it.

    Args:
        may_lack_instance: whether the command makes an instance, or needs none.
        may_be_mirror: whether the command works on a mirror, which has no rows of its own.
        tells: whether to name variables that are no settings.
    """
    if tells:
        tell_unknown_settings()
    if not may_be_mirror:
        refuse_mirror(config.current())
    if not may_lack_instance:
        require_instance(config.current())
    private_files.tighten(config.current().data)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    import django

    django.setup()


def published_documents(kind: str) -> Iterator[JSONObject]:
    """Yield each public document of a kind (company, person, framework) in the form of the API, for plugins."""
    migrated()
    from muniment.registry.publishing.documents import all_documents

    for document in all_documents():
        if document.kind == kind:
            yield msgspec.json.decode(document.body)["data"]


def tell_unknown_settings() -> None:
    """Name each variable, and each name in the settings file, that no setting has."""
    for unknown in config.current().unknown:
        click.echo(f"Note: {unknown}", err=True)


def refuse_mirror(settings: config.Config) -> None:
    """Refuse to work on a mirror: what the command would read or change is at its origin."""
    if settings.mirrored:
        raise click.ClickException(
            f"{settings.data.absolute()} is a mirror of {settings.mirrored}, which is read-only. Run muniment mirror to"
            " bring it up to date, and muniment serve --mirror to serve it; everything else is done at its origin."
        )


def require_instance(settings: config.Config) -> None:
    """Refuse to make an instance in a folder that was not named: it may be the wrong working directory."""
    file = settings.database_file
    if settings.is_named or file.exists() or note_of(file).exists():
        return
    demo = config.DEMO_DATA / file.name
    other = f" The demo is there with --data {config.DEMO_DATA}." if demo.exists() else ""
    raise click.ClickException(
        f"There is no instance in {settings.data.absolute()}. Name its folder with --data FOLDER or MUNIMENT_DATA,"
        f" or make one here with muniment serve or muniment import.{other}"
    )


def migrated(*, may_lack_instance: bool = False) -> "Upgrade":
    """Load Django, and bring the database and the published documents to this version."""
    use_django(may_lack_instance=may_lack_instance)
    with refusals():
        return _upgraded()


class Refused(click.ClickException):
    """This version, or this node, must not use the database."""

    exit_code = REFUSED


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the refusal of a database of a newer version, with another secret key or currency, into an error message."""
    from muniment.accounts.keys.keyring import WrongKey
    from muniment.registry.currency import OtherCurrency
    from muniment.store.database.form import UnknownDatabase
    from muniment.store.sqlite.lost import LostDatabase, require_present

    settings = config.current()
    try:
        if not settings.on_postgresql:
            require_present(settings.database_file)
        yield
    except (LostDatabase, OtherCurrency, UnknownDatabase, WrongKey) as error:
        raise Refused(str(error)) from None


def _upgraded() -> "Upgrade":
    from django.db import DatabaseError

    from muniment.registry.currency import OtherCurrency
    from muniment.registry.publishing.upgrade import bring_up_to_date

    try:
        return bring_up_to_date()
    except OtherCurrency as error:
        raise Refused(str(error)) from None
    except DatabaseError as error:
        message = f"{masked(str(error)).strip()}\nNothing was changed. Run muniment doctor, then try again."
        raise click.ClickException(message) from None


def record_command(name: str, **detail: object) -> None:
    """Record in the audit log that a command ran; the operations of others record what they do."""
    from django.db import DatabaseError

    from muniment.accounts.security.events import Event
    from muniment.accounts.security.log import record

    try:
        record(Event.COMMAND_RUN, actor=COMMAND, detail={"command": name, **detail})
    except DatabaseError as error:  # the command has done its work, for example with an older database
        click.echo(f"Note: not recorded in the audit log: {masked(str(error)).strip()}", err=True)


@contextmanager
def problems_as_errors() -> Iterator[None]:
    """Turn a :class:`Problem` into an error message with its hint and exit status 1."""
    try:
        yield
    except Problem as problem:
        raise click.ClickException(f"{problem.message} {problem.hint}") from None
