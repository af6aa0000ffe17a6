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
        fields: dict[str, forms.Field] = {}
        for field in self.schema_fields():
            if isinstance(field.kind, Record):
                for inner in field.kind.fields:
                    fields[f"{field.name}_{inner.name}"] = form_field(inner)
            else:
                fields[field.name] = form_field(field)
        self.fields = {**fields, **self.fields}

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
        change: JSONObject = {}
        for field in self.schema_fields():
            if isinstance(field.kind, Record):
                members = self._edited_members(field.name, field.kind)
                if members:
                    change[field.name] = members
            elif field.name in data and self.is_edited(field.name):
                value = data[field.name]
                # A required field cannot be cleared: sent empty, it gets the fault that says so.
                if value in ("", None, []) and not field.required:
                    value = None
                change[field.name] = value
        return change

    def _edited_members(self, field_name: str, record: Record) -> JSONObject:
        """Return the members of a record that were edited; an emptied one is cleared."""
        members: JSONObject = {}
        for inner in record.fields:
            name = f"{field_name}_{inner.name}"
            if name in self.cleaned_data and self.is_edited(name):
                members[inner.name] = self.cleaned_data[name] or None
        return members

    def is_edited(self, name: str) -> bool:
        """Return whether a field came back with another text than it was shown with, browsers' line ends aside."""
        field, posted = self.fields[name], self.data.get(name)
        if field.disabled or posted is None:
            return False
        shown = field.prepare_value(self.get_initial_for_field(field, name))
        ends = "\n" if isinstance(field.widget, forms.Textarea) else ""  # an input has one line
        shown_text = "" if shown is None else str(shown)
        before = re.sub(r"\r\n?|\n", ends, shown_text)
        after = re.sub(r"\r\n?|\n", ends, str(posted))
        return before != after

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values for the fields."""
        company = bundle["company"]
        values: JSONObject = {}
        for field in cls.schema_fields():
            value = company.get(field.name)
            if isinstance(field.kind, Record):
                members = value or {}
                for inner in field.kind.fields:
                    values[f"{field.name}_{inner.name}"] = members.get(inner.name)
            else:
                values[field.name] = value
        return values

    def note_pending(self, notes: JSONMapping) -> None:
        """Show beside each field what waits for a reviewer, or what is published until then."""
        for name, words in notes.items():
            if name in self.fields:
                self.fields[name].note = words  # type: ignore[attr-defined]  # the tag that shows a field looks for it

    def put(self, faults: Iterable[Fault]) -> None:
        """Show faults beside their fields; the others above the form."""
        for fault in faults:
            # The field of an inner member is named after both; a fault inside a list is shown beside the list.
            inner = fault.field.replace(".", "_")
            outer = re.split(r"[.\[]", fault.field)[0]
            if inner in self.fields:
                self.add_error(inner, sentence(fault.reason))
            elif outer in self.fields:
                self.add_error(outer, sentence(fault.reason))
            else:
                self.add_error(None, stated(fault.sentence))


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
        counted = self.initial.get("counted")
        if counted:
            label, help_text = self.fields["teamSize"].label, gettext("Counted from the team of this listing.")
            self.fields["teamSize"] = TextField(label=label, help_text=help_text, disabled=True, required=False)
            self.initial["teamSize"] = counted

    def to_wire(self) -> JSONObject:
        """Return the change, with the exact treasury: the text alone may mean the rounded one that pages show."""
        change = super().to_wire()
        if change.get("treasury") is None:
            return change
        fields = settings.SCHEMA.company.by_name
        validation = Validation(change=True)
        amount = fields["treasury"].kind.read(change["treasury"], (), validation)
        if validation.faults:
            return change  # the operation says what is wrong
        del change["treasury"]
        return {**change, "treasuryAmount": fields["treasuryAmount"].kind.wire(amount)}

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values, with the exact treasury."""
        values = super().from_bundle(bundle)
        exact = bundle["company"].get("treasuryAmount")
        if exact:
            kind = settings.SCHEMA.company.by_name["treasury"].kind
            values["treasury"] = kind.wire(parse_amount(exact["amount"]))
        return {**values, "counted": counted_team(bundle.get("positions") or [])}


class Links(FormStep):
    """Addresses on the web."""

    names = ("dao_website", "socials")


_NAMED: Final = {*Basics.names, *About.names, *Links.names, "address", "treasuryAmount"}
"""The fields of a company that a page names; addresses are rows of the team page, and treasury is the exact one."""


def plain(parts: Any) -> Any:
    """Decode the JSON inside a bundle into plain values."""
    return msgspec.json.decode(msgspec.json.encode(parts))
