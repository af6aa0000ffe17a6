"""Accounts in the operators' admin site."""

from typing import ClassVar, cast

from django.contrib import admin
from django.forms import ModelForm
from django.http import HttpRequest

from muniment.accounts import jobs_admin  # noqa: F401 - registers the page of another app's table
from muniment.accounts.models import (
    Account,
    CredentialEdition,
    DatabaseForm,
    FormerDefault,
    KeptSecret,
    KeyHolder,
    PersonalToken,
    SecretKey,
    SecurityEvent,
    SetupLink,
    SetupStep,
)
from muniment.accounts.read_only_admin import ReadOnly
from muniment.accounts.security.events import Event
from muniment.accounts.security.log import record


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

    def save_model(self, request: HttpRequest, obj: Account, form: "ModelForm[Account]", change: bool) -> None:  # noqa: FBT001 - Django's signature
        """Save an account with the events of its new role and state, in the transaction of the page."""
        before = Account.objects.select_for_update().get(pk=obj.pk)
        super().save_model(request, obj, form, change)
        actor = cast("Account", request.user).actor("web", "admin site")
        if obj.role != before.role:
            record(Event.ROLE_CHANGED, account=obj, actor=actor, detail={"was": before.role, "role": obj.role})
        if obj.is_active != before.is_active:
            record(Event.ACCOUNT_ENABLED if obj.is_active else Event.ACCOUNT_DISABLED, account=obj, actor=actor)

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


@admin.register(SecretKey)
class SecretKeyAdmin(ReadOnly):
    """Secret keys, by their fingerprints."""

    list_display = ("fingerprint", "state", "since")
    search_fields = ("fingerprint",)


@admin.register(DatabaseForm)
class DatabaseFormAdmin(ReadOnly):
    """The oldest version that may open the database."""

    list_display = ("form", "version")
    search_fields = ("version",)


@admin.register(FormerDefault)
class FormerDefaultAdmin(ReadOnly):
    """Settings whose former default this instance keeps."""

    list_display = ("name",)
    search_fields = ("name",)


@admin.register(KeptSecret)
class KeptSecretAdmin(ReadOnly):
    """Secrets that stay when the secret key is rotated, by their names."""

    list_display = ("name",)
    search_fields = ("name",)
    exclude = ("sealed",)


@admin.register(KeyHolder)
class KeyHolderAdmin(ReadOnly):
    """Running processes, and the fingerprints of the keys that they have."""

    list_display = ("name", "fingerprints", "signs_with", "seen_at")
    search_fields = ("name", "fingerprints")


@admin.register(SetupLink)
class SetupLinkAdmin(ReadOnly):
    """The link that sets up an instance without an operator."""

    list_display = ("made_at", "expires_at", "node")
    search_fields = ("node",)
    exclude = ("digest", "opened_by")


@admin.register(SetupStep)
class SetupStepAdmin(ReadOnly):
    """The steps of the set-up that were taken or left out."""

    list_display = ("name", "is_skipped", "at")
    search_fields = ("name",)
