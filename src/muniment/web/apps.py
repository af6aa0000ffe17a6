"""The pages as a Django application: templates, tags, static files. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Register the pages with Django."""

    name = "muniment.web"

    def ready(self) -> None:
        from muniment.accounts import sessions
        from muniment.web.requests import errors
        from muniment.web.translating import use_declared_words

        sessions.refusal_page = errors.problem_page
        use_declared_words()
