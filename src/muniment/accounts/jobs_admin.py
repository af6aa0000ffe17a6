"""Jobs in the operators' admin site: who gets which message and how often it was tried, never what it says."""

from collections.abc import Callable
from typing import ClassVar, cast

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from muniment.accounts.models import Account
from muniment.accounts.read_only_admin import ReadOnly
from muniment.accounts.waiting_jobs import drop_job, retry_job
from muniment.jobs.models import Job
from muniment.jobs.queue import UNFINISHED
from muniment.kernel.actor import Actor
from muniment.kernel.problems import Problem
from muniment.mail.outgoing import KIND


@admin.register(Job)
class JobAdmin(ReadOnly):
    """Jobs, without their payload, result and errors."""

    list_display = ("id", "kind", "message", "recipient", "state", "tries", "next_try", "created_at", "finished_at")
    list_filter = ("state", "kind")
    search_fields = ("id", "kind")
    ordering: ClassVar = ("-created_at",)
    fields = list_display
    readonly_fields = list_display
    actions = ("try_now", "drop")

    @admin.display(description="message")
    def message(self, job: Job) -> str:
        return str(job.payload.get("kind", "")) if job.kind == KIND else ""

    @admin.display(description="recipient")
    def recipient(self, job: Job) -> str:
        return ", ".join(job.payload.get("to", ())) if job.kind == KIND else ""

    @admin.display(description="tries")
    def tries(self, job: Job) -> int:
        return job.attempt

    @admin.display(description="next try")
    def next_try(self, job: Job) -> str:
        return f"{job.run_at:%Y-%m-%d %H:%M:%S} UTC" if job.state in UNFINISHED else ""

    @admin.action(description="Try again now")
    def try_now(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        self._each(request, chosen, retry_job)

    @admin.action(description="Drop message")
    def drop(self, request: HttpRequest, chosen: QuerySet[Job]) -> None:
        self._each(request, chosen, drop_job)

    def _each(self, request: HttpRequest, chosen: QuerySet[Job], operation: Callable[[Actor, str], None]) -> None:
        actor = cast("Account", request.user).actor("web", "admin site")
        done = 0
        for key in chosen.values_list("pk", flat=True):
            try:
                operation(actor, key)
            except Problem as problem:
                self.message_user(request, f"{key}: {problem} {problem.hint}", messages.WARNING)
            else:
                done += 1
        self.message_user(request, f"Done for {done} of the chosen jobs.")
