"""
The tables of the registry.

An empty text means absent where the contract omits the field; NULL is used where an empty text and an absent one
differ on the wire. Open objects keep additional members in ``extra``.
Only :mod:`muniment.registry.publishing.publisher` sets ``publication_number`` and ``published``.
"""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import JSONText, Text


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


class GivenSlug(models.Model):
    """A slug that was used once and is never reused."""

    kind = models.CharField(max_length=16)
    slug = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kind", "slug"], name="given_slug_unique")]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}"


class Company(models.Model):
    """A listing: a company, DAO, nonprofit, accelerator, incubator or VC."""

    slug = Text()
    state = models.CharField(max_length=24, choices=State.choices, default=State.DRAFT)
    version = models.PositiveIntegerField(default=1)
    published = models.BooleanField(default=False)
    publication_number = models.BigIntegerField(null=True, blank=True)
    listed_on = models.DateField(null=True, blank=True)
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

    reviewer_note = Text(blank=True, default="")
    submitted_at = models.DateTimeField(null=True, blank=True)

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


class Person(models.Model):
    """
    A person's profile. ``listed``: public by itself, because it was imported, or claimed and approved.

    Source: decisions, section 2, only reviewed.
    """

    slug = Text()
    document_id = Text(default=new_id)
    name = Text()
    bio = Text(blank=True, default="")
    extra = JSONText(default=dict, blank=True)
    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="person"
    )
    listed = models.BooleanField(default=False)
    published = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    publication_number = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "people"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["slug"], name="person_slug_unique"),
            models.UniqueConstraint(fields=["publication_number"], name="person_publication_unique"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class Position(models.Model):
    """A person's position in a company. ``rank`` is the order within the company."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="positions")
    person = models.ForeignKey(Person, models.PROTECT, related_name="positions")
    rank = models.PositiveIntegerField()
    title = Text(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["company", "rank"], name="position_rank_unique")]

    def __str__(self) -> str:
        return f"{self.title} at {self.company}"


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
    """A funding round of a company: open until it has a closing date. At most one is open."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="funding_rounds")
    rank = models.PositiveIntegerField()
    name = Text(blank=True, default="")
    target_minor = models.BigIntegerField(null=True, blank=True)
    opened_on = models.DateField(null=True, blank=True)
    closed_on = models.DateField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["company", "rank"], name="funding_round_rank_unique"),
            models.UniqueConstraint(
                fields=["company"], condition=models.Q(closed_on__isnull=True), name="funding_round_one_open"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.name} of {self.company}"


class Framework(models.Model):
    """
    An assessment framework: a score, or a program that a company runs.

    ``listed``: a reviewer wants it shown; ``closed``: a reviewer closed it although it is authored.
    """

    class Kind(models.TextChoices):
        """The kind of a framework."""

        SCORE = "score"
        PROGRAM = "program"

    slug = Text()  # the contract's frameworkId
    name = Text()
    description = Text(blank=True, default="")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    company = models.ForeignKey(Company, models.PROTECT, null=True, blank=True, related_name="frameworks")
    closed = models.BooleanField(default=False)
    run_cost = models.PositiveIntegerField(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)
    listed = models.BooleanField(default=True)
    published = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    publication_number = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["slug"], name="framework_slug_unique"),
            models.UniqueConstraint(fields=["publication_number"], name="framework_publication_unique"),
            models.CheckConstraint(condition=models.Q(kind__in=["score", "program"]), name="framework_kind_known"),
            models.CheckConstraint(
                condition=models.Q(kind="score") | models.Q(company__isnull=False), name="framework_program_has_company"
            ),
        ]

    def __str__(self) -> str:
        return str(self.name)


class FrameworkSpecification(models.Model):
    """A version of a framework's private specification. Rows never change: runs refer to their version."""

    framework = models.ForeignKey(Framework, models.CASCADE, related_name="specifications")
    version = models.PositiveIntegerField()
    document = JSONText()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    authored_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["framework", "version"], name="specification_version_unique")
        ]

    def __str__(self) -> str:
        return f"{self.framework} v{self.version}"


