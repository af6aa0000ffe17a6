"""A model field for texts that are shown to people in their language."""

from typing import TYPE_CHECKING, Any

from django.db import models

from muniment.kernel.phrases.storing import stored_text, text_of

if TYPE_CHECKING:
    _Column = models.TextField[Any, Any]
else:
    _Column = models.TextField


class PhraseText(_Column):
    """A text; a phrase is read as the phrase that it was, so that a page can translate it."""

    def from_db_value(self, value: str | None, _expression: object, _connection: object) -> str | None:
        return None if value is None else text_of(value)

    def get_prep_value(self, value: Any) -> Any:
        prepared = value if isinstance(value, str) else super().get_prep_value(value)
        return stored_text(prepared) if isinstance(prepared, str) else prepared

    def value_to_string(self, obj: models.Model) -> str:
        return str(self.get_prep_value(self.value_from_object(obj)) or "")
