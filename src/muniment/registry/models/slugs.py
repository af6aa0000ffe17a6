"""Slugs that were ever used."""

from typing import ClassVar

from django.db import models

from muniment.registry.fields import Text


class GivenSlug(models.Model):
    """A slug that was used once and is never reused."""

    kind = models.CharField(max_length=16)
    slug = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kind", "slug"], name="given_slug_unique")]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}"
