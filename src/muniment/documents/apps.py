"""The Django app of documents."""

from datetime import timedelta

from django.apps import AppConfig

from muniment.accounts.keys import signed


class DocumentsConfig(AppConfig):
    """Owners' files."""

    name = "muniment.documents"
    verbose_name = "Documents"

    def ready(self) -> None:
        import muniment.documents.tasks  # noqa: F401 - importing it registers them
        from muniment.documents import cleanup, personal_data
        from muniment.documents.downloading import LINK_S
        from muniment.scrub.checks import register

        personal_data.register()
        register(cleanup.BLOBS)
        signed.register("download links", timedelta(seconds=LINK_S))
