"""The declared fields that this process uses, which are those of the applied settings."""

import threading
from typing import Final

from django.conf import settings

from muniment.declared_fields import declarations
from muniment.registry.settings.versions import follow
from muniment.schema.declared.declarations import declare
from muniment.schema.objects import registry_schema

_lock: Final = threading.Lock()
_replaced = 0


def refresh() -> bool:
    """Use the declared fields of the applied settings from now on; return whether they were others before."""
    global _replaced  # noqa: PLW0603 - one count for the process, as its schema is one
    with _lock:
        found = declarations()
        if found == settings.DECLARED_FIELDS:
            return False
        settings.SCHEMA = declare(registry_schema(settings.CURRENCY), found, settings.CURRENCY)
        settings.DECLARED_FIELDS = found
        _replaced += 1
    return True


def times_replaced() -> int:
    """Return how often this process has begun to use other fields."""
    return _replaced


def look() -> None:
    """Use the fields that another process has applied, in a process that only runs jobs."""
    follow()
    refresh()
