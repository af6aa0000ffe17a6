"""Django app of the scrub."""

from django.apps import AppConfig

from muniment.jobs import handlers


class ScrubConfig(AppConfig):
    """The scrub."""

    name = "muniment.scrub"
    verbose_name = "Scrub"

    def ready(self) -> None:
        from muniment.scrub import database_file, health, instance, orphan_rows
        from muniment.scrub.checks import register

        register(database_file.CHECK)
        register(orphan_rows.CHECK)
        handlers.register(instance.HANDLER, every_s=instance.EVERY_S)
        handlers.register(health.HANDLER)
