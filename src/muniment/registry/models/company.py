"""Listings, their owners, the parts of a listing with tables of their own, and stored pictures."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.people import Person, UnlistedBy


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

    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="ownerships", db_index=False)
    company = models.ForeignKey(Company, models.CASCADE, related_name="ownerships")
    role = models.CharField(max_length=16, default="owner")
    since = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["account", "company"], name="ownership_unique")]

    def __str__(self) -> str:
        return f"{self.account} owns {self.company}"


class Position(models.Model):
    """
    A person's position in a company. ``rank`` is the order within the company.

    Without a person the listing shows ``name`` alone: the person has not confirmed it, or has no profile.
    """

    company = models.ForeignKey(Company, models.CASCADE, related_name="positions", db_index=False)
    person = models.ForeignKey(Person, models.PROTECT, null=True, blank=True, related_name="positions", db_index=False)
    name = Text(blank=True, default="")
    rank = models.PositiveIntegerField()
    item_id = Text(blank=True, default="")
    title = Text(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="position_rank_unique")]
        indexes: ClassVar = [models.Index(fields=["person", "company"], name="position_person")]

    def __str__(self) -> str:
        return f"{self.title} at {self.company}"


class PositionRequest(models.Model):
    """
    A request to a person to confirm the position ``item`` of a listing; undecided while the position has no person.

    Rows stay after the decision: a listing cannot ask again soon after a person declined or ended a position.
    """

    class Decision(models.TextChoices):
        """The outcome of a request. A position that was never requested is ended by a row of its own."""

        CONFIRMED = "confirmed"
        DECLINED = "declined"
        ENDED = "ended"
        WITHDRAWN = "withdrawn"

    company = models.ForeignKey(Company, models.CASCADE, related_name="position_requests")
    person = models.ForeignKey(Person, models.CASCADE, related_name="position_requests")
    item = Text()
    title = Text(null=True, blank=True)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
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

    company = models.ForeignKey(Company, models.CASCADE, related_name="proposals", db_index=False)
    rank = models.PositiveIntegerField()
    document = JSONText()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="proposal_rank_unique")]

    def __str__(self) -> str:
        return f"proposal {self.rank} of {self.company}"


class CapTableEntry(models.Model):
    """A token holder of a company; ``document`` is its published form."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="cap_table", db_index=False)
    rank = models.PositiveIntegerField()
    document = JSONText()

    class Meta:
        verbose_name_plural = "cap table entries"
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="cap_table_rank_unique")]

    def __str__(self) -> str:
        return f"holder {self.rank} of {self.company}"


class FundingRound(models.Model):
    """A funding round, open from its opening date up to its closing date. Unless *public*, only its dates are shown."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="funding_rounds", db_index=False)
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

    company = models.ForeignKey(Company, models.CASCADE, related_name="+", db_index=False)
    item = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "item"], name="removed_item_once")]

    def __str__(self) -> str:
        return f"{self.item} of {self.company}"


class Picture(models.Model):
    """A logo or portrait in two sizes. Stored in the database, so that every node can serve it."""

    digest = models.CharField(max_length=32, unique=True)
    small = models.BinaryField()
    large = models.BinaryField()
    made_at = models.DateTimeField(default=now)
    is_fetched = models.BooleanField(
        default=False, db_default=False
    )  # not uploaded: it is removed once no listing shows it

    def __str__(self) -> str:
        return str(self.digest)


class FetchedLogo(models.Model):
    """The result of fetching the logo of a company from the URL that its source gave."""

    company = models.OneToOneField(Company, models.CASCADE, related_name="fetched_logo")
    source = Text()
    """The URL; once the listing names another one, this row says nothing any more."""
    digest = models.CharField(max_length=32, blank=True, default="")
    """The digest of the stored picture; empty if the last attempt failed."""
    fault = Text(blank=True, default="")
    failures = models.PositiveIntegerField(default=0)
    asked_at = models.DateTimeField(default=now)
    retry_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["digest"], name="fetched_logo_digest")]

    def __str__(self) -> str:
        return f"{self.source} for {self.company_id}"
