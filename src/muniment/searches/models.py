"""The tables of saved searches, and of what is mailed about listings and searches."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import Text


class SavedSearch(models.Model):
    """A search that an account has named: a list, and the query string of its page in the canonical order."""

    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_searches", db_index=False)
    name = Text()
    list = models.CharField(max_length=16)
    query = Text(blank=True)
    saved_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["account", "list", "query"], name="saved_search_once"),
            models.CheckConstraint(
                condition=models.Q(list__in=["companies", "people", "frameworks"]), name="saved_search_list_known"
            ),
        ]

    def __str__(self) -> str:
        return str(self.name)


class Subscriber(models.Model):
    """
    An address that asked for mail about listings or searches.

    Args:
        refusals: how often in a row the mail server has refused it for good.
    """

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    email = models.CharField(max_length=254, unique=True)
    language = models.CharField(max_length=16, blank=True)
    refusals = models.PositiveSmallIntegerField(default=0)

    def __str__(self) -> str:
        return str(self.email)


class Subscription(models.Model):
    """
    A listing or a search whose news are mailed to an address.

    Args:
        topic: ``company`` or ``person`` for a listing; for a search, its list.
        key: the slug of the listing, or the query string of the page of the search in the canonical order.
        title: what the search is for, in a line; the name of a listing is read when it is needed.
        confirmed_at: when the receiver agreed; nothing is mailed before.
        sequence: the latest change that was told of, in the feed *epoch*.
        next_at: when the next digest is due.
    """

    class Pace(models.TextChoices):
        """How often a digest is sent at most."""

        DAILY = "daily"
        WEEKLY = "weekly"

    id = models.CharField(primary_key=True, max_length=26, default=new_id, editable=False)
    subscriber = models.ForeignKey(Subscriber, models.CASCADE, related_name="subscriptions", db_index=False)
    topic = models.CharField(max_length=16)
    key = Text(blank=True)
    title = Text(blank=True)
    pace = models.CharField(max_length=8, choices=Pace.choices, default=Pace.DAILY)
    requested_at = models.DateTimeField(default=now)
    confirmed_at = models.DateTimeField(null=True, blank=True)
    sequence = models.BigIntegerField(default=0)
    epoch = models.CharField(max_length=64, blank=True)
    next_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["subscriber", "topic", "key"], name="subscription_once"),
            models.CheckConstraint(
                condition=models.Q(topic__in=["company", "person", "companies", "people", "frameworks"]),
                name="subscription_topic_known",
            ),
        ]
        indexes: ClassVar = [
            models.Index(fields=["next_at"], name="subscription_due"),
            models.Index(fields=["topic", "key"], name="subscription_topic"),
            models.Index(
                fields=["requested_at"], condition=models.Q(confirmed_at=None), name="subscription_unconfirmed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.topic} {self.key}"
