"""The parts of a listing with tables of their own."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.company import Company
from muniment.registry.models.people import Person


class Position(models.Model):
    """
    A person's position in a company. ``rank`` is the order within the company.

    Without a person the listing shows ``name`` alone: the person has not confirmed it, or has no profile.
    """

    company = models.ForeignKey(Company, models.CASCADE, related_name="positions")
    person = models.ForeignKey(Person, models.PROTECT, null=True, blank=True, related_name="positions")
    name = Text(blank=True, default="")
    rank = models.PositiveIntegerField()
    item_id = Text(blank=True, default="")
    title = Text(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="position_rank_unique")]

    def __str__(self) -> str:
        return f"{self.title} at {self.company}"


class PositionRequest(models.Model):
    """
    A request to a person to confirm the position ``item`` of a listing; undecided while the position has no person.

    Rows stay after the decision: a listing cannot ask again soon after a person declined or ended a position.
    """

    class Decision(models.TextChoices):
        """How a request ended. A position that was never asked for is ended by a row of its own."""

        CONFIRMED = "confirmed"
        DECLINED = "declined"
        ENDED = "ended"
        WITHDRAWN = "withdrawn"

    company = models.ForeignKey(Company, models.CASCADE, related_name="position_requests")
    person = models.ForeignKey(Person, models.CASCADE, related_name="position_requests")
    item = Text()
    title = Text(null=True, blank=True)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    asked_at = models.DateTimeField(default=now)
    told_at = models.DateTimeField(null=True, blank=True)
    decision = models.CharField(max_length=16, choices=Decision.choices, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["company", "item"], condition=models.Q(decision=""), name="position_request_once"
            )
        ]
        indexes: ClassVar = [models.Index(fields=["account", "asked_at"], name="position_requests_of_account")]

    def __str__(self) -> str:
        return f"{self.title} at {self.company}, asked of {self.person}"


class Proposal(models.Model):
    """A governance proposal of a company; ``document`` is its published form."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="proposals")
    rank = models.PositiveIntegerField()
    document = JSONText()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="proposal_rank_unique")]

    def __str__(self) -> str:
        return f"proposal {self.rank} of {self.company}"


class CapTableEntry(models.Model):
    """A token holder of a company; ``document`` is its published form."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="cap_table")
    rank = models.PositiveIntegerField()
    document = JSONText()

    class Meta:
        verbose_name_plural = "cap table entries"
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="cap_table_rank_unique")]

    def __str__(self) -> str:
        return f"holder {self.rank} of {self.company}"


class FundingRound(models.Model):
    """A funding round, open from its opening date up to its closing date. Unless *public*, only its dates are shown."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="funding_rounds")
    rank = models.PositiveIntegerField()
    item_id = Text(blank=True, default="")
    name = Text(blank=True, default="")
    target_minor = models.BigIntegerField(null=True, blank=True)
    opened_on = models.DateField(null=True, blank=True)
    closed_on = models.DateField(null=True, blank=True)
    public = models.BooleanField(default=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["company", "rank"], name="funding_round_rank_unique"),
            models.UniqueConstraint(
                fields=["company"], condition=models.Q(closed_on__isnull=True), name="funding_round_one_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.company}"


class RemovedItem(models.Model):
    """The id of a row that an owner removed: no other row of the listing gets it."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="+")
    item = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "item"], name="removed_item_once")]

    def __str__(self) -> str:
        return f"{self.item} of {self.company}"
