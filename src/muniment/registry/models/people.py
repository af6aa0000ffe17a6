"""People, what remains of erased people, and slugs that were used once."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import JSONText, Text


class UnlistedBy(models.TextChoices):
    """
    Who unlisted a listing or a profile: an owner (of a profile, the person), or a reviewer.

    An owner publishes again only what an owner unlisted.

    Source: decisions, section 5, listings.
    """

    OWNER = "owner"
    REVIEWER = "reviewer"


class Person(models.Model):
    """
    A person's profile. ``listed``: public by itself, because it was imported, or claimed and approved.

    ``unlisted_by``: not public, also if listed; set by the person or by a reviewer.

    Source: decisions, section 2, only reviewed.
    """

    slug = Text()
    document_id = Text(default=new_id)
    name = Text()
    bio = Text(blank=True, default="")
    extra = JSONText(default=dict, blank=True)
    account = models.OneToOneField(
        settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="person"
    )
    listed = models.BooleanField(default=False)
    unlisted_by = models.CharField(max_length=16, choices=UnlistedBy.choices, blank=True, default="")
    published = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    provenance = JSONText(null=True, blank=True)  # muniment.registry.provenance
    publication_number = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        verbose_name_plural = "people"
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["slug"], name="person_slug_unique"),
            models.UniqueConstraint(fields=["publication_number"], name="person_publication_unique"),
        ]

    def __str__(self) -> str:
        return str(self.name)


class WaitingPerson(models.Model):
    """
    A person whose document does not yet show the positions that a long import has brought.

    ``is_dated``: the person's row of the import has a time of change, which stays.
    """

    # Without a constraint, because an earlier version that runs beside this one deletes people without their notes.
    person = models.OneToOneField(Person, models.CASCADE, primary_key=True, related_name="+", db_constraint=False)
    is_dated = models.BooleanField()

    class Meta:
        verbose_name_plural = "waiting people"

    def __str__(self) -> str:
        return str(self.person_id)


class MergedPerson(models.Model):
    """The former slug of a person who was merged into another: imports and positions that name it mean the other."""

    slug = Text()
    person = models.ForeignKey(Person, models.CASCADE, related_name="merged")

    class Meta:
        verbose_name_plural = "merged people"
        constraints: ClassVar = [models.UniqueConstraint(fields=["slug"], name="merged_person_slug_unique")]

    def __str__(self) -> str:
        return str(self.slug)


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


class GivenSlug(models.Model):
    """
    A slug that was given once. It is permanent, and never given to another.

    A company that gets another name keeps its slug, so that every address of it stays valid.
    """

    kind = models.CharField(max_length=16)
    slug = Text()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["kind", "slug"], name="given_slug_unique")]

    def __str__(self) -> str:
        return f"{self.kind} {self.slug}"
