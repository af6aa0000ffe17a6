"""
The findings of `muniment doctor` for the operator's pages, as a job.

The check runs in a process of its own, with a time limit: it connects to the mail server and the document store, for
which no page waits. Its last result is kept with the job.
"""

import subprocess
import sys
import time
from contextlib import suppress
from datetime import datetime
from typing import Any, Final

import msgspec
from django.db import DatabaseError, transaction

from muniment.jobs.handlers import Abandoned, Handler
from muniment.jobs.models import Job, State
from muniment.jobs.queue import UNFINISHED, JobRun, enqueue
from muniment.kernel.json import JSONObject
from muniment.kernel.phrases.phrase import Phrase

KIND: Final = "instance.health_asked"
COMMAND: Final = (sys.executable, "-m", "muniment", "doctor", "--json", "--packed")
TIMEOUT_S: Final = 120
FRESH_S: Final = 3_600
"""Maximum age in seconds of a result before the overview asks for another one."""
AT_MOST_EVERY_S: Final = 60
"""Minimum seconds between checks when an operator asks for one."""


class HealthFinding(msgspec.Struct, frozen=True):
    """The result of one check, with packed texts; *mark* is OK, WARN or FAIL, *state* what an OK has found missing."""

    mark: str
    what: Any
    says: Any
    state: str = ""


class Health(msgspec.Struct, frozen=True):
    """
    The known state of the instance's health.

    Args:
        at: when the last check ended; None if there was none in the last days.
        is_running: a check waits or runs.
        error: why the last check gave no findings; empty if it did.
    """

    at: datetime | None
    findings: list[HealthFinding]
    is_running: bool
    error: str


def check_health(run: JobRun) -> JSONObject:
    """
    Run the checks, and return the findings.

    Raises:
        Abandoned: they took too long, or gave no findings.
    """
    run.check()
    try:
        done = subprocess.run(  # noqa: S603 - this program itself
            COMMAND, stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT_S, check=False
        )
        findings = msgspec.json.decode(done.stdout, type=list[HealthFinding])
    except subprocess.TimeoutExpired:
        raise Abandoned(Phrase("the checks took longer than {seconds} s", seconds=TIMEOUT_S)) from None
    except msgspec.DecodeError:
        raise Abandoned(
            Phrase("muniment doctor ended with status {status} and no findings", status=done.returncode)
        ) from None
    return {"findings": msgspec.to_builtins(findings)}


def last_health() -> Health:
    jobs = Job.objects.filter(kind=KIND)
    ended = jobs.filter(state__in=[State.SUCCEEDED, State.FAILED]).order_by("-finished_at").first()
    is_running = jobs.filter(state__in=UNFINISHED).exists()
    if ended is None:
        return Health(None, [], is_running, "")
    found = msgspec.convert((ended.result or {}).get("findings", []), list[HealthFinding])
    return Health(ended.finished_at, found, is_running, ended.error if ended.state == State.FAILED else "")


def ask_for_health(*, every_s: int = AT_MOST_EVERY_S) -> None:
    """Enqueue a check, unless one of the same interval exists; do nothing if the database accepts no changes."""
    with suppress(DatabaseError), transaction.atomic():
        enqueue(KIND, unique_key=f"{KIND}@{every_s}:{int(time.time() // every_s)}")


HANDLER: Final = Handler(kind=KIND, work=check_health, lease_s=TIMEOUT_S + 30, max_attempts=1)
