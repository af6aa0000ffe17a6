"""Accounts in the operators' back office."""

from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest

from muniment.accounts.models import Account


@admin.register(Account)
class AccountAdmin(admin.ModelAdmin):  # type: ignore[type-arg]
    """Find accounts; change what they may do."""

    list_display = ("email", "name", "role", "is_active", "joined_at", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    date_hierarchy = "joined_at"
    fields = ("email", "name", "role", "is_active", "joined_at", "last_login")
    readonly_fields: ClassVar = ("email", "joined_at", "last_login")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """Refuse: people sign up, or the command makes them."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Account | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Refuse: history names accounts; an account is made inactive instead."""
        return False
