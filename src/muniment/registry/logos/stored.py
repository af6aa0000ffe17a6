"""
Fetch the logos that published listings name by URL, and remove those that are no longer named.

A logo is fetched once. An attempt that failed for a passing reason is repeated after an hour, with longer pauses from
then on; one that failed for a lasting reason after 30 days. A listing that names another address is asked for again.
A periodic job fetches logos where the instance says so, and removes them everywhere.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from django.db import transaction
from django.db.models import F, Q, QuerySet

from muniment import config
from muniment.jobs import queue
from muniment.jobs.handlers import Canceled, HandedBack, Handler, LeaseLost, register
from muniment.jobs.queue import JobRun
from muniment.kernel.ids import now
from muniment.registry.company import pictures
from muniment.registry.logos.fetching import Fetched, fetch_all
from muniment.registry.models import Company, FetchedLogo, Picture, State
from muniment.registry.publishing.publisher import AffectedRows, publish
from muniment.registry_toml import applied

KIND: Final = "registry.logos_due"
EVERY_S: Final = 300


FIRST_RETRY: Final = timedelta(hours=1)
LONGEST_RETRY: Final = timedelta(days=30)
RUN_S: Final = 40.0
"""Seconds during which a run begins requests; the rest waits for the next run."""
PER_RUN: Final = 2_000
PUBLISHED_AT_ONCE: Final = 25


class LogoRun(NamedTuple):
    """
    The result of a run.

    Args:
        fetched: listings that have a logo now.
        failed: listings whose address gave none.
        left: listings that are still due.
    """

    fetched: int
    failed: int
    left: int


def due() -> QuerySet[Company]:
    """Return the published listings whose logo is to be fetched."""
    named = Company.objects.filter(state=State.PUBLISHED, icon__startswith="http")
    never = Q(fetched_logo__isnull=True) | ~Q(fetched_logo__source=F("icon"))
    again = Q(fetched_logo__digest="", fetched_logo__retry_at__lte=now())
    return named.filter(never | again)


def fetch_due(
    *,
    within_s: float = RUN_S,
    stop: Callable[[], bool] = lambda: False,
    tell: Callable[[Fetched, int], object] = lambda _fetched, _listings: None,
) -> LogoRun:
    """
    Fetch the logos that are due, for *within_s* seconds.

    Args:
        stop: no request begins once it returns true.
        tell: called with what came of an address, and the number of listings that name it.
    """
    remove_unused()
    waiting = due().order_by("pk").values_list("icon", flat=True)
    arrived = fetch_all(waiting[:PER_RUN], within_s=within_s, stop=stop)
    done = failed = 0
    for some in _batches(arrived):
        for fetched, listings in store(some):
            tell(fetched, listings)
            if fetched.drawn:
                done += listings
            else:
                failed += listings
    return LogoRun(done, failed, due().count())


def _batches(arrived: Iterator[Fetched]) -> Iterator[list[Fetched]]:
    while some := list(islice(arrived, PUBLISHED_AT_ONCE)):
        yield some


def store(logos: Iterable[Fetched]) -> list[tuple[Fetched, int]]:
    """Store and publish *logos*, for every listing that names the address of one; return their numbers."""
    logos_by_address = {fetched.address: fetched for fetched in logos}
    with transaction.atomic():
        named = (
            Company.objects.select_for_update()
            .filter(state=State.PUBLISHED, icon__in=list(logos_by_address))
            .order_by("pk")
        )
        listings: dict[str, list[int]] = defaultdict(list)
        for pk, icon in named.values_list("pk", "icon"):
            listings[icon].append(pk)
        changed: list[int] = []
        for address, keys in listings.items():
            changed += _record(logos_by_address[address], keys)
        if changed:
            publish(AffectedRows().company_with_dependents(*sorted(changed)))
    return [(fetched, len(listings[address])) for address, fetched in logos_by_address.items()]


def _record(fetched: Fetched, companies: list[int]) -> list[int]:
    """Record what came of an address for *companies*, and return those that show another logo now."""
    moment = now()
    before = FetchedLogo.objects.in_bulk(companies, field_name="company_id")
    digest = pictures.keep(*fetched.drawn, is_fetched=True) if fetched.drawn else ""
    rows, changed = [], []
    for pk in companies:
        former = before.get(pk)
        if former is not None and former.source != fetched.address:
            former = None  # it says nothing about this address
        failures = 0
        if not digest:
            failures = former.failures + 1 if former is not None else 1
        row = FetchedLogo(
            company_id=pk,
            source=fetched.address,
            digest=digest,
            fault=fetched.fault.reason if fetched.fault else "",
            failures=failures,
            asked_at=moment,
            retry_at=_retry_at(fetched, failures, moment),
        )
        if digest and (former is None or former.digest != digest):
            changed.append(pk)
        rows.append(row)
    FetchedLogo.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["company"],
        update_fields=["source", "digest", "fault", "failures", "asked_at", "retry_at"],
    )
    return changed


def _retry_at(fetched: Fetched, failures: int, moment: datetime) -> datetime | None:
    if fetched.fault is None:
        return None
    if fetched.fault.is_lasting:
        return moment + LONGEST_RETRY
    pause: timedelta = FIRST_RETRY * 4 ** min(failures - 1, 10)
    return moment + min(pause, LONGEST_RETRY)


def retry_failed() -> int:
    """Make the addresses that failed due now; return the number of listings."""
    return FetchedLogo.objects.filter(digest="").update(retry_at=now())


def remove_all() -> int:
    """Remove every fetched logo, and publish their listings without them; return the number of listings."""
    with transaction.atomic():
        shown = Company.objects.filter(fetched_logo__isnull=False).order_by("pk")
        keys = list(shown.exclude(fetched_logo__digest="").values_list("pk", flat=True))
        FetchedLogo.objects.all().delete()
        remove_unused()
        publish(AffectedRows().company_with_dependents(*keys))
    return len(keys)


def remove_unused() -> int:
    """Forget the logos of listings that are not published or name another address; return the pictures removed."""
    with transaction.atomic():
        unused = Q(company__published=False) | ~Q(company__icon=F("source"))
        FetchedLogo.objects.filter(unused).delete()
        fetched = Picture.objects.filter(is_fetched=True)
        kept = FetchedLogo.objects.exclude(digest="").values("digest")
        removed, _ = fetched.exclude(digest__in=kept).only("pk").delete()
    return removed


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
