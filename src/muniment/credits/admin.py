"""Read-only admin pages of the ledger and of purchases; `operations.grant` grants credits."""

from typing import ClassVar

from django.contrib import admin

from muniment.accounts.read_only_admin import ReadOnly
from muniment.credits.models import Hold, LedgerAccount, Notice, Purchase, Transfer


@admin.register(LedgerAccount)
class LedgerAccountAdmin(ReadOnly):
    """Balances."""

    list_display = ("name", "account", "posted", "held")
    search_fields = ("name", "account__email")
    ordering = ("name",)


@admin.register(Transfer)
class TransferAdmin(ReadOnly):
    """Transfers."""

    list_display = ("id", "debit", "credit", "amount", "kind", "at")
    list_filter = ("kind",)
    search_fields = ("id", "debit__account__email", "credit__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Hold)
class HoldAdmin(ReadOnly):
    """Holds."""

    list_display = ("id", "account", "amount", "state", "at", "settled_at")
    list_filter = ("state",)
    search_fields = ("id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Purchase)
class PurchaseAdmin(ReadOnly):
    """Purchases and refunds."""

    list_display = (
        *("id", "account", "credits", "price_minor", "currency", "state"),
        *("refunded_minor", "disputed_minor", "taken_back", "owed", "note", "at"),
    )
    list_filter = ("state",)
    search_fields = ("id", "session_id", "payment_id", "account__account__email")
    ordering: ClassVar = ("-at",)


@admin.register(Notice)
class NoticeAdmin(ReadOnly):
    """Processed events of the payment provider."""

    list_display = ("id", "kind", "purchase", "outcome", "at")
    list_filter = ("kind",)
    search_fields = ("id", "purchase__id")
    ordering: ClassVar = ("-at",)
