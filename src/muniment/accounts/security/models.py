"""The table of security events: rows are added and read, never changed."""

from typing import Any, ClassVar, Never, Self

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now

MAX_AGENT_CHARACTERS = 200
MAX_CREDENTIAL_CHARACTERS = 200


class AppendOnlyError(Exception):
    """Code tried to change or delete a security event."""

    def __init__(self) -> None:
        super().__init__("Security events are never changed; retention.py alone removes them when their time is over.")


class _Rows(models.QuerySet["SecurityEvent"]):
    """Events that can be added and read."""

    def update(self, **_: Any) -> Never:
        raise AppendOnlyError

    def delete(self) -> Never:
        raise AppendOnlyError

    def bulk_update(self, *_: Any, **__: Any) -> Never:
        raise AppendOnlyError

    def bulk_create(self, objs: Any, *options: Any, **named: Any) -> list["SecurityEvent"]:
        if options or named.get("update_conflicts"):
            raise AppendOnlyError
        return super().bulk_create(objs, **named)


class SecurityEvent(models.Model):
    """
    One event, written in the transaction of what it reports.

    Args:
        account: the account in whose security log it appears; None if it concerns no account.
        actor: the account that did it; None for the system, the command line and visitors.
        credential: the name of the token, the app or the command; never a secret.
        subject: the path of the page of what it is about, such as companies/quillmere.
        detail: small values without secrets.
        is_audited: whether it appears in the audit log of operators and reviewers.
    """

    at = models.DateTimeField(default=now)
    event = models.CharField(max_length=40)
    account = models.ForeignKey(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False
    )
    actor = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16, blank=True, default="")
    credential = models.CharField(max_length=MAX_CREDENTIAL_CHARACTERS, blank=True, default="")
    address = models.CharField(max_length=45, blank=True, default="")
    agent = models.CharField(max_length=MAX_AGENT_CHARACTERS, blank=True, default="")
    request_id = models.CharField(max_length=128, blank=True, default="")
    subject = models.CharField(max_length=250, blank=True, default="")
    detail = models.JSONField(default=dict, blank=True)
    is_audited = models.BooleanField(default=False)

    objects: ClassVar[models.Manager[Self]] = models.Manager.from_queryset(_Rows)()

    class Meta:
        indexes: ClassVar = [
            models.Index(fields=["account", "id"], name="security_event_account"),
            models.Index(fields=["id"], name="security_event_audited", condition=models.Q(is_audited=True)),
            models.Index(fields=["at"], name="security_event_at"),
        ]

    def __str__(self) -> str:
        return f"{self.event} at {self.at}"

    def save(self, *args: Any, **options: Any) -> None:
        if not self._state.adding:
            raise AppendOnlyError
        super().save(*args, **{**options, "force_insert": True})

    def delete(self, *_: Any, **__: Any) -> Never:
        raise AppendOnlyError

    @property
    def is_by_other(self) -> bool:
        """Return whether another account did it, whose address and browser this one must not see."""
        return self.actor_id is not None and self.actor_id != self.account_id
