"""
Two to four organizations side by side: a row for each fact, people in common, and charts.

Which ones is in the address, so that a comparison can be shared.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple
from urllib.parse import quote

import msgspec
from django.conf import settings
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from muniment.kernel.json import JSONObject
from muniment.languages import writing
from muniment.languages.writing import number
from muniment.schema.company import TREASURY_NOTE
from muniment.schema.kinds import Money, Number
from muniment.store.queries import ListQuery
from muniment.store.search_text import fold
from muniment.web.context import address as registry_address
from muniment.web.lists.search import joined
from muniment.web.presenters import charts, company_lists
from muniment.web.presenters.charts import ChartSlice
from muniment.web.presenters.company import (
    address,
    bare,
    day,
    declared_facts,
    listed_on,
    rounds_of,
    safe_link,
)
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.overview import home
from muniment.web.wording.labels import labelled, note_within, theme
from muniment.web.wording.states import state

MOST: Final = 4
FOUND_SHOWN: Final = 6
SHARED_SHOWN: Final = 12
WORDS: Final = 200


class Choice(NamedTuple):
    """An organization that can be added or removed, with the comparison that follows."""

    item: home.Item
    address: str


ROUNDS_SHOWN: Final = 3


class ComparedCell(NamedTuple):
    """
    A fact of one organization.

    Args:
        address: the address of another site.
    """

    text: str
    address: str = ""


class ComparedRow(NamedTuple):
    """
    A fact of every organization.

    Args:
        differs: whether at least two of them say different things.
        lacking: the words for an organization that does not say it.
    """

    label: str
    cells: list[ComparedCell]
    differs: bool
    is_number: bool = False
    lacking: str = ""


class Shared(NamedTuple):
    """A person with positions in several of the organizations."""

    name: str
    address: str
    organizations: str


class Side:
    """One of the organizations that are compared."""

    def __init__(self, bundle: JSONObject) -> None:
        self.company: JSONObject = bundle["company"]
        self.members = company_lists.team_of(bundle.get("positions") or [])
        self.proposals: list[JSONObject] = bundle.get("proposals") or []
        self.holders: list[JSONObject] = bundle.get("capTable") or []
        self.rounds = rounds_of(bundle)
        self.concentration = company_lists.concentration_of(self.holders)
        today = company_lists.today()
        self.open_votes = sum(company_lists.is_open(proposal, today) for proposal in self.proposals)

    @property
    def slug(self) -> str:
        return str(self.company["id"])

    @property
    def name(self) -> str:
        return str(self.company["name"])

    @property
    def address(self) -> str:
        return f"/companies/{quote(self.slug)}"

    @property
    def people(self) -> int:
        return len(self.members) or self.company.get("teamSize") or 0

    @property
    def treasury(self) -> float:
        """Return the funds that it holds; 0 if its amount is something else."""
        if self.company.get(TREASURY_NOTE):
            return 0
        return float((self.company.get("treasuryAmount") or {}).get("amount") or 0)

    @property
    def amount(self) -> str:
        """Return the amount of the listing, with what it is if it is no treasury."""
        amount = writing.amount(self.company.get("treasury") or "")
        note = self.company.get(TREASURY_NOTE)
        if amount and note:
            return gettext("%(amount)s (%(note)s)") % {"amount": amount, "note": note_within(str(note))}
        return amount


_Fact = Callable[[Side], object]
"""Returns what a row says of an organization."""


@published("c", "add", "only", daily=True)
def compare(request: HttpRequest) -> HttpResponse:
    """Compare organizations; ``add`` searches one by name."""
    requested = list(dict.fromkeys(filter(None, request.GET.getlist("c"))))[:MOST]
    bundles = _bundles(requested)
    slugs = [slug for slug in requested if slug in bundles]
    missing = [slug[:WORDS] for slug in requested if slug not in bundles]
    words = " ".join(request.GET.get("add", "").replace("\0", " ").split())[:WORDS]
    has_room = len(slugs) < MOST
    matches = []
    if has_room:
        matches = _matches(words, slugs)
    # A single match is added without a question, and so is the first if it has the very name that was typed.
    if matches and (len(matches) == 1 or fold(matches[0].name) == fold(words)):
        return HttpResponseRedirect(_address([*slugs, matches[0].id]))
    sides = [Side(bundles[slug]) for slug in slugs]
    context = {
        "room": "companies",
        "chosen": _removable(sides, slugs),
        "slugs": slugs,
        "missing": missing,
        "has_room": has_room,
        "is_possible": bool(slugs) or reader().count("company") > 1,
        "words": words,
        "found": [Choice(match, _address([*slugs, match.id])) for match in matches],
        **_suggestions(words, sides, slugs),
        **_compared(sides, wants_differences=request.GET.get("only") == "differences"),
        "all_address": _address(slugs),
        "short_address": f"{_address(slugs)}&only=differences",
        "canonical": f"{registry_address(request)}{_address(slugs)}",
    }
    return TemplateResponse(request, "registry/compare.html", context)


def _removable(sides: Sequence[Side], slugs: Sequence[str]) -> list[tuple[Side, str]]:
    """Return each organization with the address of the comparison without it."""
    removable = []
    for side in sides:
        others = [slug for slug in slugs if slug != side.slug]
        removable.append((side, _address(others)))
    return removable


def _suggestions(words: str, sides: Sequence[Side], slugs: Sequence[str]) -> JSONObject:
    """Return organizations to begin with, or to add to the first one; none beside the matches of a search."""
    starts: list[Choice] = []
    near: list[Choice] = []
    if not words and not sides:
        starts = _starts()
    elif not words and len(slugs) < MOST:
        near = _near(sides[0].company, slugs)
    return {"starts": starts, "near": near}


def _compared(sides: Sequence[Side], *, wants_differences: bool) -> JSONObject:
    """Return what the page says of the organizations: the table, their people in common, and the charts."""
    rows, people = rows_of(sides), shared_people(sides)
    differing = [row for row in rows if row.differs]
    is_short = wants_differences and len(sides) > 1
    rows_shown = differing if is_short else rows
    return {
        "rows": rows_shown,
        "differing": len(differing),
        "is_short": is_short,
        "people": people[:SHARED_SHOWN],
        "people_more": len(people[SHARED_SHOWN:]),
        "charts": charts_of(sides),
    }


def _address(slugs: Sequence[str]) -> str:
    return joined("/compare", [("c", slug) for slug in slugs])


def _bundles(slugs: Sequence[str]) -> dict[str, JSONObject]:
    documents = reader().documents([("company", slug) for slug in slugs])
    return {slug: msgspec.json.decode(document.body)["data"] for (_, slug), document in documents.items()}


def _matches(words: str, slugs: Sequence[str]) -> list[home.Item]:
    if not words:
        return []
    # Those that are chosen already may be among the matches, so as many more are looked for.
    query = ListQuery(q=words, page_size=FOUND_SHOWN + MOST)
    return [item for item in _items(query) if item.id not in slugs][:FOUND_SHOWN]


def _items(query: ListQuery) -> list[home.Item]:
    return [home.item_of(item) for item in reader().companies(query).items]


def _starts() -> list[Choice]:
    """Return the organizations with the largest treasuries, to begin with."""
    query = ListQuery(sort="treasury", page_size=FOUND_SHOWN)
    return [Choice(item, _address([item.id])) for item in _items(query)]


def _near(company: JSONObject, slugs: Sequence[str]) -> list[Choice]:
    """Return organizations of the same industry, the largest treasuries first."""
    if not company.get("industry"):
        return []
    chosen = settings.SCHEMA.listings["company"].select({"industry": (company["industry"],)})
    query = ListQuery(filters=chosen.filters, sort="treasury", page_size=FOUND_SHOWN + MOST)
    others = [item for item in _items(query) if item.id not in slugs]
    return [Choice(item, _address([*slugs, item.id])) for item in others[:FOUND_SHOWN]]


def rows_of(sides: Sequence[Side]) -> list[ComparedRow]:
    """Return every fact that at least one of the organizations has."""
    rows = []
    for label, fact in _words().items():
        rows.append(_row(label, _cells(sides, fact)))
    for label, fact in _numbers().items():
        rows.append(_row(label, _cells(sides, fact), is_number=True))
    links = [safe_link(side.company.get("website")) for side in sides]
    rows.append(_row(gettext("Website"), [ComparedCell(bare(link), link) for link in links]))
    rows += _declared(sides)
    rows_with_text = []
    for row in rows:
        if any(cell.text for cell in row.cells):
            rows_with_text.append(row)
    return rows_with_text


def _cells(sides: Sequence[Side], fact: _Fact) -> list[ComparedCell]:
    cells = []
    for side in sides:
        value = fact(side)
        cells.append(ComparedCell(str(value or "")))
    return cells


def _words() -> Mapping[str, _Fact]:
    def member(name: str) -> _Fact:
        return lambda side: labelled(name, str(side.company.get(name) or ""))

    return {
        gettext("Type"): member("type"),
        gettext("Subtype"): member("orgKind"),
        gettext("Industry"): member("industry"),
        gettext("Themes"): lambda side: ", ".join(map(theme, side.company.get("themes") or ())),
        gettext("Status"): _status,
        gettext("Listed"): lambda side: listed_on(side.company),
        gettext("Updated"): lambda side: day(str(side.company["updatedAt"])),
        gettext("Maintained by"): lambda side: side.company.get("maintainedByOwner") and gettext("Its owner"),
        gettext("Verified domain"): lambda side: (side.company.get("verifiedDomain") or {}).get("domain"),
        gettext("Address"): lambda side: "; ".join(filter(None, map(address, side.company.get("address") or ()))),
        gettext("Token"): member("symbol"),
        gettext("Funding"): _funding,
    }


def _numbers() -> Mapping[str, _Fact]:
    return {
        gettext("Treasury"): lambda side: side.amount,
        gettext("People"): lambda side: _counted(side.people),
        gettext("Proposals"): lambda side: _counted(len(side.proposals)),
        gettext("Open votes"): _open_votes,
        gettext("Listed holders"): lambda side: _counted(len(side.holders)),
        gettext("Share of the ten largest holders"): lambda side: side.concentration and side.concentration.top,
        gettext("Gini coefficient of the holders"): lambda side: side.concentration and side.concentration.gini,
    }


def _counted(amount: int) -> str:
    """Return a number; empty for none, which is no fact."""
    return number(amount) if amount else ""


def _open_votes(side: Side) -> str:
    # That no proposal is open is a fact only of an organization with proposals.
    return number(side.open_votes) if side.proposals else ""


def _status(side: Side) -> str:
    status = side.company.get("status")
    return state(str(status)) if status else ""


def _funding(side: Side) -> str:
    """Return the latest public rounds, the newest first; of a company that raises without one, that it raises."""
    texts = []
    for funding_round in reversed(side.rounds[-ROUNDS_SHOWN:]):
        if funding_round.get("public") is not False:
            parts = (funding_round.get("name"), funding_round.get("target"), state(funding_round["state"]))
            texts.append(" · ".join(str(part) for part in parts if part))
    if not texts and side.company.get("raising"):
        return gettext("Raising")
    return "; ".join(texts)


def _row(label: str, cells: list[ComparedCell], *, is_number: bool = False) -> ComparedRow:
    differs = len({cell.text for cell in cells}) > 1
    return ComparedRow(label, cells, differs, is_number, _lacking().get(label, ""))


def _lacking() -> Mapping[str, str]:
    """Return what is said of lists without rows, and of a listing without an owner."""
    lists = (gettext("Proposals"), gettext("Open votes"), gettext("Listed holders"), gettext("Funding"))
    return {**dict.fromkeys(lists, gettext("None listed")), gettext("Maintained by"): gettext("No owner yet")}


def _declared(sides: Sequence[Side]) -> Iterator[ComparedRow]:
    """Yield a row for each field that the operator declares."""
    record = settings.SCHEMA.company
    facts_of_sides = [declared_facts(side.company, record) for side in sides]
    for field in record.declared:
        cells = []
        for facts in facts_of_sides:
            fact = facts.get(field.name, {})
            cells.append(ComparedCell(fact.get("value", ""), fact.get("address", "")))
        yield _row(gettext(field.label), cells, is_number=isinstance(field.kind, Number | Money))


def shared_people(sides: Sequence[Side]) -> list[Shared]:
    """Return the people with a profile who have positions in at least two of the organizations, most of them first."""
    names: dict[str, str] = {}
    organizations: dict[str, list[str]] = {}
    for side in sides:
        for member in side.members:
            if member.slug:
                names.setdefault(member.slug, member.name)
                organizations.setdefault(member.slug, []).append(side.name)
    shared = [slug for slug in names if len(organizations[slug]) > 1]
    shared.sort(key=lambda slug: (-len(organizations[slug]), names[slug]))
    return [Shared(names[slug], f"/people/{quote(slug)}", ", ".join(organizations[slug])) for slug in shared]


def charts_of(sides: Sequence[Side]) -> list[tuple[str, SafeString]]:
    """Draw what at least two of the organizations can be measured by."""
    measures: list[tuple[str, Callable[[Side], float], Callable[[Side], str]]] = [
        (gettext("Treasury"), lambda side: side.treasury, lambda side: side.amount),
        (gettext("People"), lambda side: side.people, lambda side: number(side.people)),
        (gettext("Proposals"), lambda side: len(side.proposals), lambda side: number(len(side.proposals))),
        (gettext("Listed holders"), lambda side: len(side.holders), lambda side: number(len(side.holders))),
    ]
    drawn = []
    for title, measure, text_of in measures:
        slices = []
        for side in sides:
            value = measure(side)
            if value > 0:  # nothing is known of the others
                slices.append(ChartSlice(side.name, value, text_of(side), address=side.address))
        if len(slices) > 1:
            named = ", ".join(f"{slice_.label} {slice_.text}" for slice_ in slices)
            drawn.append((title, charts.bar(title, f"{title}: {named}.", slices, unit=title)))
    return drawn
