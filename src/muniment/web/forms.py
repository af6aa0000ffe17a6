"""
The form of a listing, in short steps: what is shown, what is read, and where a refusal stands.

Rules live in the operations. A form only carries: it makes the wire's change of what was typed, and
puts each fault that comes back beside its field.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

import msgspec
from django import forms
from django.http import QueryDict
from django.utils.translation import gettext_lazy

from muniment.registry.company.form_options import (
    INDUSTRIES,
    MAX_CHARACTERS,
    ORG_KINDS,
    SOCIALS,
    STATUSES,
    TYPES,
)
from muniment.schema.validation import Fault
from muniment.web.presenters.company import SOCIAL_LABELS

BLANK_ROWS: Final = 2


class Suggesting(forms.TextInput):
    """A text input that suggests values and takes others too."""

    template_name = "part/suggesting.html"

    def __init__(self, values: Iterable[str]) -> None:
        super().__init__()
        self.values = tuple(values)

    def get_context(self, name: str, value: Any, attrs: dict[str, Any] | None) -> dict[str, Any]:
        """Add the list of suggestions."""
        context = super().get_context(name, value, {**(attrs or {}), "list": f"list_{name}"})
        return {**context, "list_id": f"list_{name}", "values": self.values}


def _text(label: str, key: str, hint: str = "", *, required: bool = False, **extra: Any) -> forms.CharField:
    return forms.CharField(
        label=label, help_text=hint, required=required, max_length=MAX_CHARACTERS.get(key), strip=True, **extra
    )


class FormStep(forms.Form):
    """One page of the form."""

    title = ""
    lead = ""

    def to_wire(self) -> dict[str, Any]:
        """Give what was typed as the wire's change; an emptied field is cleared."""
        return {key: value or None for key, value in self.cleaned_data.items()}

    @classmethod
    def from_bundle(cls, bundle: Mapping[str, Any]) -> dict[str, Any]:
        """Give what stands, for the fields."""
        company = bundle["company"]
        return {name: company.get(name) or "" for name in cls.base_fields}

    def put(self, faults: Iterable[Fault]) -> None:
        """Put faults beside their fields; what has none stands above the form."""
        for fault in faults:
            name = re.split(r"[.\[]", fault.field)[0]
            inner = fault.field.replace(".", "_")
            place = next((each for each in (inner, fault.field, name) if each in self.fields), None)
            words = f"{fault.reason[0].upper()}{fault.reason[1:]}."
            self.add_error(place, words if place else f"{fault.field} {fault.reason}.")


class Basics(FormStep):
    """Name and kind."""

    title = "Basics"
    lead = "The organization's name and type."

    name = _text("Name", "name", required=True)
    type = _text("Type", "type", "Select a type or enter your own.", widget=Suggesting(TYPES))
    status = forms.ChoiceField(
        label="Status",
        required=False,
        choices=[("", gettext_lazy("Not specified")), *((each, each.capitalize()) for each in STATUSES)],
    )
    website = _text("Website", "website", "Starts with https://")
    symbol = _text("Token symbol", "symbol", "For example HARB. Leave empty if there is no token.")
    industry = _text("Industry", "industry", widget=Suggesting(INDUSTRIES))
    orgKind = _text("Subtype", "orgKind", "For example foundation or protocol.", widget=Suggesting(ORG_KINDS))  # noqa: N815 - the wire's name

    def to_wire(self) -> dict[str, Any]:
        """Keep the name a text: an empty one is a fault, not a clearing."""
        return {**super().to_wire(), "name": self.cleaned_data["name"]}


