"""The declared fields that this process uses, which are those of the applied settings."""

from django.conf import settings

from muniment.declared_fields import declarations
from muniment.registry.declared.stored import mark_of
from muniment.registry.settings.operations import follow
from muniment.schema.declared.declarations import declare
from muniment.schema.objects import registry_schema
from muniment.store.change_feed import mark_in


def refresh() -> bool:
    """Use the declared fields of the applied settings from now on; return whether they were others before."""
    found = declarations()
    if found == settings.DECLARED_FIELDS:
        return False
    settings.DECLARED_FIELDS = found
    settings.SCHEMA = declare(registry_schema(settings.CURRENCY), found, settings.CURRENCY)
    return True


def use_fields_of(epoch: str) -> None:
    """Use the fields that the documents of *epoch* have: another process may have applied others than this one's."""
    if mark_in(epoch) != mark_of(settings.DECLARED_FIELDS):
        follow()
        refresh()
