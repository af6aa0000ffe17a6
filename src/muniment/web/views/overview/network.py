"""
The page of an organization's people and the other organizations in which they have positions, with a picture.

The picture has three columns: the organization, people, other organizations. Both columns are ordered so that lines
cross little, in a fixed number of rounds, so that the same people always give the same picture. Names are beside the
lines: those to other organizations begin behind the longest name of a person.
"""

import textwrap
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from html import escape
from statistics import fmean
from typing import Final, NamedTuple
from urllib.parse import quote

from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.safestring import SafeString, mark_safe
from django.utils.translation import gettext

from muniment.store.lists import ties
from muniment.web.context import address
from muniment.web.presenters import company_lists as lists
from muniment.web.requests.page_cache import published, reader
from muniment.web.views.public.company_lists import parts_of
from muniment.web.views.public.documents import bundle_of

PEOPLE: Final = 40
"""On a page of the list."""
OTHERS_SHOWN: Final = 12
"""Other organizations of one person in the list; the profile has all."""
MOST_PEOPLE: Final = 24
MOST_ORGANIZATIONS: Final = 35
"""With the organization itself at most 60 nodes; beyond that, labels and lines cannot be read."""
WIDTH: Final = 1100
PERSON_X: Final = 340
OTHER_X: Final = 790
ROW: Final = 24
MARGIN: Final = 24
ROUNDS: Final = 4
LABEL_CHARACTERS: Final = 34
OWN_CHARACTERS: Final = 20
"""Maximum characters in one line of the organization's own name: it ends where the picture does."""
OWN_LINES: Final = 5
OWN_LEADING: Final = 20
OWN_LETTER: Final = 9
LETTER: Final = 6.9
"""The width of a letter of a name, rather more than less; that of a wide character is twice as much."""
GAP: Final = 12
"""Between a node and its name."""


class OtherOrganization(NamedTuple):
    """An organization."""

    slug: str
    name: str

    @property
    def address(self) -> str:
        return f"/companies/{quote(self.slug)}"


class Tie(NamedTuple):
    """
    A person of the organization.

    Args:
        titles: those that the person has there.
        more: how many further titles.
        others: the other organizations, each once.
    """

    slug: str
    name: str
    titles: Sequence[str]
    more: int
    others: Sequence[OtherOrganization]

    @property
    def address(self) -> str:
        return f"/people/{quote(self.slug)}"


class Network(NamedTuple):
    """
    The people and organizations in the picture.

    Args:
        hidden: how many other organizations of these people it leaves out.
    """

    people: list[Tie]
    organizations: list[OtherOrganization]
    hidden: int


@published("page")
def network(request: HttpRequest, slug: str) -> HttpResponse:
    """Draw the network of an organization's people, and list it."""
    bundle = bundle_of(slug)
    company = bundle["company"]
    home = f"/companies/{quote(company['id'])}"
    members = {member.slug: member for member in lists.team_of(bundle.get("positions") or []) if member.slug}
    slugs = ties.connected(reader(), members)
    page = lists.cut(slugs, request.GET.get("page", ""), PEOPLE)
    slugs_drawn = slugs[:MOST_PEOPLE]
    slugs_shown = list(dict.fromkeys((*slugs_drawn, *page.items)))
    tied = _tied(company["id"], members, slugs_shown)
    shown = network_of([tied[slug_drawn] for slug_drawn in slugs_drawn if slug_drawn in tied])
    drawing = SafeString("")
    if shown.people and page.page == 1:
        drawing = picture(company["name"], shown)
    context = {
        "room": "companies",
        "company": company,
        "home": home,
        "team_address": f"{home}/team",
        "part_title": gettext("Network"),
        "parts": parts_of(bundle, home, "network"),
        "crumbs": [(gettext("Companies"), "/companies"), (company["name"], home), (gettext("Network"), "")],
        "canonical": address(request) + lists.address_of(request.path, page.page),
        "pager": lists.pager(request.path, page),
        "picture": drawing,
        "shown": shown,
        "total": len(slugs),
        "members_total": len(members),
        "ties": [tied[slug_listed] for slug_listed in page.items if slug_listed in tied],
        "others_shown": OTHERS_SHOWN,
    }
    return TemplateResponse(request, "company/network.html", context)


def _tied(slug: str, members: Mapping[str, lists.Member], slugs_of_people: Sequence[str]) -> dict[str, Tie]:
    """Return the people of an organization who have positions in others too, by their slugs."""
    tied = {}
    for slug_of_person, others in ties.others_of(reader(), slugs_of_people, slug).items():
        if others:
            member = members[slug_of_person]
            organizations = [OtherOrganization(other.slug, other.name) for other in others]
            tied[slug_of_person] = Tie(slug_of_person, member.name, member.titles, member.more, organizations)
    return tied


def network_of(ties: Sequence[Tie]) -> Network:
    """Return the first people and the organizations that most of them share, in the order of the picture."""
    people = list(ties[:MOST_PEOPLE])
    counts: Counter[OtherOrganization] = Counter()
    for tie in people:
        counts.update(tie.others)
    ranked = sorted(counts, key=lambda organization: (-counts[organization], organization.name, organization.slug))
    organizations = ranked[:MOST_ORGANIZATIONS]
    people = [tie for tie in people if not set(organizations).isdisjoint(tie.others)]
    # Each column in turn is ordered by where its lines lead in the other one, so that few of them cross.
    for _ in range(ROUNDS):
        _sort_people(people, organizations)
        _sort_organizations(organizations, people)
    return Network(people, organizations, len(ranked) - len(organizations))


