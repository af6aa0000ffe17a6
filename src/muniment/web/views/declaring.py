"""The operator's pages of declared fields: list, add, edit, move, retire, remove, each as a version of the settings."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import msgspec
from django import forms
from django.conf import settings
from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.utils.translation import gettext, gettext_lazy, ngettext

from muniment.kernel.problems import Conflict
from muniment.registry.declared import editing, progress
from muniment.registry.declared.stored import StoredValues
from muniment.registry.publishing import publisher
from muniment.registry.settings.versions import latest_version
from muniment.registry_toml.applied import Applied
from muniment.registry_toml.reading import InvalidSettings
from muniment.schema.declared.declarations import (
    MAX_FIELDS,
    Declaration,
    field_of,
    parameters_of,
    sample_of,
)
from muniment.schema.declared.faults import FieldsError
from muniment.schema.declared.presets import OF_COMPANIES, PRESETS
from muniment.schema.record import Record
from muniment.searches.saved_searches import count_searches_by
from muniment.web.authoring.field_form import KINDS, PLACES, FieldForm, values_of
from muniment.web.form_fields import form_field
from muniment.web.presenters.company import further_fields
from muniment.web.requests.access import actor_of, operator
from muniment.web.requests.once import once
from muniment.web.requests.pages import Question, Words, ask, problems_shown
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


@operator("GET", "HEAD")
def fields(request: HttpRequest) -> HttpResponse:
    """List the declared fields, with how many values each has, and whether they are in use."""
    latest = latest_version()
    found = editing.list_fields(latest)
    context = {
        "number": latest.number,
        "rooms": [_room(of, [each for each in found if each.declared.of == of]) for of in PLACES],
        "is_declared": bool(found),
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
            number = _version(request.GET.get("version", ""))
            made = editing.remove_field(actor_of(request), of, key, expected_number=number)
            messages.success(request, str(_APPLIED) % {"number": made})
        return HttpResponseRedirect(HOME)
    n = next(each.values.n for each in editing.list_fields(latest) if each.declared == declared)
    searches = count_searches_by(_COLLECTIONS[of], parameters_of(declared))
    kept = gettext("The field has no values.")
    if n:
        said = ngettext(
            "%(n)d value is kept. It is shown under “More details” and exported, but can no longer be edited or"
            " filtered by.",
            "%(n)d values are kept. They are shown under “More details” and exported, but can no longer be edited or"
            " filtered by.",
            n,
        )
        kept = said % {"n": n}
    sentences = [
        kept,
        gettext("Declare a field with the key %(key)s again, and they are its values again.") % {"key": key},
        gettext("To hide the values too, retire the field instead."),
    ]
    if searches:
        said = ngettext(
            "%(n)d saved search filters by it, and will find more.",
            "%(n)d saved searches filter by it, and will find more.",
            searches,
        )
        sentences.append(said % {"n": searches})
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
    context = {
        "form": form,
        "title": title,
        "of": of,
        "of_label": PLACES[of],
        "key": key,
        "number": number,
        "found": found,
        "collection": _COLLECTIONS[of],
        "preview": _preview(found) if found is not None and not form.errors else None,
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


def _room(of: str, found: Sequence[editing.Field]) -> FieldRoom:
    taken = {each.declared.key for each in found}
    rows = [
        FieldRow(
            each.declared,
            KINDS[each.declared.kind],
            each.values,
            _address(of, each.declared.key),
            each is found[0],
            each is found[-1],
        )
        for each in found
    ]
    presets = [
        (f"{HOME}/{of}?preset={name}", gettext(preset["label"]))
        for name, preset in PRESETS.items()
        if name not in taken and (of == "company" or name not in OF_COMPANIES)
    ]
    return FieldRoom(of, PLACES[of], rows, presets, len(found) >= MAX_FIELDS)


def _declared(preset: dict[str, Any]) -> dict[str, Any]:
    """Return the values of a preset, with its label and its help in the language of the operator."""
    values: dict[str, Any] = {**preset}
    values |= {name: gettext(preset[name]) for name in ("label", "help") if name in preset}
    return {name: tuple(value) if isinstance(value, list) else value for name, value in values.items()}


def _address(of: str, key: str) -> str:
    return f"{HOME}/{of}/{key}"


def _version(text: str) -> int:
    """Return the version that a page showed, which is changed only if there is no later one."""
    if text.isascii() and text.isdigit() and len(text) < 10:
        return int(text)
    raise Conflict(
        gettext("The page does not say which version of the settings it shows."), gettext("Open the page again.")
    )
