"""Form fields made from the schema. They carry what was typed; the schema's validation judges it."""

import re
from collections.abc import Iterable
from typing import Any, Final

from django import forms
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.kernel.wire import number
from muniment.registry_toml.vocabulary import suggested
from muniment.schema.kinds import (
    Boolean,
    Choice,
    Country,
    Date,
    Email,
    Integer,
    Items,
    Kind,
    Link,
    Money,
    Number,
    Profile,
    Text,
)
from muniment.schema.record import Field
from muniment.web.authoring.completing import completed
from muniment.web.wording.places import country_names


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


class AddressField(TextField):
    """A web address, an email address or a profile, completed where its scheme is missing."""

    def __init__(self, *args: Any, kind: Kind, **options: Any) -> None:
        super().__init__(*args, **options)
        self.kind = kind

    def clean(self, value: Any) -> Any:
        return completed(super().clean(value), self.kind)


class NumberField(TextField):
    """A number as it was typed; what is none stays text, and the validation names it."""

    def clean(self, value: Any) -> Any:
        text = super().clean(value).strip()
        if not text:
            return ""
        try:
            return int(text) if text.isdigit() else number(float(text))
        except ValueError:
            return text  # such as "²", which is a digit to Python and no number


class YesNoField(forms.ChoiceField):
    """Yes, no, or not specified."""

    def prepare_value(self, value: Any) -> Any:
        return str(value).lower() if isinstance(value, bool) else value

    def clean(self, value: Any) -> Any:
        text = super().clean(value)
        return text == "true" if text else ""


class DayInput(forms.TextInput):
    """A day, chosen from a calendar where the browser has one."""

    input_type = "date"


class ListField(TextField):
    """A list of texts, separated by commas; one with a comma of its own is in double quotes, as in CSV."""

    def prepare_value(self, value: Any) -> Any:
        if isinstance(value, list | tuple):
            return ", ".join(map(_quoted, value))
        return value  # text as it was typed, which is shown again beside its fault

    def clean(self, value: Any) -> Any:
        texts = []
        for quoted, plain in _PART.findall(super().clean(value)):
            text = quoted.replace('""', '"') if quoted else plain.strip()
            if text.strip():
                texts.append(text)
        return texts


_PART: Final = re.compile(r"""\s*(?:"((?:[^"]|"")*)"\s*(?=,|$)|([^,]+))(?:,|$)""")


def _quoted(text: str) -> str:
    if text == text.strip() and not set(text) & set(',"'):
        return text
    return '"{}"'.format(text.replace('"', '""'))


def form_field(field: Field) -> forms.Field:
    kind = field.kind
    help_text = gettext(field.help) if field.help else ""
    wording: JSONObject = {"label": gettext(field.label), "help_text": help_text, "required": field.required}
    if isinstance(kind, Choice):
        return _choice_field(kind, wording)
    if isinstance(kind, Country | Number | Date | Boolean) and field.is_additional:
        return _declared_field(kind, wording)
    if isinstance(kind, Integer):
        return forms.IntegerField(widget=forms.NumberInput({"min": 0}), **wording)
    if isinstance(kind, Items):
        return _list_field(wording, is_declared=field.is_additional)
    if isinstance(kind, Link | Email | Profile):
        return _address_field(kind, wording, has_help=field.is_additional and bool(field.help))
    return TextField(widget=_text_input(field), **wording)


def _choice_field(kind: Choice, wording: JSONObject) -> forms.Field:
    choices = [("", gettext("Not specified"))]
    for value in kind.values:
        # A value in lower case is a word of the schema, which has a translation; any other one is written as it is.
        label = gettext(value.capitalize()) if value.islower() else value
        choices.append((value, label))
    return forms.ChoiceField(choices=choices, **wording)


def _list_field(wording: JSONObject, *, is_declared: bool) -> ListField:
    separators = gettext("Separate them with commas. Use double quotes around a text that has a comma.")
    own_help = wording["help_text"] if is_declared else ""
    return ListField(**{**wording, "help_text": f"{own_help} {separators}".strip()})


def _text_input(field: Field) -> forms.Widget:
    """Return the input of a text: with suggestions, of several lines, or of a single one."""
    kind = field.kind
    limit = {"maxlength": kind.max} if isinstance(kind, Text | Money) and kind.max else {}
    if isinstance(kind, Text) and kind.suggest:
        return Suggesting(suggested(field.name, kind.suggest), limit)
    if isinstance(kind, Text) and kind.lines > 1:
        return forms.Textarea({"rows": kind.lines, **limit})
    return forms.TextInput(limit)


def _declared_field(kind: Country | Number | Date | Boolean, wording: JSONObject) -> forms.Field:
    if isinstance(kind, Country):
        return forms.ChoiceField(choices=[("", gettext("Not specified")), *country_names().items()], **wording)
    if isinstance(kind, Boolean):
        choices = [("", gettext("Not specified")), ("true", gettext("Yes")), ("false", gettext("No"))]
        return YesNoField(choices=choices, **wording)
    if isinstance(kind, Number):
        return NumberField(widget=forms.TextInput({"inputmode": "decimal"}), **wording)
    return TextField(widget=DayInput(), **wording)


def _address_field(kind: Link | Email | Profile, wording: JSONObject, *, has_help: bool) -> AddressField:
    """Return a field with the keyboard that phones have for its kind; the validation judges it, not the browser."""
    typed = "email" if isinstance(kind, Email) else "url"
    attributes = {"maxlength": kind.max, "inputmode": typed, "autocapitalize": "none", "spellcheck": "false"}
    if isinstance(kind, Link) and not has_help:
        wording = {**wording, "help_text": gettext("For example example.org. https:// is added if it is missing.")}
    return AddressField(kind=kind, widget=forms.TextInput(attributes), **wording)
