"""The assessments feature, as Django knows it."""

from django.apps import AppConfig


class AssessmentsConfig(AppConfig):
    """Report runs and their reports."""

    name = "muniment.assessments"
    verbose_name = "Assessments"

    def ready(self) -> None:
        """Say which job this feature has."""
        import muniment.assessments.work  # noqa: F401 - importing it registers the job