class PendingChange(models.Model):
    """Fields of a published listing that need review. At most one undecided row per company."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="pending_changes")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16)
    credential = Text(blank=True, default="")
    changes = JSONText(default=dict)
    asked_at = models.DateTimeField(default=now)
    decision = models.CharField(max_length=16, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    note = Text(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["company"], condition=models.Q(decision=""), name="pending_change_one_undecided"
            ),
            models.CheckConstraint(
                condition=models.Q(decision__in=["", "approved", "rejected", "withdrawn"]),
                name="pending_change_decision_known",
            ),
        ]

    def __str__(self) -> str:
        return f"change of {self.company}"


class HistoryEntry(models.Model):
    """A change: its actor, its channel, and each changed field before and after. Never changed or deleted."""

    company = models.ForeignKey(Company, models.CASCADE, null=True, blank=True, related_name="history")
    person = models.ForeignKey(Person, models.CASCADE, null=True, blank=True, related_name="history")
    framework = models.ForeignKey(Framework, models.CASCADE, null=True, blank=True, related_name="history")
    action = models.CharField(max_length=32)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16)
    credential = Text(blank=True, default="")
    before = JSONText(default=dict)
    after = JSONText(default=dict)
    note = Text(blank=True, default="")
    at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "history entries"
        indexes: ClassVar = [
            models.Index(fields=["company", "at"], name="history_company"),
            models.Index(fields=["person", "at"], name="history_person"),
            models.Index(fields=["framework", "at"], name="history_framework"),
        ]

    def __str__(self) -> str:
        return f"{self.action} at {self.at}"


class Petition(models.Model):
    """A request to the reviewers: a claim of a listing or a profile, or a suggested edit."""

    class RequestKind(models.TextChoices):
        """The kind of a request."""

        CLAIM = "claim"
        PROFILE = "profile"
        SUGGESTION = "suggestion"

    kind = models.CharField(max_length=16, choices=RequestKind.choices)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="petitions")
    company = models.ForeignKey(Company, models.CASCADE, null=True, blank=True, related_name="petitions")
    person = models.ForeignKey(Person, models.CASCADE, null=True, blank=True, related_name="petitions")
    text = Text(blank=True, default="")
    changes = JSONText(default=dict, blank=True)
    asked_at = models.DateTimeField(default=now)
    decision = models.CharField(max_length=16, blank=True, default="")
    decided_at = models.DateTimeField(null=True, blank=True)
    decided_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    note = Text(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(decision__in=["", "approved", "refused"]), name="petition_decision_known"
            ),
            models.UniqueConstraint(
                fields=["account", "kind", "company"],
                condition=models.Q(decision="", company__isnull=False),
                name="petition_company_once",
            ),
            models.UniqueConstraint(
                fields=["account", "person"],
                condition=models.Q(decision="", person__isnull=False),
                name="petition_person_once",
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["decision", "asked_at"], name="petition_open")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.company or self.person}"


class Taking(models.Model):
    """A review item assigned to a reviewer: ``company:slug``, ``change:7`` or ``petition:7``."""

    subject = models.CharField(max_length=220, unique=True)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.account} works on {self.subject}"


class Invitation(models.Model):
    """An invitation to co-own a listing. Only the digest of its token is stored."""

    company = models.ForeignKey(Company, models.CASCADE, related_name="invitations")
    email = models.EmailField(max_length=254)
    token_digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    invited_at = models.DateTimeField(default=now)
    accepted_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"{self.email} invited to {self.company}"


class Picture(models.Model):
    """A logo or portrait in two sizes. Stored in the database, so that every node can serve it."""

    digest = models.CharField(max_length=32, unique=True)
    small = models.BinaryField()
    large = models.BinaryField()
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return str(self.digest)
