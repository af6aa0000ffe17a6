"""The assessments feature, as Django knows it."""

from django.apps import AppConfig


class AssessmentsConfig(AppConfig):
    """Report runs and their reports."""

    name = "muniment.assessments"
    verbose_name = "Assessments"

    def ready(self) -> None:
        """Say which jobs this feature has."""
        import muniment.assessments.run_job  # noqa: F401 - importing it registers the job
        from muniment.assessments import operations
        from muniment.jobs import handlers

        sweep = handlers.Handler(kind="assessments.grown_old", work=lambda _: operations.expire_runs())
        handlers.register(sweep, every_s=3600)
