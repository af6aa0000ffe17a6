"""The command that serves the registry."""

import errno
import functools
import logging
import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

import click

from muniment import config, private_files
from muniment.cli.command import main, migrated, problems_as_errors, tell_unknown_settings
from muniment.cli.plugins import require_extras
from muniment.registry_toml.applied import registry_name
from muniment.server.app.startup import Refusal
from muniment.server.observability import logs
from muniment.server.process.server_process import serve as run
from muniment.server.process.sockets import bind
from muniment.server.process.supervisor import Supervisor
from muniment.server.process.worker_process import WorkerProcess

log = logging.getLogger("muniment.server")

_LOGOS = (
    "Logos that listings name by URL are not fetched; listings show monograms. To fetch each once and serve it from"
    " here, set MUNIMENT_FETCH_LOGOS=on, or run muniment logos fetch."
)
_AS_ROOT = (
    "Warning: this runs as root. A fault in it could then change the whole machine; run it as a user of its own, as the"
    " examples in deploy/ do."
)
_WAYS_OUT: Final[dict[int | None, str]] = {
    errno.EADDRINUSE: "Another process does: choose another port with --port.",
    errno.EADDRNOTAVAIL: "This machine does not have that address: check --host.",
    errno.EACCES: "Ports below 1024 are for privileged users: choose another port with --port.",
}


@main.command()
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="Address to listen on; 0.0.0.0 means all interfaces."
)
@click.option("--port", default=8000, show_default=True, type=click.IntRange(1, 65535), help="Port to listen on.")
@click.option(
    "--workers",
    default=1,
    show_default=True,
    type=click.IntRange(1, 64),
    help="Number of server processes; one per core is enough.",
)
@click.option(
    "--demo",
    is_flag=True,
    help="Serve a small fictional registry from its own data folder, muniment-demo, or from the one that is named.",
)
@click.option(
    "--mirror",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="FOLDER",
    help="Serve the copy that muniment mirror has made in FOLDER, read-only.",
)
@click.option("--first", is_flag=True, hidden=True, help="Print the set-up link, as the first process of a start.")
@click.option("--member", hidden=True, help="State inherited from the supervisor.")
def serve(
    host: str, port: int, workers: int, *, demo: bool, mirror: Path | None, first: bool, member: str | None
) -> None:
    """
    Serve the registry.

    API, tool servers and web pages share one address. No set-up is needed: the first start creates the data folder, its
    keys and the database. Reads are served within half a second; the web pages follow a few seconds later (see
    /readyz). SIGTERM or Ctrl-C finishes open requests, then stops. With several workers, a process that dies is
    replaced, and SIGHUP replaces all of them one by one without refusing requests.
    """
    settings = _chosen(demo=demo, mirror=mirror)
    require_extras(settings)
    if member is not None:
        _serve_among(member, _with_base_url(settings, host, port), demo=demo, is_first=first)
        return
    is_new, listener = _prepared(settings, host, port)
    admin = _admin_listener(settings)
    tell_unknown_settings()
    settings = _with_base_url(settings, host, port)
    source = f", a mirror of {settings.mirrored}" if settings.mirrored else ""
    click.echo(f"{registry_name()} on {settings.base_url} (data in {settings.data}{source})", err=True)
    if os.geteuid() == 0:
        click.echo(_AS_ROOT, err=True)
    if is_new and not settings.fetch_logos and not settings.mirrored:
        click.echo(_LOGOS, err=True)
    if workers > 1:
        logs.set_up(settings.log_format, settings.log_level)
        command = ["serve", "--host", host, "--port", str(port), "--workers", str(workers)]
        if mirror is not None:
            command += ["--mirror", str(mirror)]
        first_option = "--demo" if demo else "--first"
        first_command = [*command, first_option]
        supervisor = Supervisor(listener, workers, command=command, first_command=first_command, admin=admin)
        sys.exit(supervisor.run())
    _serve_alone(settings, listener, admin, demo=demo)


def _serve_alone(settings: config.Config, listener: socket.socket, admin: socket.socket | None, *, demo: bool) -> None:
    load: Callable[[], None] | None = None
    if demo:
        load = _load_demo
    elif not settings.mirrored:
        load = tell_setup_link
    failure = run(settings, listener, admin=admin, load=load)
    if failure is not None:
        click.echo(f"error: {failure.reason}", err=True)
        sys.exit(failure.status)


def _prepared(settings: config.Config, host: str, port: int) -> tuple[bool, socket.socket]:
    """Create the data folder and listen; return whether there is no database yet, and the socket."""
    try:
        is_new = not settings.on_postgresql and not settings.database_file.exists()
        settings.data.mkdir(mode=0o700, parents=True, exist_ok=True)
        private_files.tighten(settings.data)
    except OSError as error:
        says = f"The data folder {settings.data} cannot be used: {error.strerror}."
        raise click.ClickException(
            f"{says} Name a folder that this user may write: muniment --data FOLDER serve."
        ) from None
    try:
        return is_new, bind(host, port)
    except OSError as error:
        reason = str(error.strerror).partition(" (while")[0]
        says = f"Cannot listen on {host}:{port}: {reason}."
        raise click.ClickException(f"{says} {_WAYS_OUT.get(error.errno, 'Check --host.')}") from None


