"""The pages as a Django application: templates, tags, static files. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Register the pages with Django."""

    name = "muniment.web"

    def ready(self) -> None:
        from muniment.web.translating import use_declared_words

        use_declared_words()
