"""Many at once: 24 start and execute 8 keys with credit for 5, again and again, while some cancel and some fail."""

import random
import threading
from datetime import timedelta

import pytest
from django.db import connection

from make.registry import owner
from make.reports import company, do_jobs, framework
from muniment.assessments import operations as runs
from muniment.assessments.models import Report, ReportRun
from muniment.credits import operations as ledger
from muniment.jobs import handlers, queue
from muniment.jobs.models import Job
from muniment.kernel.ids import now
from muniment.kernel.problems import Conflict

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.proof, pytest.mark.timeout(600)]
ROUNDS = 8


@pytest.fixture(autouse=True)
def _credit_for_five(settings):
    settings.STARTING_CREDITS, settings.RUN_COST = 50, 10


def books(me):
    seen = ledger.get_balance(me)
    assert ledger.check_ledger() == []
    return seen.balance, seen.held


def at_once(works):
    """Do all at the same moment, each on a thread of its own; give what each gave or raised."""
    barrier, found = threading.Barrier(len(works)), [None] * len(works)

    def go(number, do):
        try:
            barrier.wait(60)
            found[number] = do()
        except Exception as error:  # noqa: BLE001 - what was raised is what is looked at
            found[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=go, args=each) for each in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    return found


def start_and_execute(me, slug, of, key):
    run_id = runs.start_run(me, slug, of, idempotency_key=key).run.row.pk
    return runs.execute_run(me, run_id).row.pk


@pytest.mark.parametrize("seed", range(ROUNDS))
def test_exactly_five_of_eight_run_however_the_24_fall(seed):
    me, of = owner(), framework()
    slugs = [company(me) for _ in range(8)]
    order = [number % 8 for number in range(24)]
    random.Random(seed).shuffle(order)
    found = at_once([lambda n=n: start_and_execute(me, slugs[n], of, f"key{n}") for n in order])
    assert {type(each) for each in found} <= {str, Conflict}, found
    refused = [each for each in found if isinstance(each, Conflict)]
    assert len({each for each in found if isinstance(each, str)}) == 5
    assert [each.message for each in refused if "costs 10 credits" not in each.message] == []
    assert (ReportRun.objects.count(), Job.objects.filter(kind=runs.KIND).count(), books(me)) == (8, 5, (50, 50))

    queued = list(ReportRun.objects.filter(state="queued").order_by("pk"))
    at_once([lambda row=row: runs.cancel_run(me, row.pk) for row in queued[:2] * 3])
    assert books(me) == (50, 30)
    failing = queue.claim("first")
    failing.failed("ValueError: no", for_good=True)
    assert books(me) == (50, 20)

    zombie = queue.claim("second")
    Job.objects.filter(pk=zombie.id).update(run_at=now() - timedelta(seconds=1))
    heir = queue.claim("third")
    while heir.id != zombie.id:
        heir = queue.claim("third")
    ends = at_once([lambda: runs.execute(zombie), lambda: runs.execute(heir)])
    assert isinstance(ends[0], handlers.LeaseLost | handlers.Abandoned), ends
    if isinstance(ends[0], handlers.Abandoned):  # it came when all was over; the worker then changes nothing
        zombie.failed(str(ends[0]), for_good=True)
    assert ends[1] is None, ends
    assert (Report.objects.filter(run_id=zombie.id).count(), books(me)) == (1, (40, 10))
    Job.objects.filter(state="running").update(run_at=now() - timedelta(seconds=1))
    do_jobs()
    assert books(me) == (30, 0)
    states = sorted(ReportRun.objects.values_list("state", flat=True))
    assert states == ["canceled"] * 2 + ["created"] * 3 + ["failed"] + ["succeeded"] * 2

    # What came back can be spent: exactly three more.
    waiting = list(ReportRun.objects.filter(state="created").values_list("pk", flat=True))
    found = at_once([lambda run_id=run_id: runs.execute_run(me, run_id).row.pk for run_id in waiting * 4])
    assert sorted(set(found)) == sorted(waiting)
    assert books(me) == (30, 30)
    do_jobs()
    assert (Report.objects.count(), books(me)) == (5, (0, 0))
