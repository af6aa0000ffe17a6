"""
Changes of a listing, validated by the schema. Pure: no database access.

Source: decisions, section 5, update_*; tools, update_my_company.
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any, Final

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.kernel.phrases.phrase import Joined, Phrase, either
from muniment.kernel.problems import BadRequest
from muniment.kernel.texts import first_text_fault
from muniment.schema.kinds import Choice, Text
from muniment.schema.objects import Schema
from muniment.schema.record import Record
from muniment.schema.validation import Fault, Validation

HINT: Final = "list_company_form_options lists the accepted values and lengths."
ROWS_HINT: Final = "get_my_company shows the rows of its lists with their ids."
_LIKENESS: Final = 0.75
"""Of an unknown name and the field that it may mean; "state" is not "status"."""
_MAX_UNKNOWN: Final = 5
"""Unknown names that are compared with known ones, by their first characters."""
_MAX_CHARACTERS: Final = 60

Edit = JSONObject
"""A validated change: stored values by field name, None to clear."""


class BadFields(BadRequest):
    """Invalid values. ``faults`` lists each with its field, for forms that show them in place."""

    def __init__(self, faults: Iterable[Fault], hint: str = HINT) -> None:
        self.faults = list(faults)
        named = Joined("; ", (each.sentence for each in self.faults[:5]))
        more = len(self.faults) - 5
        message = (
            Phrase("{faults}; and {more} more.", faults=named, more=more) if more > 0 else Joined("", (named, "."))
        )
        super().__init__(message, hint)


class CompanyChange(dict[str, Any]):
    """
    The fields of a listing to change, by wire name: absent fields stay, None clears.

    Lists replace, objects merge by key. ``fundingRound`` edits the open round or opens one.
    """


def read_change(change: JSONMapping, schema: Schema, *, is_new: bool = False) -> Edit:
    """
    Read *change* of a listing.

    Args:
        is_new: nothing is stored yet. Of a stored listing, values are judged after the change is applied.

    Raises:
        BadFields: values of a wrong type, fields that cannot be edited, such as id or owner.
    """
    edit = read_fields(change, schema.company_change, is_new=is_new)
    # One column, and one name in history: the one that both an old and a new history entry revert.
    return {{"treasuryAmount": "treasury"}.get(name, name): value for name, value in edit.items()}


def read_fields(change: JSONMapping, record: Record, hint: str = HINT, *, is_new: bool = False) -> Edit:
    """
    Read the fields given in *change* by *record*.

    Raises:
        BadFields: invalid values, or fields that cannot be edited.
    """
    if fault := first_text_fault(change):
        raise BadFields([Fault(*fault)], hint)
    validation = Validation(change=True)
    read = validation.read if is_new else validation.parse
    edit: Edit = read(record, dict(change))
    if validation.faults:
        if not is_new:
            validation.judge_too(record, dict(change))
        unknown = sorted(change.keys() - record.editable.keys())
        raise BadFields(validation.faults, _fields_hint(unknown, record) if unknown else hint)
    # The order of the fields in the answer: texts before all others, as in earlier versions.
    return dict(sorted(edit.items(), key=lambda each: not isinstance(record.editable[each[0]].kind, Text | Choice)))


def _fields_hint(unknown: Sequence[str], record: Record) -> Joined:
    """Return which fields there are, and first those that *unknown* names may mean."""
    near = [
        each
        for name in unknown[:_MAX_UNKNOWN]
        for each in difflib.get_close_matches(name[:_MAX_CHARACTERS], record.editable, n=1, cutoff=_LIKENESS)
    ]
    meant = [Phrase("Did you mean {near}?", near=either(list(dict.fromkeys(near))))] if near else []
    return Joined(" ", [*meant, Phrase("Editable fields: {fields}.", fields=", ".join(record.editable))])
