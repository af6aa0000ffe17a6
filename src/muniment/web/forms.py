"""
The form of a listing, in short steps.

The schema declares the fields and validates them. A form turns the submitted values into a change, and shows each
fault beside its field.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
from django import forms
from django.conf import settings
from django.http import QueryDict
from django.utils.translation import gettext, gettext_noop

from muniment.kernel.json import JSONMapping, JSONObject
from muniment.schema.company_parts import ADDRESS, PERSON_OF_POSITION, POOL, POSITION, PROPOSAL, VOTES
from muniment.schema.kinds import Choice, Number
from muniment.schema.record import Field, Record
from muniment.schema.validation import Fault
from muniment.web.form_fields import form_field

BLANK_ROWS: Final = 2


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
        further = [name for name in settings.SCHEMA.company.editable if name not in _NAMED] if cls.rest else []
        return [fields[name] for name in (*cls.names, *further)]

    def to_wire(self) -> JSONObject:
        """Return the submitted values as a change; an empty field is cleared."""
        data = self.cleaned_data
        change: JSONObject = {}
        for field in self.schema_fields():
            if isinstance(field.kind, Record):
                parts = {inner.name: data[f"{field.name}_{inner.name}"] or None for inner in field.kind.fields}
                change[field.name] = parts
            else:
                value = data[field.name]
                change[field.name] = value if field.required or value not in ("", None, []) else None
        return change

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

    def put(self, faults: Iterable[Fault]) -> None:
        """Show faults beside their fields; the others above the form."""
        for fault in faults:
            name = re.split(r"[.\[]", fault.field)[0]
            inner = fault.field.replace(".", "_")
            place = next((each for each in (inner, fault.field, name) if each in self.fields), None)
            self.add_error(place, sentence(fault) if place else f"{fault.field} {fault.reason}.")


def sentence(fault: Fault) -> str:
    return f"{fault.reason[0].upper()}{fault.reason[1:]}."


class Basics(FormStep):
    """The name and what the organization is."""

    names = ("name", "type", "status", "website", "symbol", "industry", "orgKind")


class About(FormStep):
    """Descriptions and figures, and every field that has no other place."""

    names = ("description", "body", "themes", "teamSize", "treasury")
    rest = True

    @classmethod
    def from_bundle(cls, bundle: JSONMapping) -> JSONObject:
        """Show a team size only where it is used."""
        found = super().from_bundle(bundle)
        return {**found, "teamSize": None if bundle.get("positions") else found["teamSize"]}


class Links(FormStep):
    """Addresses on the web."""

    names = ("dao_website", "socials")


_NAMED: Final = {*Basics.names, *About.names, *Links.names, "address"}
"""The fields of a company that a page names; addresses are rows of the team page."""


class Row(NamedTuple):
    """A repeated row for the template: its cells with values and faults, and the stored row it came from."""

    number: int
    was: str
    cells: list[JSONObject]


class Rows:
    """Rows of one part, such as the team, in numbered fields; cleared rows are dropped."""

    def __init__(self, name: str, label: str, hint: str, columns: tuple[Field, ...]) -> None:
        self.name, self.label, self.hint, self.columns = name, label, hint, columns

    def typed(self, post: QueryDict) -> list[dict[str, str]]:
        """Return the submitted rows, cleared ones included; ``was`` names the stored row."""
        numbers = sorted({int(match[1]) for key in post if (match := re.match(rf"{self.name}-(\d{{1,4}})-", key))})
        return [
            {
                "was": post.get(f"{self.name}-{number}-was", ""),
                **{column.name: post.get(f"{self.name}-{number}-{column.name}", "").strip() for column in self.columns},
            }
            for number in numbers
        ]

    def kept(self, typed: list[dict[str, str]]) -> list[int]:
        """Return the indexes of the *typed* rows that are not empty."""
        return [n for n, row in enumerate(typed) if any(row[column.name] for column in self.columns)]

    def shown(self, values: list[dict[str, str]], faults: Mapping[tuple[int, str], str] | None = None) -> list[Row]:
        """Return the rows for the template, followed by some blank ones."""
        blank = {"was": "", **{column.name: "" for column in self.columns}}
        while values and not any(values[-1].values()):
            values = values[:-1]
        rows = []
        for number, value in enumerate([*values, *(blank for _ in range(BLANK_ROWS))]):
            cells = [
                {
                    "id": f"{self.name}-{number}-{column.name}",
                    "label": gettext(column.label),
                    "value": value.get(column.name, ""),
                    "choices": column.kind.values if isinstance(column.kind, Choice) else (),
                    "numeric": isinstance(column.kind, Number),
                    "fault": (faults or {}).get((number, column.name), ""),
                }
                for column in self.columns
            ]
            rows.append(Row(number, str(value.get("was", "")), cells))
        return rows


TEAM: Final = Rows(
    "positions",
    gettext_noop("Team"),
    gettext_noop(
        "To link a person who already has a profile, enter the profile's slug. To remove a row, empty its fields."
    ),
    (*PERSON_OF_POSITION.fields, POSITION.by_name["title"]),
)
ADDRESSES: Final = Rows(
    "address", gettext_noop("Addresses"), gettext_noop("To remove a row, empty its fields."), ADDRESS.fields
)
POOLS: Final = Rows("pools", gettext_noop("Pools"), gettext_noop("How the tokens are distributed."), POOL.fields)
PROPOSALS: Final = Rows(
    "proposals",
    gettext_noop("Proposals"),
    gettext_noop("Governance proposals and their votes."),
    (PROPOSAL.by_name["title"], PROPOSAL.by_name["status"], *VOTES.fields, PROPOSAL.by_name["endDate"]),
)


def number_or_text(text: str) -> float | str | None:
    """Return a number if *text* is one; else *text*, for the operation to reject."""
    plain = text.replace(",", "").removesuffix("%").strip()
    if not plain:
        return None
    try:
        value = float(plain)
    except ValueError:
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def team_to_wire(typed: list[dict[str, str]], standing: list[Any]) -> list[JSONObject]:
    """Return positions from rows; members of a stored position that the form does not show stay."""
    made = []
    for row in (typed[n] for n in TEAM.kept(typed)):
        old = _old(row, standing)
        person = {key: value for key, value in old.get("person", {}).items() if key not in {"name", "slug"}}
        same = old.get("person", {}).get("name") == row["name"]
        slug = row["slug"] or (old.get("person", {}).get("slug", "") if same else "")
        who = {**({"slug": slug} if slug else {}), **({"name": row["name"]} if row["name"] else {}), **person}
        rest = {key: value for key, value in old.items() if key not in {"title", "person"}}
        made.append({**({"title": row["title"]} if row["title"] else {}), "person": who, **rest})
    return made


def team_from_wire(positions: Iterable[JSONMapping]) -> list[dict[str, str]]:
    return [
        {
            "was": str(n),
            "name": each["person"].get("name", ""),
            "slug": each["person"].get("slug", ""),
            "title": each.get("title") or "",
        }
        for n, each in enumerate(positions)
    ]


def addresses_to_wire(typed: list[dict[str, str]]) -> list[dict[str, str | None]] | None:
    made = [{c.name: typed[n][c.name] or None for c in ADDRESSES.columns} for n in ADDRESSES.kept(typed)]
    return made or None


def pools_to_wire(typed: list[dict[str, str]]) -> list[JSONObject]:
    return [{"name": typed[n]["name"], "percentage": number_or_text(typed[n]["percentage"])} for n in POOLS.kept(typed)]


def proposals_to_wire(typed: list[dict[str, str]], standing: list[Any]) -> list[JSONObject]:
    """Return proposals from rows; members of a stored proposal that the form does not show stay."""
    made = []
    for n in PROPOSALS.kept(typed):
        row, old = typed[n], _old(typed[n], standing)
        votes = {
            **old.get("votes", {}),
            **{key: number_or_text(row[key]) for key in ("for", "against") if row[key] or key in old.get("votes", {})},
        }
        new = {
            **({"id": old["id"]} if "id" in old else {"id": f"p{n + 1}"}),
            **{key: row[key] for key in ("title", "status", "endDate") if row[key]},
            **({"votes": {key: value or 0 for key, value in votes.items()}} if votes else {}),
        }
        rest = {key: value for key, value in old.items() if key not in {"id", "title", "status", "endDate", "votes"}}
        made.append({**new, **rest})
    return made


def proposals_from_wire(proposals: Iterable[JSONMapping]) -> list[dict[str, str]]:
    rows = []
    for n, each in enumerate(proposals):
        votes = each.get("votes") or {}
        rows.append(
            {
                "was": str(n),
                **{key: str(each.get(key) or "") for key in ("title", "status", "endDate")},
                **{key: "" if votes.get(key) is None else str(votes[key]) for key in ("for", "against")},
            }
        )
    return rows


def holders_to_wire(text: str, standing: list[Any]) -> list[JSONObject]:
    """Return a cap table from lines of name; address; tokens; percent. Unknown values stay empty."""
    by_place = {(each.get("name", ""), each.get("address", "")): each for each in standing}
    made = []
    for line in text.splitlines():
        if not line.strip():
            continue
        name, address, tokens, percent, *_ = [*(cell.strip() for cell in re.split(r"[;\t]", line)), "", "", "", ""]
        old = by_place.get((name, address), {})
        given = {"address": address, "name": name, "tokens": tokens, "percentage": number_or_text(percent)}
        made.append({**old, **{key: value for key, value in given.items() if value not in {"", None}}})
    return made


def holders_from_wire(holders: Iterable[JSONMapping]) -> str:
    """Return the lines of a cap table."""
    return "\n".join(
        "; ".join(str(each.get(key, "")) for key in ("name", "address", "tokens", "percentage")) for each in holders
    )


def _old(row: Mapping[str, str], standing: list[Any]) -> JSONObject:
    at = row.get("was", "")
    return dict(standing[int(at)]) if re.fullmatch(r"[0-9]{1,6}", at) and int(at) < len(standing) else {}


def plain(parts: Any) -> Any:
    """Decode the JSON inside a bundle into plain values."""
    return msgspec.json.decode(msgspec.json.encode(parts))


def row_faults(faults: Iterable[Fault], rows: Rows, kept: list[int]) -> tuple[dict[tuple[int, str], str], list[str]]:
    """Return the faults of cells, such as ``positions[2].person.slug``, and the others as sentences."""
    cells: dict[tuple[int, str], str] = {}
    others: list[str] = []
    names = {column.name for column in rows.columns}
    for fault in faults:
        match = re.search(r"\[(\d+)\](.*)$", fault.field)
        inner = match[2].rpartition(".")[2] if match else ""
        if match and int(match[1]) < len(kept):
            column = inner if inner in names else rows.columns[0].name
            cells[kept[int(match[1])], column] = sentence(fault)
        else:
            others.append(f"{fault.field} {fault.reason}.")
    return cells, others
