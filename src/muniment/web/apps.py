"""The pages as a Django application: templates, tags, static files. No tables."""

from django.apps import AppConfig


class WebConfig(AppConfig):
    """Register the pages with Django."""

    name = "muniment.web"
