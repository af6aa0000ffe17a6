"""Report runs and applications in the admin: their states, not their findings."""

from typing import ClassVar

from django.contrib import admin

from muniment.accounts.read_only_admin import ReadOnly
from muniment.assessments.models import Application, ReportRun


@admin.register(ReportRun)
class ReportRunAdmin(ReadOnly):
    """Read-only report runs."""

    list_display = ("id", "company", "framework", "account", "state", "cost", "created_at", "finished_at")
    list_filter = ("state",)
    search_fields = ("id", "company__slug", "framework__slug", "account__email")
    ordering: ClassVar = ("-created_at",)
    fields = ("company", "framework", "account", "state", "cost", "error", "created_at", "started_at", "finished_at")


@admin.register(Application)
class ApplicationAdmin(ReadOnly):
    """Read-only applications."""

    list_display = ("id", "applicant", "framework", "receiver", "state", "submitted_at", "decided_at")
    list_filter = ("state",)
    search_fields = ("id", "applicant__slug", "receiver__slug", "framework__slug")
    ordering: ClassVar = ("-submitted_at",)
    fields = ("applicant", "framework", "receiver", "account", "state", "submitted_at", "decided_at")
