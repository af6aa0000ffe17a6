"""The tables of accounts, tokens, secret keys and the first set-up."""

from datetime import datetime
from typing import ClassVar

from django.contrib.auth.base_user import AbstractBaseUser, BaseUserManager
from django.db import models
from django.db.models.functions import Lower
from django.utils.translation import gettext, gettext_lazy

from muniment.accounts.security.models import SecurityEvent as SecurityEvent  # noqa: PLC0414 - Django finds tables here
from muniment.kernel.actor import Actor, Via
from muniment.kernel.ids import now


class AccountManager(BaseUserManager["Account"]):
    """Creates and finds accounts by email address, ignoring case."""

    def create_user(self, email: str, password: str | None = None, *, role: str = "owner") -> "Account":
        """Create an account; without a password it signs in by code, passkey or another identity provider."""
        account = self.model(email=email.strip().lower(), role=role)
        account.set_password(password)
        account.save(using=self._db)
        return account

    def get_by_natural_key(self, username: str | None) -> "Account":
        return self.get(email=(username or "").strip().lower())


class Account(AbstractBaseUser):
    """
    A person who signs in (decisions, section 1, roles).

    ``delete_at`` is set when the deletion was requested. A deleted account keeps an empty row: the history, documents
    and the ledger refer to its number.
    """

    class Role(models.TextChoices):
        """The permissions of an account beyond its own listings."""

        OWNER = "owner", gettext_lazy("Owner")
        REVIEWER = "reviewer", gettext_lazy("Reviewer")
        OPERATOR = "operator", gettext_lazy("Operator")

    email = models.EmailField(max_length=254)
    name = models.CharField(max_length=200, blank=True, default="")
    role = models.CharField(max_length=16, choices=Role.choices, default=Role.OWNER)
    is_active = models.BooleanField(default=True)
    language = models.CharField(max_length=16, blank=True, default="", db_default="")
    joined_at = models.DateTimeField(default=now)
    delete_at = models.DateTimeField(null=True, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)

    objects: ClassVar[AccountManager] = AccountManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["email"], name="account_email_unique"),
            models.UniqueConstraint(Lower("email"), name="account_email_unique_folded"),
            models.CheckConstraint(
                condition=models.Q(role__in=["owner", "reviewer", "operator"]), name="account_role_known"
            ),
        ]

    def __str__(self) -> str:
        return gettext("former account") if self.deleted_at else self.email

    def remember_language(self, code: str) -> None:
        """Store the language that the account reads, if it changed: mail is in that language."""
        if self.language != code:
            self.language = code
            self.save(update_fields=["language"])

    def session_hash_under(self, key: str) -> str:
        """Return the proof, stored in a session, that the password has not changed since, as *key* makes it."""
        return str(self._get_session_auth_hash(secret=key))  # type: ignore[attr-defined]  # not in the stubs

    def actor(self, via: Via, credential: str = "") -> Actor:
        """Return the account's actor, with every scope; *credential* appears in the history."""
        role = self.role
        known = role if role in {"reviewer", "operator"} else "owner"
        # mypy does not infer that a text found among the roles is a role.
        return Actor(account_id=self.pk, role=known, via=via, credential=credential)  # type: ignore[arg-type]


class PersonalToken(models.Model):
    """A token for an app (decisions, section 4); its text was shown once, only its digest is stored."""

    account = models.ForeignKey(Account, models.CASCADE, related_name="tokens", db_index=False)
    name = models.CharField(max_length=80)
    digest = models.CharField(max_length=64)
    scopes = models.CharField(max_length=300)
    lifetime_days = models.PositiveIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField(null=True, blank=True)
    warned_at = models.DateTimeField(null=True, blank=True)
    last_used_on = models.DateField(null=True, blank=True)
    last_used_by = models.CharField(max_length=120, blank=True, default="")
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="account_token_digest_unique")]
        indexes: ClassVar = [models.Index(fields=["account", "revoked_at"], name="account_token_account")]

    def __str__(self) -> str:
        return self.name

    def is_live(self, at: datetime) -> bool:
        return self.revoked_at is None and (self.expires_at is None or at < self.expires_at)


class CredentialEdition(models.Model):
    """One row, increased whenever a credential loses access; see `revocation`."""

    number = models.BigIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.number)


class SecretKey(models.Model):
    """A secret key that the instance uses, by its fingerprint; the key itself is never stored."""

    class State(models.TextChoices):
        """Whether the key seals and signs, or only opens and verifies."""

        CURRENT = "current"
        FORMER = "former"

    fingerprint = models.CharField(max_length=16, primary_key=True)
    state = models.CharField(max_length=8, choices=State.choices)
    since = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(
                fields=["state"], condition=models.Q(state="current"), name="account_key_one_is_current"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.fingerprint} ({self.state})"


class DatabaseForm(models.Model):
    """The oldest form that a version must know to open this database; see `store.database.form`."""

    form = models.IntegerField(primary_key=True)
    version = models.CharField(max_length=32)

    def __str__(self) -> str:
        return f"{self.form} ({self.version})"


class KeptSecret(models.Model):
    """A secret that stays when the secret key is rotated, sealed under that key; see `keys.kept`."""

    name = models.CharField(max_length=16, primary_key=True)
    sealed = models.TextField()

    def __str__(self) -> str:
        return self.name


class KeyHolder(models.Model):
    """A running process and the keys that it has; see `keys.holders`."""

    name = models.CharField(max_length=200, primary_key=True)
    fingerprints = models.TextField()
    signs_with = models.CharField(max_length=16)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name


class SetupLink(models.Model):
    """
    The one link that sets up an instance without an operator; only digests are stored.

    Args:
        node: the data folder, on its host, of the process that made it.
        opened_by: the digest of the secret of the browser that opened it; empty until then.
    """

    digest = models.CharField(max_length=64)
    node = models.CharField(max_length=300, blank=True, default="")
    made_at = models.DateTimeField(default=now)
    expires_at = models.DateTimeField()
    opened_by = models.CharField(max_length=64, blank=True, default="")

    def __str__(self) -> str:
        return f"until {self.expires_at:%Y-%m-%d %H:%M}"


class SetupStep(models.Model):
    """A step of the first set-up that an operator has taken or left out."""

    name = models.CharField(max_length=20, primary_key=True)
    is_skipped = models.BooleanField(default=False)
    at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.name} {'skipped' if self.is_skipped else 'saved'}"
