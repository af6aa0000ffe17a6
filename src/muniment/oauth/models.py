"""Tables of clients, codes and grants. Secrets are stored only as digests."""

from datetime import datetime
from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text


class Client(models.Model):
    """
    An app that requests access.

    ``kind``: it registered itself (RFC 7591), or its identifier is the URL of its metadata document. ``fetched_at`` is
    when the document was last read, or when the app last registered again. Every client is public: there are no client
    secrets.
    """

    class Kind(models.TextChoices):
        """The way in which the client became known."""

        REGISTERED = "registered"
        DOCUMENT = "document"

    identifier = Text()
    kind = models.CharField(max_length=16, choices=Kind.choices)
    name = Text(blank=True, default="")
    home_url = Text(blank=True, default="")
    redirect_uris = JSONText(default=list)
    created_at = models.DateTimeField(default=now)
    fetched_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["identifier"], name="oauth_client_identifier_unique"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["registered", "document"]), name="oauth_client_kind_known"
            ),
        ]

    def __str__(self) -> str:
        return str(self.name or self.identifier)


class Grant(models.Model):
    """
    A connection of an app to an account, as listed among the connected apps.

    It stores the digests of the current pair of tokens and of the previous one. Every later refresh token is derived
    from the presented one, so a retry gets the same pair (see `grants.refresh`).

    ``scopes`` are what the user agreed to. An access token that was requested for less has its own, in
    ``access_scopes`` and ``replaced_access_scopes``; there, "" means all of ``scopes``.
    """

    handle = models.CharField(max_length=16)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="grants", db_index=False)
    client = models.ForeignKey(Client, models.CASCADE, related_name="grants")
    scopes = models.CharField(max_length=300)
    resource = Text()
    access_digest = models.CharField(max_length=64)
    access_expires_at = models.DateTimeField()
    access_scopes = models.CharField(max_length=300, blank=True, default="", db_default="")
    refresh_digest = models.CharField(max_length=64)
    refresh_expires_at = models.DateTimeField()
    replaced_access_digest = models.CharField(max_length=64, blank=True, default="")
    replaced_access_expires_at = models.DateTimeField(null=True, blank=True)
    replaced_access_scopes = models.CharField(max_length=300, blank=True, default="", db_default="")
    replaced_refresh_digest = models.CharField(max_length=64, blank=True, default="")
    rotated_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    last_used_on = models.DateField(null=True, blank=True)
    last_used_by = Text(blank=True, default="")
    revoked_at = models.DateTimeField(null=True, blank=True)
    revoked_because = models.CharField(max_length=32, blank=True, default="")

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["handle"], name="oauth_grant_handle_unique")]
        indexes: ClassVar = [models.Index(fields=["account", "revoked_at"], name="oauth_grant_account")]

    def __str__(self) -> str:
        return f"{self.client} for {self.account}"

    def is_live(self, at: datetime) -> bool:
        return self.revoked_at is None and at < self.refresh_expires_at


class AuthorizationCode(models.Model):
    """An issued code; ``grant`` is set when it is redeemed, so that a replay can revoke the grant."""

    digest = models.CharField(max_length=64)
    client = models.ForeignKey(Client, models.CASCADE, related_name="+")
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    grant = models.ForeignKey(Grant, models.CASCADE, null=True, blank=True, related_name="+")
    redirect_uri = Text()
    challenge = models.CharField(max_length=43)
    scopes = models.CharField(max_length=300)
    resource = Text()
    expires_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="oauth_code_digest_unique")]

    def __str__(self) -> str:
        return f"code for {self.client}"
