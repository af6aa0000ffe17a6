"""
Announce publications to plugins, each in jobs of its own: enqueued by the transaction that publishes, run after it.

A plugin that fails or is slow delays its own jobs only: they have a lane of their own, and one at a time runs for each
plugin.
"""

import logging
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

from muniment.jobs import queue
from muniment.jobs.handlers import Abandoned, Handler
from muniment.jobs.queue import JobRun
from muniment.kernel.phrases.phrase import Phrase
from muniment.plugins.loading import installed
from muniment.plugins.values import Publication

KIND: Final = "registry.published"
LANE: Final = "plugins"
IN_A_JOB: Final = 500
"""Publications of one job: an import has thousands."""
log = logging.getLogger(__name__)


def announce(entries: Iterable[tuple[str, str, str, int]]) -> None:
    """Enqueue what plugins are told: kind, slug, change and edition of each document. Call it in the transaction."""
    calls = installed().calls("published")
    if not calls:
        return
    for chunk in _chunks(entries):
        for call in calls:
            queue.enqueue(KIND, {"plugin": call.plugin, "publications": chunk}, group=call.plugin)


def _chunks(entries: Iterable[tuple[str, str, str, int]]) -> Iterator[list[list[Any]]]:
    rows = iter(entries)
    while chunk := [list(row) for row in islice(rows, IN_A_JOB)]:
        yield chunk


def tell(run: JobRun) -> dict[str, int]:
    """
    Call the plugin for each publication that it has not heard of; after a failure, again from that one on.

    Raises:
        Abandoned: the plugin is not installed any more, or has no such hook.
        RuntimeError: the plugin cannot be loaded.
    """
    name, rows = run.payload["plugin"], run.payload["publications"]
    plugins = installed()
    call = next((each for each in plugins.calls("published") if each.plugin == name), None)
    if call is None:
        if failed := next((each for each in plugins.failed if each.name == name), None):
            raise RuntimeError(Phrase("the plugin {name} cannot be loaded: {fault}", name=name, fault=failed.fault))
        raise Abandoned(Phrase("the plugin {name} is not installed, or does not hear of publications", name=name))
    heard = len(run.kept("told:"))
    for number, (kind, slug, change, edition) in enumerate(rows[heard:], heard):
        run.check()
        call(publication=Publication(kind=kind, id=slug, change=change, edition=edition))
        run.checkpoint(f"told:{number}", edition, done=number + 1, total=len(rows))
    return {"publications": len(rows)}


HANDLER: Final = Handler(
    kind=KIND, work=tell, lease_s=60, max_attempts=10, max_kills=5, back_off_s=5, lane=LANE, per_group=1
)  # ten attempts take 43 minutes: a receiver that is away for longer misses them, and the job shows it
