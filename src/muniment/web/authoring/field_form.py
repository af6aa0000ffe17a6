"""The form of a declared field: what is typed, as ``registry.toml`` would declare it."""

import re
import unicodedata
from typing import Any, Final

from django import forms
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONObject
from muniment.schema.declared.declarations import OPTIONS, Declaration
from muniment.schema.declared.faults import DeclarationFault
from muniment.schema.declared.identifiers import CHECKS

KINDS: Final = {
    "text": gettext_lazy("Text of one line"),
    "number": gettext_lazy("Number"),
    "money": gettext_lazy("Amount of money"),
    "date": gettext_lazy("Date"),
    "choice": gettext_lazy("Choice"),
    "link": gettext_lazy("Link"),
    "identifier": gettext_lazy("Identifier"),
    "country": gettext_lazy("Country"),
}
PLACES: Final = {"company": gettext_lazy("Companies"), "person": gettext_lazy("People")}
_CHECKS: Final = {
    "": gettext_lazy("Letters, digits and signs"),
    "lei": gettext_lazy("LEI, with check digits"),
    "isin": gettext_lazy("ISIN, with check digit"),
    "evm": gettext_lazy("Address of an EVM chain: 0x and 40 digits"),
    "contract": gettext_lazy("Address of a contract on any chain"),
}
_BUILT_IN: Final = {"in_lists": True, "retired": False}


class _OfAKind(forms.CharField):
    """An option that its kind of value needs, and other kinds don't; the schema judges it."""

    def validate(self, value: Any) -> None:
        """Accept nothing, too."""


class FieldForm(forms.Form):
    """A declaration, judged by the schema, which also judges ``registry.toml``; options of other kinds do not count."""

    use_required_attribute = False

    label = forms.CharField(
        label=gettext_lazy("Label"),
        help_text=gettext_lazy("Shown in forms and on pages, such as Year of construction."),
        error_messages={"required": gettext_lazy("The label is missing.")},
        widget=forms.TextInput({"maxlength": 60}),
    )
    kind = forms.ChoiceField(label=gettext_lazy("Kind of value"), choices=list(KINDS.items()))
    help = forms.CharField(
        label=gettext_lazy("Help"),
        help_text=gettext_lazy("A sentence below the field of the form. Agents read it too."),
        required=False,
        widget=forms.TextInput({"maxlength": 200}),
    )
    choices = _OfAKind(
        label=gettext_lazy("Choices"),
        help_text=gettext_lazy("One choice per line. Only for a choice."),
        widget=forms.Textarea({"rows": 4}),
    )
    check = forms.ChoiceField(
        label=gettext_lazy("Check"),
        help_text=gettext_lazy("Only for an identifier."),
        choices=[(name, _CHECKS[name]) for name in ("", *filter(None, CHECKS))],
        required=False,
    )
    min = forms.CharField(
        label=gettext_lazy("Least number"),
        help_text=gettext_lazy("Only for a number."),
        required=False,
        widget=forms.TextInput({"inputmode": "decimal"}),
    )
    max = forms.CharField(
        label=gettext_lazy("Largest number"),
        help_text=gettext_lazy("For a number. For a text, its most characters."),
        required=False,
        widget=forms.TextInput({"inputmode": "decimal"}),
    )
    key = forms.CharField(
        label=gettext_lazy("Key"),
        help_text=gettext_lazy(
            "The name in JSON, CSV and tools, such as yearBuilt. Left empty, it is made of the label. It can't be"
            " changed later."
        ),
        required=False,
        widget=forms.TextInput({"maxlength": 40, "autocapitalize": "none", "spellcheck": "false"}),
    )
    in_lists = forms.BooleanField(label=gettext_lazy("Include in list summaries for agents"), required=False)
    retired = forms.BooleanField(
        label=gettext_lazy("Retired: values are kept, but neither shown, edited nor searched"), required=False
    )

    def __init__(self, *args: Any, key: str = "", **options: Any) -> None:
        super().__init__(*args, **options)
        if key:
            self.fields["key"].disabled = True
            self.fields["key"].help_text = gettext("The name in JSON, CSV and tools.")
            self.initial["key"] = key

    def to_table(self, of: str) -> JSONObject:
        """Return the declaration as ``registry.toml`` would have it; what is left out has its default."""
        self.is_valid()
        data = {name: self.cleaned_data.get(name, self.data.get(name, "")) for name in self.fields}
        label = " ".join(str(data["label"]).split())
        found: JSONObject = {"of": of, "key": str(data["key"]).strip() or key_of(label), "label": label}
        found["kind"] = data["kind"]
        if said := " ".join(str(data["help"]).split()):
            found["help"] = said
        lines = str(data["choices"]).splitlines()
        options: JSONObject = {
            "choices": [" ".join(line.split()) for line in lines if line.strip()],
            "check": data["check"],
            **{name: _number(text) for name in ("min", "max") if (text := str(data[name]).strip())},
        }
        found |= {name: value for name, value in options.items() if data["kind"] in OPTIONS[name] and value != ""}
        return {**found, **{name: data[name] for name, value in _BUILT_IN.items() if data[name] != value}}

    def put(self, fault: DeclarationFault) -> None:
        """Show a fault beside its field, unless one is there."""
        if fault.member in self.errors:
            return
        if fault.member == "key" and "label" in self.errors:  # the key is made of the label
            return
        said = fault.says.removeprefix(f"{fault.label}: ")
        if fault.member == "choices" and not str(self.data.get("choices", "")).strip():
            said = gettext("Enter at least one choice, one per line.").removesuffix(".")
        self.add_error(fault.member if fault.member in self.fields else None, f"{said[:1].upper()}{said[1:]}.")


def values_of(declared: Declaration) -> JSONObject:
    """Return a declaration as the values of the form."""
    bounds = {name: getattr(declared, name) for name in ("min", "max")}
    return {
        **{name: getattr(declared, name) for name in ("label", "kind", "help", "check", "key", "in_lists", "retired")},
        "choices": "\n".join(declared.choices),
        **{name: "" if value is None else f"{value:.15g}" for name, value in bounds.items()},
    }


def key_of(label: str) -> str:
    """Return a key made of a label: Year of construction is yearOfConstruction."""
    plain = unicodedata.normalize("NFKD", label.replace("ß", "ss")).encode("ascii", "ignore").decode()
    first, *others = re.findall(r"[A-Za-z0-9]+", plain) or [""]
    key = "".join([first.lower(), *(f"{each[:1].upper()}{each[1:].lower()}" for each in others)])
    return re.sub(r"^\d+", "", key)[:40]


def _number(text: str) -> Any:
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text
