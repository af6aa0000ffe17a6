"""The table of saved searches."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import Text


class SavedSearch(models.Model):
    """A search that an account has named: a list, and the query string of its page in the canonical order."""

    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="saved_searches")
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
