"""Base class of read-only tables in the operators' admin site."""

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest


class ReadOnly(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """A page that shows rows and changes none."""

    show_full_result_count = False
    list_per_page = 50

    def get_list_select_related(self, request: HttpRequest) -> list[str]:  # noqa: ARG002 - Django's signature
        """Return the foreign keys that the list shows: Django alone would read those that can be empty row by row."""
        return [each.name for each in self.opts.concrete_fields if each.is_relation and each.name in self.list_display]

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False
