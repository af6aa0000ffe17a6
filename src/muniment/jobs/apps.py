"""Django app of the job queue."""

from django.apps import AppConfig

from muniment.jobs.handlers import Handler, register


class JobsConfig(AppConfig):
    """The job queue."""

    name = "muniment.jobs"
    verbose_name = "Jobs"

    def ready(self) -> None:
        from muniment.jobs import queue

        register(Handler(kind="jobs.grown_old", work=lambda _: queue.prune()), every_s=3600)
