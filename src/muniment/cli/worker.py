"""The command that runs background jobs."""

import signal
import socket
from contextlib import ExitStack

import click

from muniment import config
from muniment.cli.command import main, migrated
from muniment.cli.plugins import require_extras
from muniment.server.observability import logs
from muniment.server.process.out_of_memory import end_without_memory


@main.command()
@click.option("--threads", type=click.IntRange(1, 32), default=2, show_default=True, help="Number of jobs at once.")
@click.option(
    "--drain",
    type=click.IntRange(0, 600),
    default=20,
    show_default=True,
    help="Seconds to wait for running jobs on shutdown.",
)
def worker(threads: int, drain: int) -> None:
    """
    Run background jobs.

    A worker runs in addition to the one inside `serve`. On SIGTERM or Ctrl-C it claims no more jobs, lets running ones
    reach their next checkpoint, and returns the rest to the queue.
    """
    settings = config.current()
    require_extras(settings)
    logs.set_up(settings.log_format, settings.log_level)
    end_without_memory()
    migrated()
    from muniment.jobs.worker import Worker

    if settings.on_postgresql:
        from muniment.jobs import handlers
        from muniment.searches import digests

        handlers.unregister(digests.KIND)  # it reads the copy of the published documents, which servers have

    # A handler that sets an Event deadlocks, or is heard too late, if the signal comes as the wait for it begins.
    heard, wake = socket.socketpair()
    wake.setblocking(False)  # noqa: FBT003 - the socket's own signature
    with ExitStack() as stack:
        for end in (heard, wake):
            stack.enter_context(end)
        stack.callback(signal.set_wakeup_fd, signal.set_wakeup_fd(wake.fileno()))
        for each in (signal.SIGTERM, signal.SIGINT):
            signal.signal(each, lambda *_: None)
        if settings.otlp_url:
            from muniment.server.observability.traces import Traces

            stack.callback(Traces(settings.otlp_url).close)
        running = Worker(threads=threads).start()
        click.echo(f"Worker {running.name} started.", err=True)
        heard.recv(1)
        if not running.stop(within_s=drain):
            left = "Some jobs did not reach a checkpoint in time; another worker continues them after their lease."
            click.echo(left, err=True)
