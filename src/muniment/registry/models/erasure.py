"""What remains of erased people: digests that keep them from coming back, and their last entry in the change feed."""

from typing import ClassVar

from django.db import models

from muniment.kernel.ids import now


class Suppression(models.Model):
    """A keyed digest of something erased (:mod:`muniment.registry.people.suppression`); ``key_check`` tells the key."""

    digest = models.CharField(max_length=64)
    key_check = models.CharField(max_length=16)
    at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["digest"], name="suppression_digest_unique")]

    def __str__(self) -> str:
        return str(self.digest)


class FeedTombstone(models.Model):
    """An entry of the change feed under the slug of an erased person, and the random id that replaces it when due."""

    sequence = models.BigIntegerField(primary_key=True)
    replacement = models.CharField(max_length=64)
    due_at = models.DateTimeField()

    def __str__(self) -> str:
        return str(self.replacement)
