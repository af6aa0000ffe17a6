"""The periodic job: logos are fetched where the instance says so, and removed everywhere."""

from typing import Final

from muniment import config
from muniment.jobs import queue
from muniment.jobs.handlers import Canceled, HandedBack, Handler, LeaseLost, register
from muniment.jobs.queue import JobRun
from muniment.registry.logos.operations import fetch_due, remove_unused
from muniment.registry_toml import applied

KIND: Final = "registry.logos_due"
EVERY_S: Final = 300


def are_wanted() -> bool:
    """Return whether logos are fetched: as MUNIMENT_FETCH_LOGOS says where it is set, else as the registry declares."""
    settings = config.current()
    if settings.origins["fetch_logos"] != "default":
        return settings.fetch_logos
    return applied.current().registry.fetch_logos


def run(job: JobRun) -> dict[str, int]:
    """Fetch for a while, and continue in another job if listings are left."""
    if not are_wanted():
        return {"removed": remove_unused()}
    done = fetch_due(stop=lambda: _is_stopping(job))
    if done.left and (done.fetched or done.failed):
        queue.enqueue(KIND)
    return done._asdict()


def _is_stopping(job: JobRun) -> bool:
    try:
        job.check()
    except (Canceled, HandedBack, LeaseLost):
        return True
    return False


HANDLER: Final = Handler(kind=KIND, work=run, lane="logos", lease_s=120, max_attempts=3, back_off_s=60)
register(HANDLER, every_s=EVERY_S)
