"""The tables of assessments: report runs, reports and applications."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import Q

from muniment.assessments.report_views import disclosed
from muniment.kernel.ids import new_id, now
from muniment.kernel.json import JSONObject
from muniment.registry.fields import JSONText, PhraseJSON, Text
from muniment.registry.models import Company, Framework, FrameworkSpecification


class RunState(models.TextChoices):
    """The state of a run (decisions, section 5, report runs)."""

    CREATED = "created"
    QUEUED = "queued"
    RUNNING = "running"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CANCELED = "canceled"
    EXPIRED = "expired"


ACTIVE = (RunState.QUEUED, RunState.RUNNING)


class ReportRun(models.Model):
    """
    A run of a framework against a company; its job and its credit hold have the same id.

    ``specification`` is the version that was current when the run started. ``criteria`` is their number, stored so that
    polling does not read the specification.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    company = models.ForeignKey(Company, models.PROTECT, related_name="report_runs", db_index=False)
    framework = models.ForeignKey(Framework, models.PROTECT, related_name="report_runs")
    specification = models.ForeignKey(FrameworkSpecification, models.PROTECT, related_name="+")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="report_runs", db_index=False)
    via = models.CharField(max_length=16)
    document_ids = JSONText(default=list)
    criteria = models.PositiveIntegerField(db_default=0)
    cost = models.PositiveIntegerField()
    state = models.CharField(max_length=16, choices=RunState.choices, default=RunState.CREATED)
    idempotency_key = models.CharField(max_length=100, null=True, blank=True)  # noqa: DJ001 - a unique column needs NULL for no key
    error = Text(blank=True, default="")
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "idempotency_key"], name="report_run_once"),
            models.UniqueConstraint(
                fields=["company", "framework"],
                condition=Q(state__in=["queued", "running"]),
                name="report_run_one_active",
            ),
            models.CheckConstraint(condition=Q(state__in=RunState.values), name="report_run_state_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["company", "created_at", "id", "state", "expires_at"], name="report_run_listed"),
            models.Index(fields=["account", "created_at"], name="report_run_account"),
            models.Index(fields=["company", "framework", "state", "finished_at", "id"], name="report_run_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.framework} of {self.company}"


class Report(models.Model):
    """The result of a run. The document never changes; :attr:`shown` is what may leave the feature."""

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    run = models.OneToOneField(ReportRun, models.PROTECT, related_name="report")
    document = PhraseJSON()
    created_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"report {self.id}"

    @property
    def shown(self) -> JSONObject:
        """Return the document without what the author of its framework keeps private."""
        return disclosed(self.document)


class ShareLink(models.Model):
    """A link with which anyone can read a report: its token as a digest, and sealed for the report's owners."""

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    report = models.ForeignKey(Report, models.CASCADE, related_name="links")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    name = Text(blank=True, default="")
    digest = models.CharField(max_length=64)
    sealed = Text()
    created_at = models.DateTimeField(default=now)
    opened_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="share_link_digest_unique")]

    def __str__(self) -> str:
        return f"link {self.id} to report {self.report_id}"


class Application(models.Model):
    """A report submitted to a program; ``receiver`` is the company that ran the program then (decision 15)."""

    class State(models.TextChoices):
        """The state of an application. All but the first are final."""

        SUBMITTED = "submitted"
        WITHDRAWN = "withdrawn"
        ACCEPTED = "accepted"
        DECLINED = "declined"

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    report = models.ForeignKey(Report, models.PROTECT, related_name="applications")
    framework = models.ForeignKey(Framework, models.PROTECT, related_name="applications")
    applicant = models.ForeignKey(Company, models.PROTECT, related_name="applications", db_index=False)
    receiver = models.ForeignKey(Company, models.PROTECT, related_name="received_applications", db_index=False)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    state = models.CharField(max_length=16, choices=State.choices, default=State.SUBMITTED)
    note = Text(blank=True, default="")
    submitted_at = models.DateTimeField(default=now)
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["applicant", "framework"], condition=Q(state="submitted"), name="application_one_open"
            ),
            models.UniqueConstraint(fields=["report"], condition=~Q(state="withdrawn"), name="application_report_once"),
            models.CheckConstraint(
                condition=Q(state__in=["submitted", "withdrawn", "accepted", "declined"]),
                name="application_state_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["receiver", "submitted_at"], name="application_received"),
            models.Index(fields=["applicant", "submitted_at"], name="application_sent"),
        ]

    def __str__(self) -> str:
        return f"{self.applicant} to {self.framework}"
