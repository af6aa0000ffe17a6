"""Accounts in the operators' admin site."""

from typing import ClassVar

from django.contrib import admin
from django.http import HttpRequest

from muniment.accounts.models import Account, CredentialEdition, PersonalToken, SecurityEvent
from muniment.accounts.read_only_admin import ReadOnly


@admin.register(Account)
class AccountAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs only
    """Find accounts and change their roles."""

    list_display = ("email", "name", "role", "is_active", "joined_at", "last_login")
    list_filter = ("role", "is_active")
    search_fields = ("email", "name")
    ordering = ("email",)
    date_hierarchy = "joined_at"
    fields = ("email", "name", "role", "is_active", "joined_at", "last_login")
    readonly_fields: ClassVar = ("email", "joined_at", "last_login")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Account | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Deny: ``muniment user delete`` deletes an account, and keeps the number that the history refers to."""
        return False


@admin.register(PersonalToken)
class PersonalTokenAdmin(ReadOnly):
    """Tokens, without their digests."""

    list_display = ("name", "account", "scopes", "created_at", "expires_at", "last_used_on", "revoked_at")
    list_filter = ("created_at", ("revoked_at", admin.EmptyFieldListFilter))
    search_fields = ("name", "account__email")
    exclude = ("digest",)


@admin.register(CredentialEdition)
class CredentialEditionAdmin(ReadOnly):
    """The number that increases when a credential loses access."""

    list_display = ("pk", "number")
    search_fields = ("number",)


@admin.register(SecurityEvent)
class SecurityEventAdmin(ReadOnly):
    """The security log and the audit log."""

    list_display = ("at", "event", "account", "actor", "via", "credential", "subject", "is_audited")
    list_filter = ("is_audited", "event", "via", "at")
    search_fields = ("account__email", "actor__email", "subject", "credential")
    ordering = ("-id",)
