"""The table of invitations."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.models.company import Company


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