def _sort_people(people: list[Tie], organizations: Sequence[OtherOrganization]) -> None:
    """Sort people by the mean of the rows of their organizations."""
    rows = {organization: row for row, organization in enumerate(organizations)}
    means: dict[str, float] = {}
    for tie in people:
        means[tie.slug] = fmean(rows[organization] for organization in tie.others if organization in rows)
    people.sort(key=lambda tie: (means[tie.slug], tie.name, tie.slug))


def _sort_organizations(organizations: list[OtherOrganization], people: Sequence[Tie]) -> None:
    """Sort organizations by the mean of the rows of their people."""
    rows_of_people: dict[OtherOrganization, list[int]] = {}
    for row, tie in enumerate(people):
        for organization in tie.others:
            rows_of_people.setdefault(organization, []).append(row)
    means = {organization: fmean(rows) for organization, rows in rows_of_people.items()}
    organizations.sort(key=lambda organization: (means[organization], organization.name, organization.slug))


def picture(name: str, network: Network) -> SafeString:
    """Draw the network; the page lists the same for everybody, so the picture is for eyes and mice alone."""
    height = MARGIN * 2 + ROW * (max(len(network.people), len(network.organizations)) - 1)
    rows_of_people = _rows(len(network.people), height)
    rows_of_others = dict(zip(network.organizations, _rows(len(network.organizations), height), strict=True))
    middle = height / 2
    name_lines = _own_lines(name)
    own_x = min(GAP + max(_wide(line, OWN_LETTER) for line in name_lines), PERSON_X - 100)

    name_ends = [PERSON_X + 2 * GAP + _wide(_cut(tie.name), LETTER) for tie in network.people]
    bend = max(name_ends)
    to_people, to_others, people = "", "", ""
    for tie, y, name_end in zip(network.people, rows_of_people, name_ends, strict=True):
        to_people += _line(own_x, middle, PERSON_X, y)
        for organization in tie.others:
            if organization in rows_of_others:
                to_others += _line(bend, y, OTHER_X, rows_of_others[organization], "tie", start=name_end)
        people += _node(tie, "person", PERSON_X, y, _label(PERSON_X + GAP, y, tie.name))
    others = ""
    for organization, y in rows_of_others.items():
        others += _node(organization, "other", OTHER_X, y, _label(OTHER_X + GAP, y, organization.name))
    own = f'<circle class="own" cx="{own_x:g}" cy="{middle:g}" r="9"/>{_own_label(own_x - GAP, middle, name_lines)}'
    return mark_safe(  # noqa: S308 - every part is escaped
        f'<svg class="network" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" aria-hidden="true">'
        f'<g class="lines">{to_people}{to_others}</g>{own}{people}{others}</svg>'
    )


def _rows(count: int, height: int) -> list[float]:
    """Return where rows are: as far apart as there is room for, at most two and a half times the least."""
    if count < 2:
        return [height / 2] * count
    step = min((height - 2 * MARGIN) / (count - 1), ROW * 2.5)
    first = (height - step * (count - 1)) / 2
    return [round(first + step * row, 1) for row in range(count)]


def _line(x1: float, y1: float, x2: float, y2: float, kind: str = "", *, start: float | None = None) -> str:
    """Return a curve; with *start*, a straight line from there leads to it."""
    middle = (x1 + x2) / 2
    lead = f"M{x1:g} {y1:g}" if start is None else f"M{start:g} {y1:g}H{x1:g}"
    return f'<path class="{kind}" d="{lead}C{middle:g} {y1:g} {middle:g} {y2:g} {x2:g} {y2:g}"/>'


def _node(of: Tie | OtherOrganization, kind: str, x: float, y: float, label: str) -> str:
    return (
        f'<a href="{escape(of.address)}" tabindex="-1"><title>{escape(of.name)}</title>'
        f'<circle class="{kind}" cx="{x:g}" cy="{y:g}" r="5"/>{label}</a>'
    )


def _own_lines(name: str) -> list[str]:
    """Return the organization's name in as many lines as it needs."""
    width = OWN_CHARACTERS // 2 if any(map(_is_wide, name)) else OWN_CHARACTERS
    return textwrap.wrap(name, width, max_lines=OWN_LINES, placeholder="…") or [name]


def _own_label(x: float, middle: float, lines: Sequence[str]) -> str:
    """Return the organization's name, to the left of its node."""
    first = middle - OWN_LEADING * (len(lines) - 1) / 2
    return "".join(_label(x, first + OWN_LEADING * row, line, end=True) for row, line in enumerate(lines))


def _is_wide(character: str) -> bool:
    return unicodedata.east_asian_width(character) in {"W", "F"}


def _wide(text: str, letter: float) -> float:
    """Return about how wide a text is drawn."""
    wide = sum(_is_wide(character) for character in text)  # each takes the room of two letters
    return round(letter * (len(text) + wide))


def _cut(text: str) -> str:
    return text if len(text) <= LABEL_CHARACTERS else f"{text[: LABEL_CHARACTERS - 1]}…"


def _label(x: float, y: float, text: str, *, end: bool = False) -> str:
    side = ' text-anchor="end"' if end else ""
    return f'<text x="{x:g}" y="{y:g}"{side}>{escape(_cut(text))}</text>'
