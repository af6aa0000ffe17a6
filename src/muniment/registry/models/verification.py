"""Proofs that an account controls the domain of a listing's website."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import Text
from muniment.registry.models.company import Company


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
