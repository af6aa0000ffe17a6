"""The Django app of saved searches."""

from django.apps import AppConfig


class SearchesConfig(AppConfig):
    """The searches that accounts save."""

    name = "muniment.searches"
    label = "searches"
    verbose_name = "Saved searches"

    def ready(self) -> None:
        from muniment.accounts import personal_data
        from muniment.searches import saved_searches

        personal_data.register(saved_searches.PART)
