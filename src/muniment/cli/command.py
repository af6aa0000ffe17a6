"""The main command and helpers shared by its subcommands."""

import importlib
import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import click

from muniment import config, private_files
from muniment.kernel.actor import COMMAND
from muniment.kernel.problems import Problem
from muniment.server.observability.logs import masked
from muniment.server.process.exit_status import REFUSED
from muniment.store.database.faults import disk_fault

if TYPE_CHECKING:
    from muniment.registry.publishing.upgrade import Upgrade

MODULES: Final = {
    **dict.fromkeys(("backup", "backups", "move", "restore"), "backup"),
    **dict.fromkeys(("credits", "user"), "accounts"),
    **dict.fromkeys(("connect-kit", "doctor", "migrate", "openapi", "republish", "scrub"), "instance"),
    **dict.fromkeys(("export", "framework", "import", "own"), "registry"),
    "audit": "audit",
    "feed": "feed",
    "keys": "keys",
    "person": "people",
    "serve": "serving",
    "worker": "worker",
}
"""The module of each command. It is imported when the command is used: `serve` must not wait for the others."""


class Commands(click.Group):
    """The main group. It loads the module of a command on first use, and its errors begin with ``error:``."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        return sorted(MODULES)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name in MODULES:
            importlib.import_module(f"muniment.cli.{MODULES[cmd_name]}")
        return super().get_command(ctx, cmd_name)

    def all(self) -> dict[str, click.Command]:
        """Return every command by name, for the reference."""
        for module in sorted(set(MODULES.values())):
            importlib.import_module(f"muniment.cli.{module}")
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
        except Exception as error:
            fault = disk_fault(error)
            if not fault:
                raise
            click.echo(f"error: {fault}: {masked(str(error)).strip()}; what was not confirmed is not done", err=True)
            sys.exit(1)
        sys.exit(code)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(package_name="muniment")
def main() -> None:
    """Muniment: a registry in a box, for people and for agents."""
    private_files.begin()
    try:
        config.current()
    except config.ConfigError as error:
        raise click.ClickException(str(error)) from None


def use_django() -> None:
    """Load Django with this process's settings. Commands without a database skip it."""
    private_files.tighten(config.current().data)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "muniment.settings")
    import django

    django.setup()


def migrated() -> "Upgrade":
    """Load Django, and bring the database and the published documents to this version."""
    use_django()
    with refusals():
        return _upgraded()


class Refused(click.ClickException):
    """This version, or this node, must not use the database."""

    exit_code = REFUSED


@contextmanager
def refusals() -> Iterator[None]:
    """Turn the refusal of a database of a newer version, or with another secret key, into an error message."""
    from muniment.accounts.keys.keyring import WrongKey
    from muniment.store.database.form import NewerDatabase
    from muniment.store.sqlite.lost import LostDatabase, require_present

    settings = config.current()
    try:
        if not settings.on_postgresql:
            require_present(settings.database_file)
        yield
    except (LostDatabase, NewerDatabase, WrongKey) as error:
        raise Refused(str(error)) from None


def _upgraded() -> "Upgrade":
    from django.db import DatabaseError

    from muniment.registry.publishing.upgrade import bring_up_to_date

    try:
        return bring_up_to_date()
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
