"""The tables of the ledger and of purchases; `operations.check_ledger` checks balances against their transfers."""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import Text


class LedgerAccount(models.Model):
    """
    One side of a transfer: a user's account, or a system account (``issued``, ``sold``, ``revenue``).

    ``posted`` is the sum of the account's transfers and ``held`` the sum of its open holds. Only conditional updates
    change them; the check constraint is the last protection against an overdraft.
    """

    name = models.CharField(max_length=40)
    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.PROTECT, null=True, blank=True, related_name="ledger_account"
    )
    posted = models.BigIntegerField(default=0)
    held = models.BigIntegerField(default=0)
    may_go_negative = models.BooleanField(default=False)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["name"], name="ledger_account_name"),
            models.CheckConstraint(condition=Q(held__gte=0), name="ledger_held_not_negative"),
            models.CheckConstraint(
                condition=Q(may_go_negative=True) | Q(posted__gte=F("held")), name="ledger_never_overdrawn"
            ),
        ]

    def __str__(self) -> str:
        return self.name


class Transfer(models.Model):
    """Credits moved from one account to another. Rows are never changed or deleted; the id prevents duplicates."""

    id = models.CharField(primary_key=True, max_length=128)
    debit = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="debits", db_index=False)
    credit = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="credits", db_index=False)
    amount = models.BigIntegerField()
    kind = models.CharField(max_length=16)
    reference = models.CharField(max_length=128, blank=True, default="")
    note = Text(blank=True, default="")
    at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gt=0), name="transfer_moves_something"),
            models.CheckConstraint(condition=~Q(debit=F("credit")), name="transfer_has_two_sides"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["debit", "at"], name="transfer_debit"),
            models.Index(fields=["credit", "at"], name="transfer_credit"),
            models.Index(fields=["at", "id"], name="transfer_listed"),
        ]

    def __str__(self) -> str:
        return f"{self.amount} by {self.id}"


class HoldState(models.TextChoices):
    """The state of a hold; the last two are final."""

    HELD = "held"
    CAPTURED = "captured"
    RELEASED = "released"


class Hold(models.Model):
    """Credits reserved for something that is paid when it succeeds, such as a report run, whose id the hold has."""

    id = models.CharField(primary_key=True, max_length=64)
    account = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="holds", db_index=False)
    amount = models.BigIntegerField()
    state = models.CharField(max_length=16, choices=HoldState.choices, default=HoldState.HELD)
    note = Text(blank=True, default="")
    at = models.DateTimeField(default=now)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=Q(amount__gte=0), name="hold_not_negative"),
            models.CheckConstraint(condition=Q(state__in=HoldState.values), name="hold_state_known"),
        ]
        indexes: ClassVar = [models.Index(fields=["account", "state"], name="hold_account")]

    def __str__(self) -> str:
        return f"{self.amount} for {self.id}"


class PurchaseState(models.TextChoices):
    """
    The state of a purchase.

    Pending means paid, but not yet confirmed by a bank. Money that arrives after a purchase expired or failed still
    makes it paid. Refused means that the money does not match the order, and an operator must look at it.
    """

    OPEN = "open"
    PENDING = "pending"
    PAID = "paid"
    EXPIRED = "expired"
    FAILED = "failed"
    REFUSED = "refused"


class Purchase(models.Model):
    """
    Credits ordered for money; stored before the payment provider is called.

    ``refunded_minor`` and ``disputed_minor`` are the money that went back to the buyer, ``taken_back`` the credits
    removed for it. ``asked_at`` is the time of the last call to the provider about this purchase.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    account = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="purchases", db_index=False)
    credits = models.BigIntegerField()
    price_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=16, choices=PurchaseState.choices, default=PurchaseState.OPEN)
    session_id = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 - a unique column needs NULL for no session
    payment_id = models.CharField(max_length=255, blank=True, default="")
    refunded_minor = models.BigIntegerField(default=0)
    disputed_minor = models.BigIntegerField(default=0)
    taken_back = models.BigIntegerField(default=0)
    note = Text(blank=True, default="")
    at = models.DateTimeField(default=now)
    asked_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["session_id"], name="purchase_session"),
            models.CheckConstraint(
                condition=Q(credits__gt=0, price_minor__gt=0, taken_back__gte=0, taken_back__lte=F("credits")),
                name="purchase_amounts",
            ),
            models.CheckConstraint(condition=Q(state__in=PurchaseState.values), name="purchase_state_known"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["account", "at"], name="purchase_account"),
            models.Index(fields=["at"], condition=Q(state__in=["open", "pending"]), name="purchase_unsettled"),
            models.Index(fields=["payment_id"], name="purchase_payment"),
        ]

    def __str__(self) -> str:
        return f"{self.credits} credits by {self.id}"

    @property
    def to_take_back(self) -> int:
        """Return the whole credits that the returned money paid for."""
        return self.credits * min(self.price_minor, self.refunded_minor + self.disputed_minor) // self.price_minor

    @property
    def owed(self) -> int:
        """Return the credits of returned money that could not be taken back, for an operator to settle."""
        return max(0, self.to_take_back - self.taken_back) if self.state == PurchaseState.PAID else 0


class Notice(models.Model):
    """A processed event of the payment provider; a repeated event is ignored."""

    id = models.CharField(primary_key=True, max_length=255)
    kind = models.CharField(max_length=64)
    purchase = models.ForeignKey(Purchase, models.PROTECT, related_name="notices")
    outcome = Text(blank=True, default="")
    at = models.DateTimeField(default=now)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["at"], name="notice_at")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
