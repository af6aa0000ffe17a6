"""Scheduled backups of the instance of this process."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any
from unittest.mock import patch

from django.db import connection

from make import documents, registry
from muniment import config
from muniment.backup.scheduled import schedule
from muniment.backup.scheduled.making import Outcome, make_backup
from muniment.backup.scheduled.place import Place
from muniment.config import Config
from muniment.documents.models import Document


def settings(place: Path | str, **more: Any) -> Config:
    """Return the settings of this process with scheduled backups in *place*."""
    own = config.current()
    return Config({}, data=own.data, database_url=own.database_url, **{"backups": str(place), **more})


def made(place: Path | str, *, keep: Mapping[str, int] = schedule.KEEP, **more: Any) -> Outcome:
    with patch.object(schedule, "KEEP", keep):
        return make_backup(settings(place, **more))


def opened(place: Path | str) -> Place:
    return Place(str(place), config.current().data)


def change(text: str) -> None:
    """Change one row of the registry."""
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_site SET name = %s", [text])


def with_documents(number: int) -> list[Document]:
    """Publish a company with documents."""
    owner = registry.owner("keeper@harbour.example")
    company = registry.published(owner, name="Harbour Board")
    return [documents.uploaded(owner, company.slug, b"Minutes." * n * 40) for n in range(1, number + 1)]


def names(place: Path | str) -> list[str]:
    return [record.name for record in opened(place).records()]
