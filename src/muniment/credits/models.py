"""
The ledger's tables: accounts, transfers between them, and holds; beside them what was bought for money.

Balances are kept beside the transfers that make them; `operations.prove` shows that the two agree.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models
from django.db.models import F, Q

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import Text


class LedgerAccount(models.Model):
    """
    One side of transfers: a person's account, or one of the registry's own (``issued``, ``sold``, ``revenue``).

    ``posted`` is the sum of its transfers, ``held`` that of its open holds. Both move by one conditional
    update alone; the constraint is the last door before an overdraft.
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
    """Credits that moved from one account to another. Never changed, never deleted; the id is what made it once."""

    id = models.CharField(primary_key=True, max_length=128)
    debit = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="debits")
    credit = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="credits")
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
        ]

    def __str__(self) -> str:
        return f"{self.amount} by {self.id}"


class HoldState(models.TextChoices):
    """Where a hold stands; the last two are final."""

    HELD = "held"
    CAPTURED = "captured"
    RELEASED = "released"


class Hold(models.Model):
    """Credits set aside for something that is to be paid when it succeeds; the id is that of the something."""

    id = models.CharField(primary_key=True, max_length=64)
    account = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="holds")
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
    Where a purchase stands.

    Pending is paid in a way that a bank has yet to confirm. Money that comes after the purchase was given up still
    makes it paid. Refused is money that does not match what was ordered: an operator looks at it.
    """

    OPEN = "open"
    PENDING = "pending"
    PAID = "paid"
    EXPIRED = "expired"
    FAILED = "failed"
    REFUSED = "refused"


class Purchase(models.Model):
    """
    Credits ordered for money; made before the payment provider is asked for anything.

    ``refunded_minor`` and ``disputed_minor`` are what the buyer got back, ``taken_back`` the credits that went for it.
    ``asked_at`` is when the provider was last asked how it stands.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    account = models.ForeignKey(LedgerAccount, models.PROTECT, related_name="purchases")
    credits = models.BigIntegerField()
    price_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=16, choices=PurchaseState.choices, default=PurchaseState.OPEN)
    session_id = models.CharField(max_length=255, null=True, blank=True)  # noqa: DJ001 - none yet is not a session
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
        """Give the credits that belong to the money that was given back, whole credits only."""
        return self.credits * min(self.price_minor, self.refunded_minor + self.disputed_minor) // self.price_minor

    @property
    def owed(self) -> int:
        """Give the credits of returned money that were spent or held when it went; an operator decides on them."""
        return max(0, self.to_take_back - self.taken_back) if self.state == PurchaseState.PAID else 0


class Notice(models.Model):
    """An event that the payment provider told of and that did something here: told again, it does nothing."""

    id = models.CharField(primary_key=True, max_length=255)
    kind = models.CharField(max_length=64)
    purchase = models.ForeignKey(Purchase, models.PROTECT, related_name="notices")
    outcome = Text(blank=True, default="")
    at = models.DateTimeField(default=now)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["at"], name="notice_at")]

    def __str__(self) -> str:
        return f"{self.kind} {self.id}"
