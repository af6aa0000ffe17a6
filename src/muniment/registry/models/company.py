"""Listings and their owners."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.unlisting import UnlistedBy


class State(models.TextChoices):
    """
    The state of a listing.

    Source: decisions, section 5, listings.
    """

    DRAFT = "draft"
    SUBMITTED = "submitted"
    CHANGES_REQUESTED = "changes_requested"
    PUBLISHED = "published"
    UNLISTED = "unlisted"
    REJECTED = "rejected"


class Company(models.Model):
    """
    A listing: a company, DAO, nonprofit, accelerator, incubator or VC.

    Of ``listed_on``, the day is unknown if ``listed_month_only``: it is the first day of the month.
    """

    slug = Text()
    state = models.CharField(max_length=24, choices=State.choices, default=State.DRAFT)
    version = models.PositiveIntegerField(default=1)
    unlisted_by = models.CharField(max_length=16, choices=UnlistedBy.choices, blank=True, default="")
    published = models.BooleanField(default=False)
    publication_number = models.BigIntegerField(null=True, blank=True)
    listed_on = models.DateField(null=True, blank=True)
    listed_month_only = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    name = Text()
    symbol = Text(blank=True, default="")
    team_size = models.PositiveIntegerField(null=True, blank=True)
    treasury_minor = models.BigIntegerField(null=True, blank=True)
    status = models.CharField(max_length=16, blank=True, default="")
    type = Text(blank=True, default="")
    industry = Text(blank=True, default="")
    org_kind = Text(blank=True, default="")
    themes = JSONText(null=True, blank=True)
    description = Text(blank=True, default="")
    body = Text(blank=True, default="")
    website = Text(blank=True, default="")
    dao_website = Text(blank=True, default="")
    icon = Text(blank=True, default="")
    socials = JSONText(null=True, blank=True)
    address = JSONText(null=True, blank=True)
    distribution = JSONText(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)
    former_names = JSONText(null=True, blank=True)  # muniment.registry.names.former
    raising = models.BooleanField(default=False)  # as last published by date
    provenance = JSONText(null=True, blank=True)  # muniment.registry.provenance

    reviewer_note = Text(blank=True, default="")
    submitted_at = models.DateTimeField(null=True, blank=True)
    reviewed_at = models.DateTimeField(null=True, blank=True)

    owners = models.ManyToManyField(settings.AUTH_USER_MODEL, through="Ownership", related_name="companies")

    class Meta:
        verbose_name_plural = "companies"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["slug"], name="company_slug_unique"),
            models.UniqueConstraint(fields=["publication_number"], name="company_publication_unique"),
            models.CheckConstraint(condition=models.Q(state__in=State.values), name="company_state_known"),
            models.CheckConstraint(
                condition=models.Q(status__in=["", "active", "upcoming", "inactive"]), name="company_status_known"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "submitted_at"], name="company_state")]

    def __str__(self) -> str:
        return str(self.name)


class Ownership(models.Model):
    """An account that owns a listing. A listing can have several owners, or none."""

    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="ownerships")
    company = models.ForeignKey(Company, models.CASCADE, related_name="ownerships")
    role = models.CharField(max_length=16, default="owner")
    since = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["account", "company"], name="ownership_unique")]

    def __str__(self) -> str:
        return f"{self.account} owns {self.company}"
