"""Form fields made from the schema. They carry what was typed; the schema's validation judges it."""

import re
from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.schema.kinds import Choice, Integer, Items, Text
from muniment.schema.parsed_kinds import Money
from muniment.schema.record import Field


class Suggesting(forms.TextInput):
    """A text input that suggests values and takes others too."""

    template_name = "part/suggesting.html"

    def __init__(self, values: Iterable[str], attrs: JSONObject | None = None) -> None:
        super().__init__(attrs)
        self.values = tuple(values)

    def get_context(self, name: str, value: Any, attrs: JSONObject | None) -> JSONObject:
        context = super().get_context(name, value, {**(attrs or {}), "list": f"list_{name}"})
        return {**context, "list_id": f"list_{name}", "values": self.values}


class TextField(forms.CharField):
    """Text as it was typed, with the line ends that every other surface uses; browsers send CR LF."""

    def to_python(self, value: Any) -> Any:
        return (super().to_python(value) or "").replace("\r\n", "\n")


class ListField(TextField):
    """A list of texts, separated by commas; one with a comma of its own is in double quotes, as in CSV."""

    def prepare_value(self, value: Any) -> Any:
        return ", ".join(map(_quoted, value)) if isinstance(value, list | tuple) else value

    def clean(self, value: Any) -> Any:
        parts = (
            quoted.replace('""', '"') if quoted else plain.strip()
            for quoted, plain in _PART.findall(super().clean(value))
        )
        return [part for part in parts if part.strip()]


_PART: Final = re.compile(r"""\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]+))(?:,|$)""")


def _quoted(text: str) -> str:
    is_plain = text == text.strip() and not set(text) & set(',"')
    return text if is_plain else '"{}"'.format(text.replace('"', '""'))


def form_field(field: Field) -> forms.Field:
    said: JSONObject = {
        "label": gettext(field.label),
        "help_text": gettext(field.help) if field.help else "",
        "required": field.required,
    }
    kind = field.kind
    if isinstance(kind, Choice):
        choices = [("", gettext("Not specified")), *((each, gettext(each.capitalize())) for each in kind.values)]
        return forms.ChoiceField(choices=choices, **said)
    if isinstance(kind, Integer):
        return forms.IntegerField(widget=forms.NumberInput({"min": 0}), **said)
    if isinstance(kind, Items):
        return ListField(
            **{**said, "help_text": gettext('Separated by commas. Put a text with a comma in it in "quotes".')}
        )
    limit = {"maxlength": kind.max} if isinstance(kind, Text | Money) and kind.max else {}
    widget: forms.Widget = forms.TextInput(limit)
    if isinstance(kind, Text) and kind.suggest:
        widget = Suggesting(kind.suggest, limit)
    elif isinstance(kind, Text) and kind.lines > 1:
        widget = forms.Textarea({"rows": kind.lines, **limit})
    return TextField(widget=widget, **said)
