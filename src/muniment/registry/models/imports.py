"""What imports remember."""

from typing import ClassVar

from django.db import models

from muniment.registry.fields import JSONText
from muniment.registry.models.company import Company
from muniment.registry.models.framework import Framework
from muniment.registry.models.people import Person


class ImportMemory(models.Model):
    """
    Digests of what the last import brought for members that a person had changed, by the member's name.

    Other members need no memory: the history has each change since an import (:mod:`muniment.registry.exchange.edits`).
    """

    company = models.OneToOneField(Company, models.CASCADE, null=True, blank=True, related_name="import_memory")
    person = models.OneToOneField(Person, models.CASCADE, null=True, blank=True, related_name="import_memory")
    framework = models.OneToOneField(Framework, models.CASCADE, null=True, blank=True, related_name="import_memory")
    members = JSONText(default=dict)

    class Meta:
        verbose_name_plural = "import memories"
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(company__isnull=False, person=None, framework=None)
                | models.Q(company=None, person__isnull=False, framework=None)
                | models.Q(company=None, person=None, framework__isnull=False),
                name="import_memory_of_one_row",
            )
        ]

    def __str__(self) -> str:
        return f"import memory of {self.company or self.person or self.framework}"
