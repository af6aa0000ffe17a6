"""The operator's pages of declared fields: list, add, edit, move, retire, remove, each as a version of the settings."""

import re
import unicodedata
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.json import JSONObject
from muniment.kernel.problems import Conflict
from muniment.registry.declared import editing, progress
from muniment.registry.declared.stored import StoredValues
from muniment.registry.publishing import publisher
from muniment.registry.settings.versions import latest_version
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.reading import InvalidSettings
from muniment.schema.declared.declarations import (
    MAX_FIELDS,
    OPTIONS,
    Declaration,
    field_of,
    parameters_of,
    sample_of,
)
from muniment.schema.declared.faults import DeclarationFault, FieldsError
from muniment.schema.declared.identifiers import CHECKS
from muniment.schema.declared.presets import OF_COMPANIES, PRESETS
from muniment.schema.record import Record
from muniment.searches.saved_searches import count_searches_by
from muniment.web.form_fields import form_field
from muniment.web.presenters.company import further_fields
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask, problems_shown
from muniment.web.requests.pagination import whole_number
from muniment.web.views.operate.frame import operate_page

HOME: Final = "/operate/fields"
_COLLECTIONS: Final = {"company": "companies", "person": "people"}
_APPLIED: Final = gettext_lazy("Version %(number)d is applied. The fields come into use within seconds.")


class FieldRow(NamedTuple):
    """A declared field in the list."""

    declared: Declaration
    kind: Words
    values: StoredValues
    address: str
    is_first: bool
    is_last: bool


class FieldRoom(NamedTuple):
    """The declared fields of companies, or of people, and the presets that are left."""

    of: str
    title: Words
    rows: list[FieldRow]
    presets: list[tuple[str, str]]
    is_full: bool


KINDS: Final = {
    "text": gettext_lazy("Text of one line"),
    "number": gettext_lazy("Number"),
    "money": gettext_lazy("Amount of money"),
    "date": gettext_lazy("Date"),
    "choice": gettext_lazy("Choice"),
    "link": gettext_lazy("Link"),
    "identifier": gettext_lazy("Identifier"),
    "country": gettext_lazy("Country"),
    "list": gettext_lazy("List of texts"),
    "yesno": gettext_lazy("Yes or no"),
}
PLACES: Final = {"company": gettext_lazy("Companies"), "person": gettext_lazy("People")}
_CHECKS: Final = {
    "": gettext_lazy("Letters, digits and signs"),
    "lei": gettext_lazy("LEI, with check digits"),
    "isin": gettext_lazy("ISIN, with check digit"),
    "evm": gettext_lazy("Address of an EVM chain: 0x and 40 digits"),
    "contract": gettext_lazy("Address of a contract on any chain"),
}
_AS_DECLARED: Final = ("label", "kind", "help", "check", "key", "in_lists", "retired")
"""The members of a declaration that the form has as they are."""
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
        # What the form itself refuses, such as an unknown kind, is judged by the schema too.
        data = {name: self.cleaned_data.get(name, self.data.get(name, "")) for name in self.fields}
        label, help_text = " ".join(str(data["label"]).split()), " ".join(str(data["help"]).split())
        key = str(data["key"]).strip() or key_of(label)
        table: JSONObject = {"of": of, "key": key, "label": label, "kind": data["kind"]}
        if help_text:
            table["help"] = help_text
        options: JSONObject = {
            "choices": _lines(str(data["choices"])),
            "check": data["check"],
            "min": _number(str(data["min"]).strip()),
            "max": _number(str(data["max"]).strip()),
        }
        for name, value in options.items():
            # The form shows all options at once; those of other kinds are left out.
            if data["kind"] in OPTIONS[name] and value != "":
                table[name] = value
        for name, built_in in _BUILT_IN.items():
            if data[name] != built_in:
                table[name] = data[name]
        return table

    def put(self, fault: DeclarationFault) -> None:
        """Show a fault beside its field, unless one is there."""
        if fault.member in self.errors:
            return
        if fault.member == "key" and "label" in self.errors:  # the key is made of the label
            return
        text = fault.says.removeprefix(f"{fault.label}: ")
        if fault.member == "choices" and not str(self.data.get("choices", "")).strip():
            text = gettext("Enter at least one choice, one per line.").removesuffix(".")
        field = fault.member if fault.member in self.fields else None
        self.add_error(field, f"{text[:1].upper()}{text[1:]}.")


def _lines(text: str) -> list[str]:
    """Return the lines of a text that have words, without blanks around or between these."""
    lines = [" ".join(line.split()) for line in text.splitlines()]
    return [line for line in lines if line]


