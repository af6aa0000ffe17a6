"""Pages of the listing form, with single fields or repeated rows, behind one interface."""

from collections.abc import Iterable
from typing import Any

from django import forms as django_forms
from django.conf import settings
from django.http import Http404, QueryDict
from django.utils.translation import gettext

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.company_parts import DISTRIBUTION
from muniment.schema.validation import Fault
from muniment.web import forms
from muniment.web.form_fields import form_field
from muniment.web.forms import ADDRESSES, POOLS, PROPOSALS, TEAM, FormStep, Rows

_DISTRIBUTION = tuple(field for field in DISTRIBUTION.fields if field.name != "pools")


class FormPage:
    """One page of the form, with the stored values of *bundle*: the single fields of *step*, and repeated rows."""

    form: FormStep | None
    repeated: tuple[Rows, ...] = ()

    def __init__(self, bundle: JSONMapping, step: type[FormStep] | None = None) -> None:
        self.bundle = bundle
        self._step = step
        self.form = step(initial=step.from_bundle(bundle)) if step is not None else None
        self.typed: dict[str, list[dict[str, str]]] = {}
        self.faults: dict[str, dict[tuple[int, str], str]] = {}
        self.sentences: list[str] = []

    def read(self, post: QueryDict) -> None:
        self.typed = {rows.name: rows.typed(post) for rows in self.repeated}
        self.form = self._step(post) if self._step is not None else None

    def is_valid(self) -> bool:
        """Return whether the submitted values can be passed to the operation."""
        return self.form is None or self.form.is_valid()

    def to_wire(self) -> JSONObject:
        return self.form.to_wire() if self.form is not None else {}

    def standing(self, rows: Rows) -> list[dict[str, str]]:
        raise NotImplementedError

    def put(self, faults: Iterable[Fault]) -> None:
        """Attach each fault to its field or row."""
        left = list(faults)
        for rows in self.repeated:
            mine = [fault for fault in left if rows.name in fault.field.split("[")[0].split(".")]
            left = [fault for fault in left if fault not in mine]
            typed = self.typed.get(rows.name, [])
            self.faults[rows.name], others = forms.row_faults(mine, rows, rows.kept(typed))
            self.sentences += others
        if self.form is not None:
            self.form.put(left)
        else:
            self.sentences += [f"{fault.field} {fault.reason}." for fault in left]

    @property
    def has_faults(self) -> bool:
        """Return whether any value was rejected."""
        return bool(self.sentences or any(self.faults.values()) or (self.form is not None and self.form.errors))

    @property
    def groups(self) -> list[JSONObject]:
        """Return the repeated rows for the template."""
        return [
            {
                "name": rows.name,
                "label": gettext(rows.label),
                "hint": gettext(rows.hint),
                "rows": rows.shown(self.typed.get(rows.name) or self.standing(rows), self.faults.get(rows.name)),
            }
            for rows in self.repeated
        ]


class Team(FormPage):
    """The page of team and addresses."""

    repeated = (TEAM, ADDRESSES)

    def standing(self, rows: Rows) -> list[dict[str, str]]:
        if rows is TEAM:
            return forms.team_from_wire(forms.plain(self.bundle.get("positions") or []))
        return [
            {key: value or "" for key, value in place.items()} for place in self.bundle["company"].get("address") or []
        ]

    def to_wire(self) -> JSONObject:
        standing = forms.plain(self.bundle.get("positions") or [])
        return {
            "positions": forms.team_to_wire(self.typed["positions"], standing),
            "address": forms.addresses_to_wire(self.typed["address"]),
        }


class Token(FormPage):
    """The page of distribution, votes and holders."""

    repeated = (POOLS, PROPOSALS)
    form: "TokenStep"

    def standing(self, rows: Rows) -> list[dict[str, str]]:
        if rows is PROPOSALS:
            return forms.proposals_from_wire(forms.plain(self.bundle.get("proposals") or []))
        pools = (self.bundle.get("distribution") or {}).get("pools") or []
        return [{"name": str(pool.get("name", "")), "percentage": str(pool.get("percentage", ""))} for pool in pools]

    def to_wire(self) -> JSONObject:
        data = self.form.cleaned_data
        pools = forms.pools_to_wire(self.typed["pools"])
        distribution = {field.name: data[field.name] or None for field in _DISTRIBUTION} | {"pools": pools or None}
        return {
            "distribution": distribution if any(distribution.values()) else None,
            "proposals": forms.proposals_to_wire(
                self.typed["proposals"], forms.plain(self.bundle.get("proposals") or [])
            ),
            "capTable": forms.holders_to_wire(data["capTable"], forms.plain(self.bundle.get("capTable") or [])),
        }


class TokenStep(FormStep):
    """The single fields of the token page."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.fields |= {field.name: form_field(field) for field in _DISTRIBUTION}
        self.fields["capTable"] = django_forms.CharField(
            label=gettext(settings.SCHEMA.bundle.by_name["capTable"].label),
            required=False,
            help_text=gettext("One holder per line, separated by semicolons: name; address; tokens; percent."),
            widget=django_forms.Textarea(attrs={"rows": 8, "spellcheck": "false"}),
        )

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Return the stored values of the fields."""
        distribution = bundle.get("distribution") or {}
        return {
            **{field.name: distribution.get(field.name) or "" for field in _DISTRIBUTION},
            "capTable": forms.holders_from_wire(forms.plain(bundle.get("capTable") or [])),
        }


def page_of(step: str, plain: type[FormStep] | None, bundle: JSONMapping) -> FormPage:
    """Return the page of *step*, with the stored values."""
    if plain is not None:
        return FormPage(bundle, plain)
    if step == "team":
        return Team(bundle)
    if step == "token":
        return Token(bundle, TokenStep)
    raise Http404("unknown step of the form")
