"""Stored logos and portraits."""

from typing import ClassVar

from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import Text
from muniment.registry.models.company import Company


class Picture(models.Model):
    """A logo or portrait in two sizes. Stored in the database, so that every node can serve it."""

    digest = models.CharField(max_length=32, unique=True)
    small = models.BinaryField()
    large = models.BinaryField()
    made_at = models.DateTimeField(default=now)
    is_fetched = models.BooleanField(
        default=False, db_default=False
    )  # not uploaded: it is removed once no listing shows it

    def __str__(self) -> str:
        return str(self.digest)


class FetchedLogo(models.Model):
    """What came of fetching the logo of a company from the URL that its source gave."""

    company = models.OneToOneField(Company, models.CASCADE, related_name="fetched_logo")
    source = Text()
    """The URL; once the listing names another one, this row says nothing any more."""
    digest = models.CharField(max_length=32, blank=True, default="")
    """Of the stored picture; empty if the last attempt failed."""
    fault = Text(blank=True, default="")
    failures = models.PositiveIntegerField(default=0)
    asked_at = models.DateTimeField(default=now)
    retry_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        indexes: ClassVar = [models.Index(fields=["digest"], name="fetched_logo_digest")]

    def __str__(self) -> str:
        return f"{self.source} for {self.company_id}"
