"""The documents feature, as Django knows it."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Owners' files."""

    name = "muniment.documents"
    verbose_name = "Documents"

    def ready(self) -> None:
        """Say which jobs this feature has."""
        import muniment.documents.tasks  # noqa: F401 - importing it registers them
