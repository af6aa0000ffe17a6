"""
The form of a listing, in short steps.

The schema declares the fields and validates them. A form turns the submitted values into a change, and shows each
fault beside its field. Lists with rows have the row editor.
"""

import re
import sqlite3
from collections.abc import Iterable
from typing import Any, ClassVar, Final

import msgspec
from django import forms
from django.conf import settings
from django.utils.translation import gettext, gettext_lazy

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.wire import parse_amount
from muniment.languages.translated import sentence, stated
from muniment.registry_toml.vocabulary import hidden_members
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault, Validation
from muniment.web.form_fields import Suggesting, TextField, form_field
from muniment.web.presenters.company_lists import counted_team
from muniment.web.requests.page_cache import reader

NEEDED: Final = {
    "type": gettext_lazy("type"),
    "description": gettext_lazy("summary"),
    "website": gettext_lazy("website"),
}
"""Fields that a submission needs, with their words on the page."""


MAX_SUGGESTED: Final = 100
"""Values of public listings that a field suggests after those of the vocabulary, the most frequent first."""


class FormStep(forms.Form):
    """One page of the form. ``names`` are fields of the schema; ``rest`` adds those that no page names."""

    names: ClassVar[tuple[str, ...]] = ()
    rest: ClassVar[bool] = False

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        made: dict[str, forms.Field] = {}
        for field in self.schema_fields():
            if isinstance(field.kind, Record):
                made |= {f"{field.name}_{inner.name}": form_field(inner) for inner in field.kind.fields}
            else:
                made[field.name] = form_field(field)
        self.fields = {**made, **self.fields}

    @classmethod
    def schema_fields(cls) -> list[Field]:
        fields = settings.SCHEMA.company_change.by_name
        further = []
        if cls.rest:
            further = [name for name in settings.SCHEMA.company.editable if name not in _NAMED]
        hidden = hidden_members()
        return [fields[name] for name in (*cls.names, *further) if name not in hidden]

    def to_wire(self) -> JSONObject:
        """
        Return the submitted values that differ from those shown, as a change; an emptied field is cleared.

        Values that the form itself refuses are left out.
        """
        data = self.cleaned_data
        edited = {name for name in data if self.is_edited(name)}
        change: JSONObject = {}
        for field in self.schema_fields():
            if isinstance(field.kind, Record):
                names = {inner.name: f"{field.name}_{inner.name}" for inner in field.kind.fields}
                if parts := {inner: data[name] or None for inner, name in names.items() if name in edited}:
                    change[field.name] = parts
            elif field.name in edited:
                value = data[field.name]
                change[field.name] = value if field.required or value not in ("", None, []) else None
        return change

    def is_edited(self, name: str) -> bool:
        """Return whether a field came back with another text than it was shown with, browsers' line ends aside."""
        field, posted = self.fields[name], self.data.get(name)
        if field.disabled or posted is None:
            return False
        shown = field.prepare_value(self.get_initial_for_field(field, name))
        ends = "\n" if isinstance(field.widget, forms.Textarea) else ""  # an input has one line
        shown_text = "" if shown is None else str(shown)
        before, after = (re.sub(r"\r\n?|\n", ends, text) for text in (shown_text, str(posted)))
        return before != after

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values for the fields."""
        company = bundle["company"]
        found: JSONObject = {}
        for field in cls.schema_fields():
            value = company.get(field.name)
            if isinstance(field.kind, Record):
                found |= {f"{field.name}_{inner.name}": (value or {}).get(inner.name) for inner in field.kind.fields}
            else:
                found[field.name] = value
        return found

    def note_pending(self, notes: JSONMapping) -> None:
        """Show beside each field what waits for a reviewer, or what is published until then."""
        for name, words in notes.items():
            if name in self.fields:
                self.fields[name].note = words  # type: ignore[attr-defined]  # the tag that shows a field looks for it

    def put(self, faults: Iterable[Fault]) -> None:
        """Show faults beside their fields; the others above the form."""
        for fault in faults:
            name = re.split(r"[.\[]", fault.field)[0]
            inner = fault.field.replace(".", "_")
            place = next((each for each in (inner, fault.field, name) if each in self.fields), None)
            self.add_error(place, sentence(fault.reason) if place else stated(fault.sentence))


class ListingStep(FormStep):
    """A page of the listing's own form, which says what a submission needs and suggests what others have entered."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for name in NEEDED.keys() & self.fields.keys():
            self.fields[name].needed = True  # type: ignore[attr-defined]  # the tag that shows a field looks for it
        for name, field in self.fields.items():
            if isinstance(field.widget, Suggesting):
                field.widget.values = tuple(dict.fromkeys((*field.widget.values, *_values_in_use(name))))


def _values_in_use(name: str) -> list[str]:
    """Return what public listings have of a field; nothing on a node whose copy is not there yet."""
    try:
        return reader().values("company", name, MAX_SUGGESTED)
    except sqlite3.OperationalError:
        return []


class Basics(ListingStep):
    """The name and what the organization is."""

    names = ("name", "type", "status", "website", "symbol", "industry", "orgKind")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields["name"].error_messages["required"] = gettext("Enter the name of the organization.")


class About(ListingStep):
    """Descriptions and figures, and every field that has no other place."""

    names = ("description", "body", "themes", "teamSize", "treasury")
    rest = True

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if counted := self.initial.get("counted"):
            label, help_text = self.fields["teamSize"].label, gettext("Counted from the team of this listing.")
            self.fields["teamSize"] = TextField(label=label, help_text=help_text, disabled=True, required=False)
            self.initial["teamSize"] = counted

    def to_wire(self) -> JSONObject:
        """Return the change, with the exact treasury: the text alone may mean the rounded one that pages show."""
        change = super().to_wire()
        text = change.get("treasury")
        amount = settings.SCHEMA.company.by_name["treasury"].kind.read(text, (), validation := Validation(change=True))
        if text is None or validation.faults:
            return change
        del change["treasury"]
        return {**change, "treasuryAmount": settings.SCHEMA.company.by_name["treasuryAmount"].kind.wire(amount)}

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values, with the exact treasury."""
        found = super().from_bundle(bundle)
        fields = settings.SCHEMA.company.by_name
        if exact := bundle["company"].get("treasuryAmount"):
            found["treasury"] = fields["treasury"].kind.wire(parse_amount(exact["amount"]))
        return {**found, "counted": counted_team(bundle.get("positions") or [])}


class Links(FormStep):
    """Addresses on the web."""

    names = ("dao_website", "socials")


_NAMED: Final = {*Basics.names, *About.names, *Links.names, "address", "treasuryAmount"}
"""The fields of a company that a page names; addresses are rows of the team page, and treasury is the exact one."""


def plain(parts: Any) -> Any:
    """Decode the JSON inside a bundle into plain values."""
    return msgspec.json.decode(msgspec.json.encode(parts))
