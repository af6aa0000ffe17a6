"""The pages as a Django application: templates, tags, static files. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Register the pages with Django."""

    name = "muniment.web"

    def ready(self) -> None:
        from django.utils.translation import trans_real

        from muniment.accounts import sessions
        from muniment.languages.catalogues import SOURCE
        from muniment.registry_toml.wording import DeclaredWords
        from muniment.searches import news
        from muniment.web import shortcuts
        from muniment.web.lists.search import wanted_search
        from muniment.web.presenters.differences import changed_label_of
        from muniment.web.requests import errors, page_cache

        sessions.refusal_page = errors.problem_page
        shortcuts.take()
        news.use(news.Registry(page_cache.reader, wanted_search, changed_label_of))
        trans_real.translation(SOURCE).add_fallback(DeclaredWords())
