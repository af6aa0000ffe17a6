"""The command that runs background jobs."""

from contextlib import ExitStack

import click

from muniment import config
from muniment.cli.command import main, migrated
from muniment.cli.ending import Ending
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

    with ExitStack() as stack:
        ending = stack.enter_context(Ending())
        if settings.otlp_url:
            from muniment.server.observability.traces import Traces

            stack.callback(Traces(settings.otlp_url).close)
        running = Worker(threads=threads).start()
        click.echo(f"Worker {running.name} started.", err=True)
        ending.wait()
        if not running.stop(within_s=drain):
            left = "Some jobs did not reach a checkpoint in time; another worker continues them after their lease."
            click.echo(left, err=True)
