"""The Django app of backups."""

from django.apps import AppConfig

from muniment import config
from muniment.jobs.handlers import register


class BackupConfig(AppConfig):
    """Scheduled backups."""

    name = "muniment.backup"
    verbose_name = "Backups"

    def ready(self) -> None:
        from muniment.backup.scheduled import job

        settings = config.current()
        if settings.backup_place:
            register(job.HANDLER, every_s=settings.backup_interval_s)