@operator("GET", "HEAD")
def fields(request: HttpRequest) -> HttpResponse:
    """List the declared fields, with how many values each has, and whether they are in use."""
    latest = latest_version()
    declared_fields = editing.list_fields(latest)
    rooms = []
    for of in PLACES:
        rooms.append(_room(of, [field for field in declared_fields if field.declared.of == of]))
    context = {
        "number": latest.number,
        "rooms": rooms,
        "is_declared": bool(declared_fields),
        "progress": progress.progress_of(publisher.head()[1]),
        "most": MAX_FIELDS,
    }
    return operate_page(request, "fields", "operate/fields.html", context)


@operator()
@once
def add(request: HttpRequest, of: str) -> HttpResponse:
    """Add a field, from a preset or from nothing."""
    preset = PRESETS.get(request.GET.get("preset", ""), {})
    shown = values_of(Declaration(**{"of": of, "key": "", "label": "", "kind": "text", **_declared(preset)}))
    return _form_page(request, latest_version(), of=of, initial=shown)


@operator()
@once
def edit(request: HttpRequest, of: str, key: str) -> HttpResponse:
    """Change the declaration of a field."""
    latest = latest_version()
    declared = editing.get_field(latest, of, key)
    return _form_page(request, latest, of=of, key=key, initial=values_of(declared))


@operator("POST")
@once
def move(request: HttpRequest, of: str, key: str, action: str) -> HttpResponse:
    """Move a field up or down, retire it, or use it again."""
    with problems_shown(request):
        try:
            number = _version(request.POST.get("version", ""))
            if action in {"up", "down"}:
                made = editing.move_field(actor_of(request), of, key, up=action == "up", expected_number=number)
            else:
                is_retired = action == "retire"
                made = editing.retire_field(actor_of(request), of, key, retired=is_retired, expected_number=number)
            messages.success(request, str(_APPLIED) % {"number": made})
        except InvalidSettings as refusal:
            messages.error(request, str(refusal))
    return HttpResponseRedirect(HOME)


@operator()
@once
def remove(request: HttpRequest, of: str, key: str) -> HttpResponse:
    """Remove a declaration, after a question that says what becomes of its values."""
    latest = latest_version()
    declared = editing.get_field(latest, of, key)
    if request.method == "POST":
        with problems_shown(request):
            try:
                number = _version(request.GET.get("version", ""))
                made = editing.remove_field(actor_of(request), of, key, expected_number=number)
                messages.success(request, str(_APPLIED) % {"number": made})
            except InvalidSettings as refusal:  # a saved query reads its column
                messages.error(request, str(refusal))
        return HttpResponseRedirect(HOME)
    n = 0
    for field in editing.list_fields(latest):
        if field.declared == declared:
            n = field.values.n
    searches = count_searches_by(_COLLECTIONS[of], parameters_of(declared))
    kept = gettext("The field has no values.")
    if n:
        words = ngettext(
            "%(n)d value is kept. It is shown under “More details” and exported, but can no longer be edited or"
            " filtered by.",
            "%(n)d values are kept. They are shown under “More details” and exported, but can no longer be edited or"
            " filtered by.",
            n,
        )
        kept = words % {"n": n}
    sentences = [
        kept,
        gettext("Declare a field with the key %(key)s again, and they are its values again.") % {"key": key},
        gettext("To hide the values too, retire the field instead."),
    ]
    if searches:
        words = ngettext(
            "%(n)d saved search filters by it, and will find more.",
            "%(n)d saved searches filter by it, and will find more.",
            searches,
        )
        sentences.append(words % {"n": searches})
    question = Question(
        gettext("Remove the field “%(label)s”?") % {"label": declared.label}, sentences, gettext("Remove field")
    )
    crumbs = [(gettext("Fields"), HOME), (declared.label, _address(of, key)), (gettext("Remove field"), "")]
    return ask(request, question, back=HOME, crumbs=crumbs)


# ---------------------------------------------------------------------- the form


def _form_page(
    request: HttpRequest, latest: Applied, *, of: str, initial: dict[str, Any], key: str = ""
) -> HttpResponse:
    number = latest.number
    if request.method != "POST":
        return _shown(request, FieldForm(initial=initial, key=key), of=of, key=key, number=number)
    number = _version(request.POST.get("version", ""))
    form = FieldForm(request.POST, initial=initial, key=key)
    proposed, at = editing.propose(latest, form.to_table(of), of=of, key=key)
    found = None
    try:
        found = editing.check(proposed, at)
        if found.unfit:
            form.add_error("kind", _unfit(found))
        elif request.POST.get("do") == "apply":
            with problems_shown(request, Conflict):
                made = editing.apply_fields(
                    actor_of(request), proposed, note=f"{found.declared.key} declared", expected_number=number
                )
                messages.success(request, str(_APPLIED) % {"number": made})
                return HttpResponseRedirect(HOME)
    except FieldsError as refusal:
        for fault in refusal.parts:
            if fault.number == at + 1:
                form.put(fault)
            else:
                form.add_error(None, f"{fault}.")
    except InvalidSettings as refusal:  # values that were stored since the check
        form.add_error("kind", str(refusal))
    return _shown(request, form, of=of, key=key, number=number, found=found)


