"""The history of every listing, person and framework, and what imports remember."""

from typing import ClassVar

from django.conf import settings
from django.db import models

from muniment.kernel.ids import new_id, now
from muniment.registry.fields import JSONText, PhraseJSON, Text
from muniment.registry.models.company import Company
from muniment.registry.models.framework import Framework
from muniment.registry.models.people import Person
from muniment.store.database.phrase_text import PhraseText


class ImportRun(models.Model):
    """
    An import, or the undo of one. The history entries that it made name it, so that it can be undone.

    ``result`` is empty while it runs, and after the process was killed. ``undoes`` is the import that it undid.
    ``report`` has what is left out or kept, and ``job`` works on it; both only of imports from the browser.
    """

    started_at = models.DateTimeField(default=now)
    ended_at = models.DateTimeField(null=True, blank=True)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, blank=True, related_name="+")
    via = models.CharField(max_length=16)
    files = JSONText(default=list)
    options = JSONText(default=list)
    result = PhraseText(blank=True, default="")
    undoes = models.ForeignKey("self", models.SET_NULL, null=True, blank=True, related_name="undone_by")
    report = PhraseJSON(null=True, blank=True)
    job = models.CharField(max_length=26, blank=True, default="", db_default="")

    def __str__(self) -> str:
        return f"import {self.pk} at {self.started_at}"


class ImportUpload(models.Model):
    """
    A table on its way into the registry, from the browser: read, mapped, previewed, imported.

    ``mapping`` is TOML. ``facts`` are the tables with their headings and samples, ``report`` is the preview. ``error``
    says why the last step failed. ``job`` works on the step of ``state``.
    """

    class Stage(models.TextChoices):
        """The next step of an import; in the first, third and fifth a job works."""

        READING = "reading"
        MAPPING = "mapping"
        CHECKING = "checking"
        PREVIEW = "preview"
        IMPORTING = "importing"
        DONE = "done"

    id = models.CharField(primary_key=True, max_length=26, default=new_id)
    created_at = models.DateTimeField(default=now)
    updated_at = models.DateTimeField(default=now)
    account = models.ForeignKey(settings.AUTH_USER_MODEL, models.SET_NULL, null=True, related_name="+")
    name = Text()
    address = Text(blank=True, default="")
    state = models.CharField(max_length=16, choices=Stage.choices, default=Stage.READING)
    options = JSONText(default=list)
    mapping = Text(blank=True, default="")
    facts = JSONText(default=dict)
    report = PhraseJSON(default=dict)
    error = PhraseText(blank=True, default="")
    job = models.CharField(max_length=26, blank=True, default="")
    run = models.ForeignKey(ImportRun, models.SET_NULL, null=True, blank=True, related_name="+")

    class Meta:
        constraints: ClassVar = [
            models.CheckConstraint(
                condition=models.Q(
                    state__in=["reading", "mapping", "checking", "preview", "importing", "done"],
                ),
                name="import_upload_state_known",
            )
        ]

    def __str__(self) -> str:
        return f"{self.name} at {self.created_at}"


class ImportFile(models.Model):
    """The compressed content of an upload, or the rows made of it; removed when it is imported or abandoned."""

    upload = models.ForeignKey(ImportUpload, models.CASCADE, related_name="files", db_index=False)
    kind = models.CharField(max_length=16)
    content = models.BinaryField()

    class Meta:
        constraints: ClassVar = [models.UniqueConstraint(fields=["upload", "kind"], name="import_file_once")]

    def __str__(self) -> str:
        return f"{self.kind} of {self.upload_id}"


class ImportedRows(models.Model):
    """
    What an import remembers of its source (:mod:`muniment.registry.imports.sources`), and its report row by row.

    ``rows`` and ``report`` are compressed; ``report`` is removed after some weeks, and with a person whom it names.
    """

    run = models.OneToOneField(ImportRun, models.CASCADE, primary_key=True, related_name="imported_rows")
    source = Text(blank=True, default="", db_index=True)
    rows = models.BinaryField(default=bytes)
    report = models.BinaryField(default=bytes)

    class Meta:
        verbose_name_plural = "imported rows"

    def __str__(self) -> str:
        return f"rows of {self.run_id} from {self.source}"


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


class HistoryEntry(models.Model):
    """
    A change: its actor, its channel, and each changed field before and after. Never deleted.

    ``parts``: how the values of fields that are not whole fit into the whole (:mod:`muniment.registry.history`).
    ``changed``: the names of the changed fields.
    """

    company = models.ForeignKey(Company, models.CASCADE, null=True, blank=True, related_name="history", db_index=False)
    person = models.ForeignKey(Person, models.CASCADE, null=True, blank=True, related_name="history", db_index=False)
    framework = models.ForeignKey(
        Framework, models.CASCADE, null=True, blank=True, related_name="history", db_index=False
    )
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
