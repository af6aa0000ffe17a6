"""The Django app of documents."""

from datetime import timedelta

from django.apps import AppConfig


class DocumentsConfig(AppConfig):
    """Owners' files."""

    name = "muniment.documents"
    verbose_name = "Documents"

    def ready(self) -> None:
        import muniment.documents.tasks  # noqa: F401 - importing it registers them
        from muniment.accounts.keys import kept
        from muniment.accounts.personal_data import register as register_part
        from muniment.documents import cleanup, personal_data
        from muniment.documents.downloading import LINK_S
        from muniment.registry.people import erasing
        from muniment.scrub.checks import register

        register_part(personal_data.PART)
        erasing.TEXTS.extend(personal_data.SEARCHED)
        register(cleanup.BLOBS)
        kept.accept_signed("download links", timedelta(seconds=LINK_S))
