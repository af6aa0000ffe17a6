"""Read-only admin pages of the ledger and of purchases; `operations.grant` grants credits."""

from typing import ClassVar

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest

from muniment.credits.models import Hold, LedgerAccount, Notice, Purchase, Transfer


class _ReadOnlyAdmin(admin.ModelAdmin):  # type: ignore[type-arg]  # generic in the stubs alone
    """Let operators look, and refuse every change: operations write the ledger."""

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:  # noqa: ARG002 - Django's signature
        return False


@admin.register(LedgerAccount)
class LedgerAccountAdmin(_ReadOnlyAdmin):
    """Balances."""

    list_display = ("name", "account", "posted", "held")
    search_fields = ("name", "account__email")
    ordering = ("name",)


@admin.register(Transfer)
class TransferAdmin(_ReadOnlyAdmin):
    """Transfers."""

    list_display = ("id", "debit", "credit", "amount", "kind", "at")
    list_filter = ("kind",)
    search_fields = ("id", "debit__account__email", "credit__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Hold)
class HoldAdmin(_ReadOnlyAdmin):
    """Holds."""

    list_display = ("id", "account", "amount", "state", "at", "settled_at")
    list_filter = ("state",)
    search_fields = ("id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Purchase)
class PurchaseAdmin(_ReadOnlyAdmin):
    """Purchases and refunds."""

    list_display = (
        *("id", "account", "credits", "price_minor", "currency", "state"),
        *("refunded_minor", "disputed_minor", "taken_back", "owed", "note", "at"),
    )
    list_filter = ("state",)
    search_fields = ("id", "session_id", "payment_id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Notice)
class NoticeAdmin(_ReadOnlyAdmin):
    """Processed events of the payment provider."""

    list_display = ("id", "kind", "purchase", "outcome", "at")
    list_filter = ("kind",)
    search_fields = ("id", "purchase__id")
    ordering: ClassVar = ("-at",)
