"""Tables of webhooks: endpoints, events that are not sent to them yet, and deliveries."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now


class Endpoint(models.Model):
    """
    A URL that is told of events.

    ``account`` is None for the registry's own, which operators manage. ``listings`` are the only companies whose events
    it gets; without any, an owner's endpoint gets those of the owner's listings, the registry's those of all.
    ``former_secret`` signs too until ``former_until``. ``failing_since`` is the first failure since the last success.
    Nothing is sent before ``paused_until``. ``ended`` is why nothing is sent any more; empty while it works. ``behind``
    is the place in the change feed up to which it has its events, if so many wait that no further ones are stored.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, null=True, related_name="webhook_endpoints")
    url = models.TextField()
    kinds = models.JSONField(default=list)
    listings = models.JSONField(default=list)
    secret = models.TextField()
    former_secret = models.TextField(blank=True, default="")
    former_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField(default=now)
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    paused_until = models.DateTimeField(null=True)
    ended = models.CharField(max_length=16, blank=True, default="")
    ended_at = models.DateTimeField(null=True)
    behind = models.BigIntegerField(null=True)

    def __str__(self) -> str:
        return str(self.url)


class Event(models.Model):
    """
    An event that is in no feed and has not been sorted into deliveries yet.

    ``accounts`` are those whose endpoints get it; ``for_registry`` says whether the registry's do.
    """

    id = models.BigAutoField(primary_key=True)
    event_id = models.CharField(max_length=26, default=new_id)
    kind = models.CharField(max_length=32)
    listing = models.TextField(blank=True, default="")
    data = models.JSONField(default=dict)
    accounts = models.JSONField(default=list)
    for_registry = models.BooleanField(default=False)
    at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return f"{self.kind} {self.event_id}"


class Place(models.Model):
    """The place in the change feed up to which its entries are sorted into deliveries; one row."""

    feed_id = models.CharField(max_length=64)
    sequence = models.BigIntegerField()

    def __str__(self) -> str:
        return f"{self.sequence} of {self.feed_id}"


class Delivery(models.Model):
    """
    An event for an endpoint.

    ``subject`` is what the event is about: those of one subject are sent in order. ``next_at`` is when it is sent next;
    None while an earlier one of its subject waits, and at the end. ``attempts`` are the attempts so far: time, status
    or fault, milliseconds, and the beginning of the response.
    """

    class State(models.TextChoices):
        """The state of a delivery; the last two are final."""

        WAITING = "waiting"
        DELIVERED = "delivered"
        FAILED = "failed"

    id = models.BigAutoField(primary_key=True)
    endpoint = models.ForeignKey(Endpoint, models.CASCADE, related_name="deliveries", db_index=False)
    event_id = models.CharField(max_length=96)
    kind = models.CharField(max_length=32)
    subject = models.TextField(blank=True, default="")
    body = models.TextField()
    state = models.CharField(max_length=16, choices=State.choices, default=State.WAITING)
    next_at = models.DateTimeField(null=True)
    attempts = models.JSONField(default=list)
    created_at = models.DateTimeField(default=now)
    finished_at = models.DateTimeField(null=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["endpoint", "event_id"], name="webhook_event_once"),
        ]
        indexes: ClassVar = [
            models.Index(fields=["endpoint", "next_at", "id"], condition=models.Q(state="waiting"), name="webhook_due"),
            models.Index(
                fields=["endpoint", "subject", "id"], condition=models.Q(state="waiting"), name="webhook_subject"
            ),
            models.Index(fields=["endpoint", "id"], name="webhook_listed"),
            models.Index(fields=["finished_at"], name="webhook_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.event_id}"