def _chosen(*, demo: bool, mirror: Path | None) -> config.Config:
    """Return the settings of what is served: the instance, the demo, or a mirror."""
    if mirror is None:
        return _apart() if demo else config.current()
    if demo:
        raise click.UsageError("--demo and --mirror exclude each other.")
    settings = config.use_data(mirror)
    if not settings.mirrored:
        message = f"{mirror} holds no mirror. Make one with muniment mirror URL {mirror}"
        raise click.ClickException(message)
    return settings


def _apart() -> config.Config:
    """Return the settings of the demo: in a folder of its own, unless the operator named one, or a database."""
    settings = config.current()
    if settings.is_named:
        return settings
    for name in ("storage_url", "backups"):
        if getattr(settings, name) not in {"", "off"}:
            message = f"The demo must not use MUNIMENT_{name.upper()} of a real instance. Unset it"
            raise click.ClickException(f"{message}, or name a data folder for the demo with --data FOLDER.")
    demo = config.use_data(config.DEMO_DATA)
    if settings.database_file.exists():
        click.echo(
            f"The demo has its own folder, {config.DEMO_DATA}. The instance in {settings.data} is left alone: open it"
            f" with muniment serve or, if the demo was loaded into it before, with muniment serve --demo --data"
            f" {settings.data}.",
            err=True,
        )
    return demo


def _admin_listener(settings: config.Config) -> socket.socket | None:
    address = settings.admin_address
    if address is None:
        return None
    try:
        return bind(*address)
    except OSError as error:
        message = f"Cannot listen on {settings.admin_listen}: {error}; change MUNIMENT_ADMIN_LISTEN."
        raise click.ClickException(message) from None


def _with_base_url(settings: config.Config, host: str, port: int) -> config.Config:
    """Fill in the base URL if it is not set."""
    if settings.base_url:
        return settings
    shown = host
    if host in {"0.0.0.0", "::"}:  # noqa: S104 - displayed, not bound
        shown = "localhost"
    elif ":" in host:  # an IPv6 address, which URLs have in brackets
        shown = f"[{host}]"
    return config.use(config.Config(base_url=f"http://{shown}:{port}"))


def _serve_among(inherited: str, settings: config.Config, *, demo: bool, is_first: bool) -> None:
    member = WorkerProcess.inherited(inherited)
    load: Callable[[], None] | None = None
    if demo:
        load = functools.partial(_load_demo, tells=member.number == 1)
    elif is_first and member.number == 1 and not settings.mirrored:
        load = tell_setup_link
    failure = run(settings, member.listener, admin=member.admin, load=load, member=member)
    if failure:
        log.error("%s", failure.reason)
        sys.exit(failure.status)


def _load_demo(*, tells: bool = True) -> None:
    """Load the demo registry, or wait for another process that does; with *tells*, renew and print the sign-ins."""
    from muniment.assessments.demo_examples import request_examples
    from muniment.registry.demo_accounts import RealRegistry, load_demo

    try:
        summary, sign_ins = load_demo(renews=tells)
    except RealRegistry as error:
        raise Refusal(str(error)) from None
    if summary is not None:
        request_examples()
        click.echo(f"Demo registry loaded: {summary}.", err=True)
    for sign_in in sign_ins:
        click.echo(f"Sign in as {sign_in.role}: {sign_in.email}  {sign_in.password}", err=True)
        if sign_in.token:
            click.echo(f"Token of the {sign_in.role} for /api/manage/mcp: {sign_in.token}", err=True)


@main.command("setup-link")
def setup_link() -> None:
    """
    Print a new link that sets up the registry in the browser, once, within 24 hours.

    Its first step creates the operator's account. The link that was printed before no longer works. Refused once there
    is an operator.
    """
    migrated()
    from muniment.accounts.first_run import make_link, serving_address
    from muniment.kernel.actor import COMMAND

    with problems_as_errors():
        path = make_link(COMMAND)
        address = config.current().base_url or serving_address() or _base()
    click.echo(f"{address}{path}")


def tell_setup_link() -> None:
    """Print the link at the start of a server, if there is no operator yet; without it, the server serves the same."""
    from allauth.account.models import EmailAddress
    from django.db import DatabaseError

    from muniment.accounts.first_run import offer_link, remember_address
    from muniment.registry.demo_accounts import OWNER

    try:
        # A stranger can register the address of the demo, and not verify it.
        is_demo = EmailAddress.objects.filter(email=OWNER, verified=True).exists()
        path = "" if is_demo else offer_link()
    except DatabaseError as error:
        log.warning("no set-up link was made: %s; run muniment setup-link", error)
        return
    if path:
        remember_address(_base())
        click.echo(
            f"Set up this registry in your browser, with a link that works once and for 24 hours:\n{_base()}{path}",
            err=True,
        )


def _base() -> str:
    return config.current().base_url or "http://127.0.0.1:8000"