def _unfit(found: StoredValues) -> str:
    said = ngettext(
        "%(unfit)d of %(n)d stored value does not fit. Choose the kind as before or another key, or correct it first.",
        "%(unfit)d of %(n)d stored values do not fit. Choose the kind as before or another key, or correct them first.",
        found.n,
    )
    return said % {"unfit": found.unfit, "n": found.n}


def _shown(
    request: HttpRequest, form: FieldForm, *, of: str, key: str, number: int, found: StoredValues | None = None
) -> HttpResponse:
    title = gettext("Edit field") if key else gettext("Add field")
    preview = None
    if found is not None and not form.errors:
        preview = _preview(found)
    context = {
        "form": form,
        "title": title,
        "of": of,
        "of_label": PLACES[of],
        "key": key,
        "number": number,
        "found": found,
        "collection": _COLLECTIONS[of],
        "preview": preview,
        "crumbs": [(gettext("Fields"), HOME), (title, "")],
    }
    return operate_page(request, "fields", "operate/field.html", context, status=422 if form.errors else 200)


def _preview(found: StoredValues) -> dict[str, Any]:
    """Return how the form, the page and the interfaces will have a field."""
    declared = found.declared
    field = field_of(declared, settings.CURRENCY)
    sample = sample_of(declared, settings.CURRENCY)

    class Preview(forms.Form):
        """The field as the form of a listing has it."""

    preview = Preview(auto_id="preview_%s", initial={field.name: sample})
    preview.fields[field.name] = form_field(field)
    return {
        "field": preview[field.name],
        "facts": further_fields({field.name: sample}, Record("", (field,))),
        "json": msgspec.json.encode({field.name: sample}).decode(),
        "parameters": () if declared.retired else parameters_of(declared),
        "values": found,
        "is_retired": declared.retired,
    }


def _room(of: str, declared_fields: Sequence[editing.Field]) -> FieldRoom:
    rows, keys = [], set()
    for field in declared_fields:
        declared = field.declared
        is_first, is_last = field is declared_fields[0], field is declared_fields[-1]
        address = _address(of, declared.key)
        rows.append(FieldRow(declared, KINDS[declared.kind], field.values, address, is_first, is_last))
        keys.add(declared.key)
    presets = []
    for name, preset in PRESETS.items():
        if name not in keys and (of == "company" or name not in OF_COMPANIES):
            presets.append((f"{HOME}/{of}?preset={name}", gettext(preset["label"])))
    return FieldRoom(of, PLACES[of], rows, presets, len(declared_fields) >= MAX_FIELDS)


def _declared(preset: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a preset, with its label and its help in the language of the operator."""
    values: dict[str, Any] = {}
    for name, value in preset.items():
        if name in {"label", "help"}:
            values[name] = gettext(value)
        else:
            values[name] = tuple(value) if isinstance(value, list) else value
    return values


def _address(of: str, key: str) -> str:
    return f"{HOME}/{of}/{key}"


def _version(text: str) -> int:
    """Return the version that a page showed, which is changed only if there is no later one."""
    number = whole_number(text)
    if number is None:
        raise Conflict(
            gettext("The page does not say which version of the settings it shows."), gettext("Open the page again.")
        )
    return number


def values_of(declared: Declaration) -> JSONObject:
    """Return a declaration as the values of the form."""
    values = {name: getattr(declared, name) for name in _AS_DECLARED}
    values["choices"] = "\n".join(declared.choices)
    for name in ("min", "max"):
        bound = getattr(declared, name)
        values[name] = "" if bound is None else f"{bound:.15g}"
    return values


def key_of(label: str) -> str:
    """Return a key made of a label: Year of construction is yearOfConstruction."""
    plain = unicodedata.normalize("NFKD", label.replace("ß", "ss")).encode("ascii", "ignore").decode()
    first, *others = re.findall(r"[A-Za-z0-9]+", plain) or [""]
    key = first.lower()
    for word in others:
        key += word[:1].upper() + word[1:].lower()
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