class About(FormStep):
    """Words."""

    title = "About"
    lead = "A short summary for lists and a full description for the company's page."

    description = _text("Summary", "description", "One or two sentences.", widget=forms.Textarea(attrs={"rows": 3}))
    body = _text(
        "Full description",
        "body",
        "Markdown: headings, lists, links, tables.",
        widget=forms.Textarea(attrs={"rows": 12}),
    )
    themes = forms.CharField(label="Themes", required=False, help_text="Separate themes with commas.")
    teamSize = forms.IntegerField(  # noqa: N815 - the wire's name
        label="Team size", required=False, min_value=0, help_text="Used only while the team is empty."
    )
    treasury = _text("Treasury", "treasury", "For example $1.2M.")

    def to_wire(self) -> dict[str, Any]:
        """Split the themes; keep a team of nought."""
        data = self.cleaned_data
        themes = [each.strip() for each in data["themes"].split(",") if each.strip()]
        return {**super().to_wire(), "themes": themes or None, "teamSize": data["teamSize"]}

    @classmethod
    def from_bundle(cls, bundle: Mapping[str, Any]) -> dict[str, Any]:
        """Join the themes; show a team size only where it counts."""
        company = bundle["company"]
        shown = {name: company.get(name, "") for name in ("description", "body", "treasury")}
        size = "" if bundle.get("positions") else company.get("teamSize", "")
        return {**shown, "themes": ", ".join(company.get("themes") or ()), "teamSize": size}


class Links(FormStep):
    """Ways to reach them."""

    title = "Links"
    lead = "Your website and social profiles. All fields are optional."

    dao_website = _text("DAO website", "dao_website", "Starts with https://")

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for key in SOCIALS:
            self.fields[f"socials_{key}"] = _text(SOCIAL_LABELS.get(key, key.capitalize()), "socials")

    def to_wire(self) -> dict[str, Any]:
        """Gather the links."""
        data = self.cleaned_data
        return {
            "dao_website": data["dao_website"] or None,
            "socials": {key: data[f"socials_{key}"] or None for key in SOCIALS},
        }

    @classmethod
    def from_bundle(cls, bundle: Mapping[str, Any]) -> dict[str, Any]:
        """Spread the links."""
        company = bundle["company"]
        socials = company.get("socials") or {}
        return {
            "dao_website": company.get("dao_website", ""),
            **{f"socials_{key}": socials.get(key) or "" for key in SOCIALS},
        }


class Column(NamedTuple):
    """A cell of a repeated row."""

    name: str
    label: str
    numeric: bool = False
    choices: tuple[str, ...] = ()


class Row(NamedTuple):
    """A repeated row as it is shown: its cells with values and faults, and the standing row it came from."""

    number: int
    was: str
    cells: list[dict[str, Any]]


class Rows:
    """Rows of one part, such as the team: typed into numbered fields, emptied rows left out."""

    def __init__(self, name: str, label: str, hint: str, columns: tuple[Column, ...]) -> None:
        self.name, self.label, self.hint, self.columns = name, label, hint, columns

    def typed(self, post: QueryDict) -> list[dict[str, str]]:
        """Read the rows, emptied ones included; ``was`` names the standing row."""
        numbers = sorted(
            {int(match[1]) for key in post if (match := re.match(rf"{self.name}-(\d{{1,4}})-", key))},
        )
        return [
            {
                "was": post.get(f"{self.name}-{number}-was", ""),
                **{column.name: post.get(f"{self.name}-{number}-{column.name}", "").strip() for column in self.columns},
            }
            for number in numbers
        ]

    def kept(self, typed: list[dict[str, str]]) -> list[int]:
        """Give which of the *typed* rows hold anything."""
        return [n for n, row in enumerate(typed) if any(row[column.name] for column in self.columns)]

    def shown(self, values: list[dict[str, str]], faults: Mapping[tuple[int, str], str] | None = None) -> list[Row]:
        """Give rows for the page, some blank ones after them."""
        blank = {"was": "", **{column.name: "" for column in self.columns}}
        while values and not any(values[-1].values()):
            values = values[:-1]
        rows = []
        for number, value in enumerate([*values, *(blank for _ in range(BLANK_ROWS))]):
            cells = [
                {
                    "id": f"{self.name}-{number}-{column.name}",
                    "label": column.label,
                    "value": value.get(column.name, ""),
                    "choices": column.choices,
                    "numeric": column.numeric,
                    "fault": (faults or {}).get((number, column.name), ""),
                }
                for column in self.columns
            ]
            rows.append(Row(number, str(value.get("was", "")), cells))
        return rows


