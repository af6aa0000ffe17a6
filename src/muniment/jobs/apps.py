"""The jobs feature, as Django knows it."""

from django.apps import AppConfig


class JobsConfig(AppConfig):
    """A queue in the database."""

    name = "muniment.jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        """Say which job this feature has itself."""
        from muniment.jobs import handlers, queue

        handlers.register(handlers.Handler(kind="jobs.grown_old", work=lambda _: queue.prune()), every_s=3600)
