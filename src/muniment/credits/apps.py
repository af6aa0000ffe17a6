"""The credits feature, as Django knows it."""

from django.apps import AppConfig


class CreditsConfig(AppConfig):
    """A ledger of credits."""

    name = "muniment.credits"
    verbose_name = "Credits"
