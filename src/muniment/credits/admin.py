"""The ledger and what was bought, in the operators' back office: to look at; credits are granted by an operation."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from muniment.credits.models import Hold, LedgerAccount, Notice, Purchase, Transfer


class _Seen(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Shows, and changes nothing."""

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        """Refuse: the ledger is written by operations."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Refuse: the ledger is append-only."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        """Refuse: the ledger is append-only."""
        return False


@admin.register(LedgerAccount)
class LedgerAccountAdmin(_Seen):
    """Who has what."""

    list_display = ("name", "account", "posted", "held")
    search_fields = ("name", "account__email")
    ordering = ("name",)


@admin.register(Transfer)
class TransferAdmin(_Seen):
    """What moved."""

    list_display = ("id", "debit", "credit", "amount", "kind", "at")
    list_filter = ("kind",)
    search_fields = ("id", "debit__account__email", "credit__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Hold)
class HoldAdmin(_Seen):
    """What is set aside."""

    list_display = ("id", "account", "amount", "state", "at", "settled_at")
    list_filter = ("state",)
    search_fields = ("id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Purchase)
class PurchaseAdmin(_Seen):
    """What was bought, and what of it was given back."""

    list_display = (
        *("id", "account", "credits", "price_minor", "currency", "state"),
        *("refunded_minor", "disputed_minor", "taken_back", "owed", "note", "at"),
    )
    list_filter = ("state",)
    search_fields = ("id", "session_id", "payment_id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Notice)
class NoticeAdmin(_Seen):
    """What the payment provider told."""

    list_display = ("id", "kind", "purchase", "outcome", "at")
    list_filter = ("kind",)
    search_fields = ("id", "purchase__id")
    ordering: ClassVar = ("-at",)
