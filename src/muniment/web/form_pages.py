"""Pages of the listing form, with single fields and lists of rows, behind one interface."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

from django.http import Http404, QueryDict

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.languages.translated import stated
from muniment.registry_toml.vocabulary import hidden_members
from muniment.schema.company_parts import DISTRIBUTION
from muniment.schema.item_lists import ItemList
from muniment.schema.validation import Fault
from muniment.web import forms
from muniment.web.form_fields import form_field
from muniment.web.forms import FormStep
from muniment.web.row_editor import RowEditor
from muniment.web.row_lists import DISTRIBUTED, HOLDERS, PLACES, TEAM, VOTED, RowList, funding_rounds

_DISTRIBUTION: Final = tuple(field for field in DISTRIBUTION.fields if not isinstance(field.kind, ItemList))
UNFOLDED_LISTS: Final = 2
UNFOLDED_ROWS: Final = 10
"""On a page of more lists, one of more rows opens on demand: so the page stays short on a phone."""
_NO_QUERY: Final[Mapping[str, str]] = {}


class FormPage:
    """
    One page of the form, with the stored values of *bundle*: the single fields of *step*, and lists of rows.

    Args:
        query: the parameters of the page, which name the shown rows of each list.
    """

    form: FormStep | None
    lists: tuple[RowList, ...] = ()

    def __init__(
        self, bundle: JSONMapping, step: type[FormStep] | None = None, query: Mapping[str, str] = _NO_QUERY
    ) -> None:
        self.bundle = bundle
        self._step = step
        self.form = step(initial=step.from_bundle(bundle)) if step is not None else None
        self.editors = [RowEditor(rows, forms.plain(rows.stored(bundle)), query) for rows in self.all_lists()]
        for editor in self.editors:
            editor.folds = len(self.editors) > UNFOLDED_LISTS and len(editor.stored) > UNFOLDED_ROWS
        self.sentences: list[str] = []

    def all_lists(self) -> tuple[RowList, ...]:
        return self.lists

    def read(self, post: QueryDict) -> None:
        for editor in self.editors:
            editor.read(post)
        self.form = self._step(post, initial=self._step.from_bundle(self.bundle)) if self._step is not None else None

    def is_valid(self) -> bool:
        """Return whether the submitted values can be passed to the operation."""
        if self.form is not None and not self.form.is_valid():
            return False
        return not any(editor.has_faults for editor in self.editors)

    def to_wire(self) -> JSONObject:
        """Return the change; lists give operations on single rows."""
        change = self.form.to_wire() if self.form is not None else {}
        for editor in self.editors:
            operations = editor.change()
            if not operations:
                continue
            # A change has the members of the company beside its lists.
            if editor.list.within in {"", "company"}:
                change[editor.name] = operations
            else:
                change.setdefault(editor.list.within, {})[editor.name] = operations
        return change

    def totals(self, change: JSONMapping) -> dict[str, int]:
        """Return the number of stored rows of each list that *change* replaces as a whole."""
        lists = {**change, **(change.get("distribution") or {})}
        totals = {}
        for editor in self.editors:
            if isinstance(lists.get(editor.name), list):
                totals[editor.name] = len(editor.stored)
        return totals

    def put(self, faults: Iterable[Fault]) -> None:
        """Attach each fault to its field or row."""
        others = list(faults)
        for editor in self.editors:
            others = editor.put(others)
        if self.form is not None:
            self.form.put(others)
        else:
            self.sentences += [stated(fault.sentence) for fault in others]

    @property
    def has_faults(self) -> bool:
        """Return whether any value was rejected."""
        if self.sentences or any(editor.has_faults for editor in self.editors):
            return True
        return self.form is not None and bool(self.form.errors)

    def next_query(self, wanted: Mapping[str, str], *, shows_added: bool) -> tuple[dict[str, str], str]:
        """Return the parameters of the page after a save, and the list that shows other rows than before, if any."""
        query = {"new": "1"} if wanted.get("new") else {}
        turned_list = ""
        for editor in self.editors:
            parameters = editor.next_parameters(wanted, shows_added=shows_added)
            if not turned_list and parameters != editor.parameters:
                turned_list = editor.name
            query |= parameters
        return query, turned_list

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters of the page."""
        names = ["new"]
        for editor in self.editors:
            names += [editor.page_parameter, editor.search_parameter]
        return tuple(names)


class Team(FormPage):
    """The page of team and addresses."""

    lists = (TEAM, PLACES)


class Token(FormPage):
    """The page of distribution, votes, holders and funding rounds."""

    def all_lists(self) -> tuple[RowList, ...]:
        hidden = hidden_members()
        lists = (DISTRIBUTED, VOTED, HOLDERS, funding_rounds())
        return tuple(rows for rows in lists if hidden.isdisjoint({rows.name, rows.within}))


class TokenStep(FormStep):
    """The single fields of the token page."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        if "distribution" not in hidden_members():
            self.fields |= {field.name: form_field(field) for field in _DISTRIBUTION}

    def to_wire(self) -> JSONObject:
        """Return the fields that differ from what was shown."""
        changed = {}
        for name in self.fields:
            if self.is_edited(name):
                changed[name] = self.cleaned_data[name] or None
        return {"distribution": changed} if changed else {}

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values of the fields."""
        distribution = bundle.get("distribution") or {}
        return {field.name: distribution.get(field.name) or "" for field in _DISTRIBUTION}


def page_of(
    step: str, plain: type[FormStep] | None, bundle: JSONMapping, query: Mapping[str, str] = _NO_QUERY
) -> FormPage:
    """Return the page of *step*, with the stored values."""
    if plain is not None:
        return FormPage(bundle, plain)
    if step == "team":
        return Team(bundle, None, query)
    if step == "token":
        return Token(bundle, TokenStep, query)
    raise Http404("unknown step of the form")
