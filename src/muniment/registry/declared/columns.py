"""Which columns of a table hold the values of declared fields."""

from collections.abc import Callable, Mapping
from typing import Final

from django.conf import settings

from muniment.schema.declared.presets import PRESETS, SYNONYMS
from muniment.schema.record import Field

_PLACES: Final = {"companies": "company", "people": "person"}
_words: dict[str, tuple[object, dict[str, str]]] = {}
"""By the kind of rows: the schema, and the keys of its declared fields by the words for them."""


def fields_of(rows: str) -> dict[str, Field]:
    """Return the declared fields of a kind of rows that are not retired, by their keys."""
    if rows not in _PLACES:
        return {}
    record = getattr(settings.SCHEMA, _PLACES[rows])
    return {name: each for name, each in record.by_name.items() if each.is_additional and each.editable}


def field_named(name: str) -> Field | None:
    """Return the declared field of companies or people with this key, which are of the same kind."""
    return fields_of("companies").get(name) or fields_of("people").get(name)


def words_for(rows: str, plain: Callable[[str], str]) -> Mapping[str, str]:
    """Return the keys of declared fields by their keys, labels, and the synonyms of presets, each as *plain* has it."""
    schema, found = _words.get(rows, (None, {}))
    if schema is not settings.SCHEMA:
        found = {}
        for key, field in fields_of(rows).items():
            synonyms = SYNONYMS[key].split() if key in SYNONYMS and _is_preset(key) else ()
            for word in (key, field.label, *synonyms):
                found.setdefault(plain(word), key)
        found.pop("", None)
        _words[rows] = settings.SCHEMA, found
    return found


def _is_preset(key: str) -> bool:
    """Return whether the field of a key has the kind of value that the preset of its key has."""
    declared = next((each for each in settings.DECLARED_FIELDS if each.key == key), None)
    return declared is None or declared.kind == PRESETS[key]["kind"]
