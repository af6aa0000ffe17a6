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
        """Create the tables of published documents with the others, and connect decisions to notifications."""
        from muniment.registry.review import claims, decisions, notifications

        for hooks, tell in (
            (decisions.on_decided, notifications.tell_owners),
            (claims.on_petition_decided, notifications.tell_petitioner),
        ):
            if tell not in hooks:
                hooks.append(tell)  # type: ignore[arg-type]  # each fits its own list; mypy sees a union
        post_migrate.connect(_make_published_tables, sender=self, dispatch_uid="muniment.registry.published")