TEAM: Final = Rows(
    "positions",
    "Team",
    "To link a person who already has a profile, enter the profile's slug. To remove a row, clear it.",
    (Column("name", "Name"), Column("slug", "Link to existing profile"), Column("title", "Position")),
)
ADDRESSES: Final = Rows(
    "address",
    "Addresses",
    "To remove a row, clear it.",
    (
        Column("address_1", "Street"),
        Column("address_2", "Address line 2"),
        Column("city", "City"),
        Column("state", "State or region"),
        Column("zip", "Postal code"),
    ),
)
POOLS: Final = Rows(
    "pools",
    "Pools",
    "How the tokens are distributed.",
    (Column("name", "Pool"), Column("percentage", "Percent", numeric=True)),
)
PROPOSALS: Final = Rows(
    "proposals",
    "Proposals",
    "Governance proposals and their votes.",
    (
        Column("title", "Title"),
        Column("status", "Status", choices=("active", "passed", "failed", "pending")),
        Column("for", "Votes for", numeric=True),
        Column("against", "Votes against", numeric=True),
        Column("endDate", "End date (YYYY-MM-DD)"),
    ),
)


def number_or_text(text: str) -> float | str | None:
    """Read a number where one was typed; anything else stays, for the operation to refuse."""
    plain = text.replace(",", "").removesuffix("%").strip()
    if not plain:
        return None
    try:
        value = float(plain)
    except ValueError:
        return text
    return int(value) if value.is_integer() and abs(value) < 2**53 else value


def team_to_wire(typed: list[dict[str, str]], standing: list[Any]) -> list[dict[str, Any]]:
    """Make positions of rows; what a standing position holds beside the form's fields stays."""
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


def team_from_wire(positions: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Give rows of positions."""
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
    """Make addresses of rows."""
    made = [{c.name: typed[n][c.name] or None for c in ADDRESSES.columns} for n in ADDRESSES.kept(typed)]
    return made or None


def pools_to_wire(typed: list[dict[str, str]]) -> list[dict[str, Any]]:
    """Make pools of rows."""
    return [{"name": typed[n]["name"], "percentage": number_or_text(typed[n]["percentage"])} for n in POOLS.kept(typed)]


def proposals_to_wire(typed: list[dict[str, str]], standing: list[Any]) -> list[dict[str, Any]]:
    """Make proposals of rows; what a standing one holds beside the form's fields stays."""
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


def proposals_from_wire(proposals: Iterable[Mapping[str, Any]]) -> list[dict[str, str]]:
    """Give rows of proposals."""
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


def holders_to_wire(text: str, standing: list[Any]) -> list[dict[str, Any]]:
    """Make a cap table of lines: name; address; tokens; percent. What is unknown stays empty between the signs."""
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


def holders_from_wire(holders: Iterable[Mapping[str, Any]]) -> str:
    """Give the lines of a cap table."""
    return "\n".join(
        "; ".join(str(each.get(key, "")) for key in ("name", "address", "tokens", "percentage")) for each in holders
    )


def _old(row: Mapping[str, str], standing: list[Any]) -> dict[str, Any]:
    at = row.get("was", "")
    return dict(standing[int(at)]) if re.fullmatch(r"[0-9]{1,6}", at) and int(at) < len(standing) else {}


def plain(parts: Any) -> Any:
    """Read finished JSON inside a bundle into plain values."""
    return msgspec.json.decode(msgspec.json.encode(parts))


def row_faults(faults: Iterable[Fault], rows: Rows, kept: list[int]) -> tuple[dict[tuple[int, str], str], list[str]]:
    """Sort faults of the form ``positions[2].person.slug`` to their cells; the others are given as sentences."""
    cells: dict[tuple[int, str], str] = {}
    others: list[str] = []
    names = {column.name for column in rows.columns}
    for fault in faults:
        match = re.search(r"\[(\d+)\](.*)$", fault.field)
        inner = match[2].rpartition(".")[2] if match else ""
        if match and int(match[1]) < len(kept):
            column = inner if inner in names else rows.columns[0].name
            cells[kept[int(match[1])], column] = f"{fault.reason[0].upper()}{fault.reason[1:]}."
        else:
            others.append(f"{fault.field} {fault.reason}.")
    return cells, others
