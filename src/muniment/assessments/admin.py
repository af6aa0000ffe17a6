"""Report runs and applications in the admin: their states, not their findings."""

from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest

from muniment.assessments.models import Application, ReportRun


@admin.register(ReportRun)
class ReportRunAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Read-only report runs."""

    list_display = ("id", "company", "framework", "account", "state", "cost", "created_at", "finished_at")
    list_filter = ("state",)
    search_fields = ("id", "company__slug", "framework__slug", "account__email")
    ordering: ClassVar = ("-created_at",)
    fields = ("company", "framework", "account", "state", "cost", "error", "created_at", "started_at", "finished_at")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: ReportRun | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False


@admin.register(Application)
class ApplicationAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Read-only applications."""

    list_display = ("id", "applicant", "framework", "receiver", "state", "submitted_at", "decided_at")
    list_filter = ("state",)
    search_fields = ("id", "applicant__slug", "receiver__slug", "framework__slug")
    ordering: ClassVar = ("-submitted_at",)
    fields = ("applicant", "framework", "receiver", "account", "state", "submitted_at", "decided_at")
    readonly_fields = fields

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Application | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False
