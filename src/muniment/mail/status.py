"""How delivery goes: for the health check, the metrics and the operators' pages."""

from datetime import timedelta
from typing import NamedTuple

from django.db.models import Count, Min

from muniment.jobs.models import Job, State
from muniment.jobs.queue import UNFINISHED
from muniment.kernel.ids import now
from muniment.mail.outgoing import KIND


class MailStatus(NamedTuple):
    """Messages that wait, the age of the oldest one, and those that were given up within the last week."""

    waiting: int
    oldest_s: float
    failed: int


def mail_status() -> MailStatus:
    mail = Job.objects.filter(kind=KIND)
    waiting = mail.filter(state__in=UNFINISHED).aggregate(n=Count("id"), first=Min("created_at"))
    failed = mail.filter(state=State.FAILED, finished_at__gt=now() - timedelta(days=7)).count()
    oldest_s = (now() - waiting["first"]).total_seconds() if waiting["first"] else 0.0
    return MailStatus(waiting["n"], max(0.0, oldest_s), failed)
