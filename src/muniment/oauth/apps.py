"""The OAuth feature, as Django knows it."""

from django.apps import AppConfig


class OAuthConfig(AppConfig):
    """Connected apps and what they may do."""

    name = "muniment.oauth"
    label = "oauth"
    verbose_name = "Connected apps"
