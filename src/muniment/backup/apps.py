"""The Django app of backups."""

from typing import TYPE_CHECKING

from django.apps import AppConfig

from muniment import config
from muniment.jobs.handlers import register

if TYPE_CHECKING:
    from muniment.kernel.actor import Actor
    from muniment.web.views.operate import contributed


class BackupConfig(AppConfig):
    """Scheduled backups."""

    name = "muniment.backup"
    verbose_name = "Backups"

    def ready(self) -> None:
        from muniment.backup.scheduled import job, schedule
        from muniment.web.views.operate import contributed as console

        console.backups = (_read, _ask)
        if config.current().backup_place:
            register(job.HANDLER, every_s=schedule.pace_s)


def _read() -> "contributed.BackupList":
    from muniment.backup.scheduled.console import read_backups

    return read_backups(config.current())


def _ask(actor: "Actor") -> None:
    from muniment.backup.scheduled.console import ask_for_backup

    ask_for_backup(actor, config.current())
