"""The declared fields of this instance, as the applied settings have them; known without a database."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from muniment.config import Config
from muniment.registry_toml import applied
from muniment.schema.declared.declarations import Declaration, declare, read_declarations
from muniment.schema.declared.faults import FieldsError
from muniment.schema.objects import Schema, registry_schema

log = logging.getLogger(__name__)


def declarations() -> tuple[Declaration, ...]:
    """Return the declared fields; none if a later version has declared fields that this one does not know."""
    try:
        return read(applied.look().settings.fields)
    except FieldsError as error:
        log.error("the declared fields are not used: %s", "; ".join(error.faults))  # noqa: TRY400 - it names the faults
        return ()


def read(given: Sequence[Mapping[str, Any]]) -> tuple[Declaration, ...]:
    """
    Read the section ``[[fields]]``.

    Raises:
        FieldsError: it has faults.
    """
    return read_declarations(list(given), registry_schema("USD")) if given else ()


def instance_schema(config: Config) -> Schema:
    """Return the schema of this instance: the built-in fields and the declared ones."""
    return declare(registry_schema(config.currency), declarations(), config.currency)
