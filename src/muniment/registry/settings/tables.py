"""The tables of versions, of uploaded fonts, and of the currency."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText


class RegistryVersion(models.Model):
    """
    One version of the settings of the registry; the latest is applied.

    Args:
        stamp: when pages became new, as :mod:`muniment.kernel.http.representations`.
        file_digest: the digest of the file that it was read from; empty for one from a page or a command.
    """

    number = models.PositiveIntegerField(unique=True)
    at = models.DateTimeField(default=now)
    stamp = models.CharField(max_length=20)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16)
    note = models.CharField(max_length=200, blank=True, default="")
    document = JSONText(default=dict)
    file_digest = models.CharField(max_length=64, blank=True, default="")

    class Meta:
        ordering: ClassVar = ["-number"]

    def __str__(self) -> str:
        return f"version {self.number}"


class BrandFont(models.Model):
    """A font of the registry. Stored in the database, so that every node can serve it."""

    digest = models.CharField(max_length=32, unique=True)
    content = models.BinaryField()
    made_at = models.DateTimeField(default=now)

    def __str__(self) -> str:
        return str(self.digest)


class InstanceCurrency(models.Model):
    """The one row says in which currency the stored amounts are: they are numbers, and say nothing of it."""

    code = models.CharField(max_length=3, primary_key=True)

    def __str__(self) -> str:
        return self.code
