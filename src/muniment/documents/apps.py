"""The Django app of documents."""

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Owners' files."""

    name = "muniment.documents"
    verbose_name = "Documents"

    def ready(self) -> None:
        import muniment.documents.tasks  # noqa: F401 - importing it registers them
        from muniment.documents import personal_data

        personal_data.register()
