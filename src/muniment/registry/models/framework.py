"""Frameworks, their specifications, and the scores that companies have published."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import now
from muniment.registry.fields import JSONText, Text
from muniment.registry.models.company import Company


class Framework(models.Model):
    """
    An assessment framework: a score, or a program that a company runs.

    ``listed``: a reviewer wants it shown; ``closed``: a reviewer closed it although it is authored.
    """

    class Kind(models.TextChoices):
        """The kind of a framework."""

        SCORE = "score"
        PROGRAM = "program"

    slug = Text()  # the contract's frameworkId
    name = Text()
    description = Text(blank=True, default="")
    kind = models.CharField(max_length=16, choices=Kind.choices)
    company = models.ForeignKey(Company, models.PROTECT, null=True, blank=True, related_name="frameworks")
    closed = models.BooleanField(default=False)
    opens_on = models.DateField(null=True, blank=True)
    closes_on = models.DateField(null=True, blank=True)
    run_cost = models.PositiveIntegerField(null=True, blank=True)
    extra = JSONText(default=dict, blank=True)
    listed = models.BooleanField(default=True)
    published = models.BooleanField(default=False)
    version = models.PositiveIntegerField(default=1)
    provenance = JSONText(null=True, blank=True)  # muniment.registry.provenance
    publication_number = models.BigIntegerField(null=True, blank=True)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["slug"], name="framework_slug_unique"),
            models.UniqueConstraint(fields=["publication_number"], name="framework_publication_unique"),
            models.CheckConstraint(condition=models.Q(kind__in=["score", "program"]), name="framework_kind_known"),
            models.CheckConstraint(
                condition=models.Q(kind="score") | models.Q(company__isnull=False), name="framework_program_has_company"
            ),
        ]

    def __str__(self) -> str:
        return str(self.name)


class FrameworkSpecification(models.Model):
    """A version of a framework's private specification. Rows never change: runs refer to their version."""

    framework = models.ForeignKey(Framework, models.CASCADE, related_name="specifications", db_index=False)
    version = models.PositiveIntegerField()
    document = JSONText()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    authored_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["framework", "version"], name="specification_version_unique")
        ]

    def __str__(self) -> str:
        return f"{self.framework} v{self.version}"


class SpecificationDraft(models.Model):
    """
    A reviewer's unpublished edits of a specification that is too large for one form.

    ``version`` is the one that it was made from, 0 without any; ``revision`` increases with each change.
    """

    framework = models.ForeignKey(Framework, models.CASCADE, related_name="+", db_index=False)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.CASCADE, related_name="+")
    version = models.PositiveIntegerField()
    revision = models.PositiveIntegerField(default=1)
    document = JSONText()
    changed_at = models.DateTimeField(default=now)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["framework", "account"], name="specification_draft_unique")
        ]

    def __str__(self) -> str:
        return f"draft of {self.framework} by {self.account}"


class Score(models.Model):
    """
    A score that the owners of a company have published: of each framework only that of the latest published report.

    ``previous_score`` is what it replaced. ``sections`` is NULL if only the overall score is public. Without a
    ``model`` the report was made by rules, or by the ``evaluator`` of a plugin.
    """

    company = models.ForeignKey(Company, models.CASCADE, related_name="scores", db_index=False)
    framework = models.ForeignKey(Framework, models.CASCADE, related_name="scores", db_index=False)
    report_id = models.CharField(max_length=26)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    score = models.FloatField()
    grade = Text(blank=True, default="")
    specification_version = models.BigIntegerField()
    model = Text(blank=True, default="")
    evaluator = Text(blank=True, default="", db_default="")
    sections = JSONText(null=True, blank=True)
    assessed_at = models.DateTimeField()
    published_at = models.DateTimeField(default=now)
    previous_score = models.FloatField(null=True, blank=True)
    previous_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints: ClassVar = [
            models.UniqueConstraint(fields=["company", "framework"], name="score_one_a_framework"),
            models.UniqueConstraint(fields=["report_id"], name="score_report_once"),
        ]
        indexes: ClassVar = [models.Index(fields=["framework", "score"], name="score_ranked")]

    def __str__(self) -> str:
        return f"{self.company}: {self.score} by {self.framework}"
