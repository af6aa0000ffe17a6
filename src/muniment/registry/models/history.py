"""The history of every listing, person and framework."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.company import Company
from muniment.registry.models.framework import Framework
from muniment.registry.models.imports import ImportRun
from muniment.registry.models.people import Person


class HistoryEntry(models.Model):
    """
    A change: its actor, its channel, and each changed field before and after. Never deleted.

    ``parts``: how the values of fields that are not whole fit into the whole (:mod:`muniment.registry.changed_parts`).
    ``changed``: the names of the changed fields.
    """

    company = models.ForeignKey(Company, models.CASCADE, null=True, blank=True, related_name="history")
    person = models.ForeignKey(Person, models.CASCADE, null=True, blank=True, related_name="history")
    framework = models.ForeignKey(Framework, models.CASCADE, null=True, blank=True, related_name="history")
    action = models.CharField(max_length=32)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16)
    credential = Text(blank=True, default="")
    before = JSONText(default=dict)
    after = JSONText(default=dict)
    parts = JSONText(null=True, blank=True)
    changed = JSONText(default=list, blank=True)
    note = Text(blank=True, default="")
    at = models.DateTimeField(default=now)
    import_run = models.ForeignKey(ImportRun, models.SET_NULL, null=True, blank=True, related_name="entries")

    class Meta:
        verbose_name_plural = "history entries"
        indexes: ClassVar = [
            models.Index(fields=["company", "at"], name="history_company"),
            models.Index(fields=["person", "at"], name="history_person"),
            models.Index(fields=["framework", "at"], name="history_framework"),
        ]

    is_loaded = True
    """False on an entry of a page whose values are too large to be loaded."""

    def __str__(self) -> str:
        return f"{self.action} at {self.at}"
