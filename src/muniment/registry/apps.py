"""The Django app of the registry."""

from typing import Any

from django.apps import AppConfig
from django.db.models.signals import post_migrate


def _make_published_tables(using: str, **_: Any) -> None:
    from muniment.registry.publishing import publisher

    publisher.create_tables(using)


class RegistryConfig(AppConfig):
    """Companies, people and frameworks."""

    name = "muniment.registry"
    verbose_name = "Registry"

    def ready(self) -> None:
        """Create the tables of published documents with the others, and register the jobs."""
        import muniment.registry.company.tasks
        import muniment.registry.people.tasks  # noqa: F401 - importing it registers them

        post_migrate.connect(_make_published_tables, sender=self, dispatch_uid="muniment.registry.published")
