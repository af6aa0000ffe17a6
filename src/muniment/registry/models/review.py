"""Items that wait for reviewers or for an invited owner, invitations of accounts, and proofs of a listing's domain."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.company import Company
from muniment.registry.models.people import Person


class PendingChange(models.Model):
    """Fields of a published or unlisted listing that need review. At most one undecided row per company."""

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


class ItemChecks(models.Model):
    """
    The latest results of the checks of an item in the review queue; a job stores them.

    ``stamp`` names what was checked; ``attention`` the checks that did not pass, each between spaces.
    """

    subject = models.CharField(max_length=220, unique=True)
    stamp = models.CharField(max_length=64)
    attention = models.CharField(max_length=200, blank=True, default="")
    links = JSONText(default=list)
    at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"checks of {self.subject}"


class SavedReply(models.Model):
    """A text that reviewers use in notes. It belongs to the registry's reviewers together."""

    title = models.CharField(max_length=80, unique=True)
    text = Text()
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    updated_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return self.title


class ReviewerSettings(models.Model):
    """The settings of a reviewer's work; without a row, the defaults."""

    account = models.OneToOneField(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    digest = models.BooleanField(default=True)
    shortcuts = models.BooleanField(default=True)
    digest_at = models.DateTimeField(null=True, blank=True)

    def __str__(self) -> str:
        return f"settings of {self.account}"


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


class DomainProof(models.Model):
    """
    An account's proof of a listing's domain, in one of three ways. It shows only while its account owns the listing.

    ``website`` and ``domain`` are those of the day it was begun: a proof ends when the website changes.
    ``value`` is what a record or a file must contain; ``code_digest`` is of a mailed code that is still valid.
    """

    class ProofState(models.TextChoices):
        """The state of a proof. ``failed`` was verified and was not found again; ``ended`` is final."""

        PENDING = "pending"
        VERIFIED = "verified"
        FAILED = "failed"
        ENDED = "ended"

    company = models.ForeignKey(Company, models.CASCADE, related_name="domain_proofs")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="domain_proofs")
    method = models.CharField(max_length=8)
    website = Text()
    domain = Text()
    value = models.CharField(max_length=64, blank=True, default="")
    address = Text(blank=True, default="")
    code_digest = models.CharField(max_length=64, blank=True, default="")
    code_expires_at = models.DateTimeField(null=True, blank=True)
    attempts = models.PositiveSmallIntegerField(default=0)
    state = models.CharField(max_length=8, choices=ProofState.choices, default=ProofState.PENDING)
    begun_at = models.DateTimeField(default=now)
    verified_at = models.DateTimeField(null=True, blank=True)
    due_at = models.DateTimeField(null=True, blank=True)
    failing_since = models.DateTimeField(null=True, blank=True)
    finding = Text(blank=True, default="")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(condition=models.Q(method__in=["dns", "file", "mail"]), name="proof_method_known"),
            models.CheckConstraint(
                condition=models.Q(state__in=["pending", "verified", "failed", "ended"]), name="proof_state_known"
            ),
            models.UniqueConstraint(
                fields=["company", "account", "method"], condition=~models.Q(state="ended"), name="proof_one_a_method"
            ),
        ]
        indexes: ClassVar = [models.Index(fields=["state", "due_at"], name="proof_due")]

    def __str__(self) -> str:
        return f"{self.domain} by {self.method}"


class AccountInvitation(models.Model):
    """
    An invitation to get an account; of the token in its link, only the digest is stored.

    Args:
        company: the listing that the person will own, if there is one.
        invited_by: the operator; None for one from the command line.
    """

    email = models.EmailField(max_length=254)
    role = models.CharField(max_length=16)
    company = models.ForeignKey(Company, models.CASCADE, null=True, blank=True, related_name="+")
    token_digest = models.CharField(max_length=64, unique=True)
    invited_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+")
    invited_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    accepted_at = models.DateTimeField(null=True, blank=True)
    accepted_by = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, blank=True, related_name="+")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["email"], name="account_invitation_email")]

    def __str__(self) -> str:
        return f"{self.email} as {self.role}"

    @property
    def state(self) -> str:
        """Return open, accepted, revoked or expired."""
        if self.accepted_at:
            return "accepted"
        if self.revoked_at:
            return "revoked"
        return "open" if self.expires_at > now() else "expired"
