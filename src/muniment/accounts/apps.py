"""The accounts feature, as Django knows it."""

from django.apps import AppConfig


class AccountsConfig(AppConfig):
    """People who sign in, by e-mail address."""

    name = "muniment.accounts"
    verbose_name = "Accounts"

    def ready(self) -> None:
        """Watch what takes power from credentials."""
        from muniment.accounts import credentials

        credentials.watch_accounts()
