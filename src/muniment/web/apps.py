"""The pages as a Django application: templates, tags, static files. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Names the room."""

    name = "muniment.web"
