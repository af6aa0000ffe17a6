"""The Django app of assessments."""

from django.apps import AppConfig

from muniment.jobs import handlers


class AssessmentsConfig(AppConfig):
    """Report runs and reports."""

    name = "muniment.assessments"
    verbose_name = "Assessments"

    def ready(self) -> None:
        import muniment.assessments.run_job  # noqa: F401 - importing it registers the job
        from muniment.assessments import operations, personal_data

        personal_data.register()
        sweep = handlers.Handler(kind="assessments.grown_old", work=lambda _: operations.expire_runs())
        handlers.register(sweep, every_s=3600)
