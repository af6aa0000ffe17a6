"""Tables of the queue: jobs and their finished steps."""

from typing import ClassVar

from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.store.database.phrase_text import PhraseText


class State(models.TextChoices):
    """The state of a job. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"


class Job(models.Model):
    """
    A job.

    ``run_at`` is when it may be claimed: for a queued job its start, for a running one the end of its lease, so the
    jobs of a dead worker need no sweeper. ``attempt`` is the fencing token: a worker with an older one can change
    nothing. ``excused`` counts the attempts that are no failures: handed back, or before a finished step. ``kills``
    counts those since the last finished step whose process ended without a word.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    kind = models.CharField(max_length=64)
    payload = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=State.choices, default=State.QUEUED)
    priority = models.SmallIntegerField(default=0)
    run_at = models.DateTimeField(default=now)
    attempt = models.PositiveIntegerField(default=0)
    excused = models.PositiveIntegerField(default=0)
    kills = models.PositiveIntegerField(default=0, db_default=0)
    worker = models.CharField(max_length=128, blank=True, default="")
    group = models.CharField(max_length=64, blank=True, default="")
    unique_key = models.CharField(max_length=128, null=True, blank=True)  # noqa: DJ001 - NULL, because many jobs have none
    cancel_requested = models.BooleanField(default=False)
    progress = models.JSONField(default=dict)
    result = models.JSONField(null=True)
    error = PhraseText(blank=True, default="")
    created_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["unique_key"], name="job_unique_key"),
            models.CheckConstraint(condition=models.Q(state__in=State.values), name="job_state_known"),
        ]
        indexes: ClassVar = [
            # With the kind, a claim passes the jobs of other lanes without reading them.
            models.Index(
                fields=["priority", "run_at", "kind"],
                condition=models.Q(state__in=["queued", "running"]),
                name="job_in_order",
            ),
            models.Index(fields=["run_at", "kind", "group"], condition=models.Q(state="running"), name="job_running"),
            models.Index(fields=["finished_at"], name="job_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"


class Step(models.Model):
    """A finished step of a job with its output: later attempts continue from it."""

    job = models.ForeignKey(Job, models.CASCADE, related_name="steps", db_index=False)
    name = models.CharField(max_length=200)
    attempt = models.PositiveIntegerField()
    output = models.JSONField(null=True)
    at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["job", "name"], name="step_once")]

    def __str__(self) -> str:
        return f"{self.name} of {self.job_id}"
