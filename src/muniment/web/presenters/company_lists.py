"""The long lists of a company: its people with their titles, proposals, token holders and text, in pages."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Any, Final, NamedTuple
from urllib.parse import urlencode

from django.utils.translation import gettext, ngettext

from muniment.kernel.ids import now
from muniment.kernel.json import JSONObject
from muniment.kernel.pagination import Page
from muniment.languages.writing import digits, number
from muniment.schema.company_parts import person_key
from muniment.web.presenters.charts import in_percent, percent
from muniment.web.requests.pagination import Pager, pager_of, whole_number

TITLES_SHOWN: Final = 3
"""Maximum titles of one person, where people are shown with their titles; their own page has all."""
TITLES_OF_ORGANIZATION: Final = 8
MAX_PLACES: Final = 6
"""Decimals to which the shares of a table are filled up with zeros."""
TOP: Final = 10
"""Number of the largest holders that count as the top."""
WHOLE: Final = Decimal(100)
ROUNDING: Final = Decimal("0.5")
"""The most that the sum of shares that were rounded one by one may differ from the whole."""
UNDECIDED: Final = frozenset({"active", "pending"})
"""The states of a proposal before its vote has an outcome."""
ENDED: Final = "ended"
"""The state on pages of a proposal that has ended without an outcome."""
STATES: Final = ("active", "pending", "passed", "failed", ENDED)
"""The states of proposals, in the order of the page."""
LINE_CHARACTERS: Final = 80
"""Minimum characters that a line of a text counts: short lines take as much room on a page as full ones."""
REPEATED_WORDS: Final = 12
"""The number of equal words at the beginning that make a repetition."""
_SENTENCE: Final = re.compile(r"(?<=[^\W\d_]{3}[.!?])\s+(?=[^\W\da-z_])")
_ITEM: Final = re.compile(r"[-*+] |  +\S")
_HEADING: Final = re.compile(r"#{1,6} .*")
_DAY: Final = re.compile(r"\d{4}-\d\d-\d\d")
_AMOUNT: Final = re.compile(r"\d{1,3}(?:,\d{3})*(?:\.\d+)?")


class Member(NamedTuple):
    """
    A person of a company.

    Args:
        titles: the person's first titles.
        more: how many further titles the person has.
    """

    name: str
    slug: str
    picture: str | None
    titles: list[str]
    more: int


class Organization(NamedTuple):
    """
    An organization of a person.

    Args:
        titles: the person's first titles there.
        more: how many further titles the person has there.
    """

    company: JSONObject
    titles: list[str]
    more: int


class Role(NamedTuple):
    """A title with the people who hold it."""

    title: str
    people: list[JSONObject]


class Concentration(NamedTuple):
    """
    The inequality of the listed holders' shares.

    Args:
        top: the sum of the largest shares, in percent.
        gini: from 0, all have the same, to 1, one has everything.
        share_of_top: the same sum as a number.
        share_of_others: the sum of all other listed shares.
    """

    top: str
    gini: str
    share_of_top: float
    share_of_others: float


def today() -> str:
    """Return the present day in UTC, ``YYYY-MM-DD``."""
    return f"{now():%Y-%m-%d}"


def team_of(positions: Iterable[JSONObject]) -> list[Member]:
    """Return each person once, in the order of the listing, as the team size counts them."""
    people: dict[tuple[str, str], tuple[JSONObject, list[str]]] = {}
    for position in positions:
        person = position.get("person") or {}
        _, titles = people.setdefault(person_key(person.get("slug"), person.get("name")), (person, []))
        if position.get("title"):
            titles.append(position["title"])
    members = []
    for person, titles in people.values():
        count = TITLES_SHOWN
        if len(titles) == TITLES_SHOWN + 1:  # no "and 1 more"
            count += 1
        name, slug = person.get("name") or "", person.get("slug") or ""
        member = Member(name, slug, person.get("picture"), joined_titles(titles[:count]), len(titles[count:]))
        members.append(member)
    return members


def joined_titles(titles: Sequence[str]) -> list[str]:
    """Return titles, those that differ in a last word with a number in one line: ``Author of EIP-2, EIP-7``."""
    lines: list[str] = []
    start_before = ""
    for title in titles:
        start, _, last = title.rpartition(" ")
        is_numbered = bool(start) and any(map(str.isdecimal, last))
        if is_numbered and start == start_before:
            lines[-1] += f", {last}"
        else:
            lines.append(title)
        start_before = start if is_numbered else ""
    return lines


def organizations_of(positions: Iterable[JSONObject]) -> list[Organization]:
    """Return each organization of a person once, in the order of the profile."""
    companies: dict[str, tuple[JSONObject, list[str]]] = {}
    for position in positions:
        company = position.get("company") or {}
        _, titles = companies.setdefault(company.get("slug") or company.get("id") or "", (company, []))
        if position.get("title"):
            titles.append(position["title"])
    organizations = []
    for company, titles in companies.values():
        shown, further = titles[:TITLES_OF_ORGANIZATION], titles[TITLES_OF_ORGANIZATION:]
        organizations.append(Organization(company, joined_titles(shown), len(further)))
    return organizations


def roles_of(positions: Iterable[JSONObject]) -> list[Role]:
    """Return each title once with its people, in the order of the listing."""
    people_by_title: dict[str, list[JSONObject]] = {}
    for position in positions:
        people_by_title.setdefault(position.get("title") or "", []).append(position.get("person") or {})
    return [Role(title, people) for title, people in people_by_title.items()]


def is_open(proposal: JSONObject, today: str) -> bool:
    """Return whether a proposal is open for votes: active, and its end not before *today*, ``YYYY-MM-DD``."""
    return proposal.get("status") == "active" and not has_passed(proposal.get("endDate"), today)


def is_left_open(proposal: JSONObject, today: str) -> bool:
    """Return whether a proposal has ended and says no outcome: its status is what it was before."""
    return proposal.get("status") in UNDECIDED and has_passed(proposal.get("endDate"), today)


def has_passed(day: object, today: str) -> bool:
    """Return whether *day*, the beginning of a date of the wire, is before *today*."""
    text = str(day or "")[:10]
    return bool(_DAY.match(text)) and text < today


def by_relevance(proposals: Iterable[JSONObject], today: str) -> list[JSONObject]:
    """Return the proposals that are open for votes first, the soonest end first, then the others, the latest first."""
    voting: list[JSONObject] = []
    others: list[JSONObject] = []
    for proposal in proposals:
        if is_open(proposal, today):
            voting.append(proposal)
        else:
            others.append(proposal)
    voting.sort(key=lambda proposal: str(proposal.get("endDate") or "9999"))
    others.sort(key=lambda proposal: str(proposal.get("endDate") or ""))
    # Turned round rather than sorted in reverse, so that of the same day the last one of the listing is first.
    others.reverse()
    return voting + others


def state_of(proposal: JSONObject, today: str) -> str:
    """Return the state in which pages show a proposal."""
    return ENDED if is_left_open(proposal, today) else str(proposal.get("status") or "")


def states_of(proposals: Iterable[JSONObject], today: str) -> dict[str, int]:
    """Return how many proposals have each state, in the order of the page, unknown ones last."""
    counts = Counter(state_of(proposal, today) for proposal in proposals)
    unknown = sorted(counts.keys() - {*STATES})
    return {state: counts[state] for state in (*STATES, *unknown) if counts[state]}


def have_names(holders: Iterable[JSONObject]) -> bool:
    """Return whether a table of these holders needs a column of names."""
    return any(row.get("name") for row in holders)


def holders_shown(holders: Sequence[JSONObject], symbol: str) -> list[JSONObject]:
    """
    Return holders as a table shows them: shares with as many decimals each, numbers of tokens without their symbol.

    Args:
        symbol: the symbol of the token; the head of the column has it.
    """
    decimals = 0
    for row in holders:
        if _is_share(row):
            exponent = Decimal(str(row["percentage"])).normalize().as_tuple().exponent
            decimals = max(decimals, -int(exponent))
    rows = []
    for row in holders:
        tokens = row.get("tokens")
        if symbol:
            tokens = str(tokens or "").removesuffix(f" {symbol}")
        share = _share(row, decimals) if _is_share(row) else ""
        rows.append({**row, "tokens": amount(tokens), "share": share})
    return rows


def _share(row: JSONObject, decimals: int) -> str:
    """Return the share of a holder with *decimals*, so that the shares of a table align, unless these are too many."""
    share = Decimal(str(row["percentage"]))
    if 0 < decimals <= MAX_PLACES:
        return in_percent(digits(f"{share:,.{decimals}f}"))
    return percent(share)


def _is_share(row: JSONObject) -> bool:
    return type(row.get("percentage")) in {int, float} and math.isfinite(row["percentage"])


def amount(tokens: object) -> str:
    """Return a number of tokens as the language writes it; other text as its owner wrote it."""
    text = str(tokens or "")
    return digits(text) if _AMOUNT.fullmatch(text) else text


def completeness_of(holders: Sequence[JSONObject]) -> str:
    """Return a sentence that says whether the listed holders are all, as far as their shares tell; "" without any."""
    if not holders:
        return ""
    held = held_by(holders)
    if held is None:
        return gettext("The list may not be complete.")
    if held >= WHOLE - ROUNDING:
        return gettext("Together they hold all tokens.")
    values = {"share": percent(round(held, 2))}
    return gettext("Together they hold %(share)s of all tokens; other holders are not listed.") % values


def held_by(holders: Sequence[JSONObject]) -> Decimal | None:
    """Return how many percent of all tokens the listed holders have; None if their shares do not tell."""
    shares = []
    for row in holders:
        percentage = row.get("percentage")
        if type(percentage) in {int, float}:
            shares.append(Decimal(str(percentage)))
    total = sum(shares, Decimal())
    if len(shares) < len(holders) or not 0 < total <= WHOLE + ROUNDING or min(shares) < 0:
        return None
    return total


def holders_label(holders: Sequence[JSONObject]) -> str:
    """Return what the number of listed holders is called, with the share that they have and that of the largest."""
    held, count = held_by(holders), len(holders)
    if held is None:
        return ngettext("Listed holder", "Listed holders", count)
    largest = max(Decimal(str(holder["percentage"])) for holder in holders)
    # A share that rounds to nothing is shown with all its digits.
    values = {"share": percent(round(held, 1) or held), "largest": percent(round(largest, 2) or largest)}
    is_whole = held >= WHOLE - ROUNDING
    if count == 1:
        return gettext("Token holder") if is_whole else gettext("Listed holder, with %(share)s of all tokens") % values
    if is_whole:
        return gettext("Token holders, the largest with %(largest)s") % values
    return gettext("Listed holders with %(share)s of all tokens together; the largest has %(largest)s") % values


def concentration_of(holders: Iterable[JSONObject]) -> Concentration | None:
    """Return how unequal the shares are; None for fewer holders than the top has, and for shares beyond a whole."""
    shares = sorted(row["percentage"] for row in holders if type(row.get("percentage")) in {int, float})
    total = math.fsum(shares)
    if len(shares) < TOP or not 0 < total <= 100.5 or shares[0] < 0:
        return None
    count = len(shares)
    weighted = math.fsum(place * share for place, share in enumerate(shares, 1))
    gini = 2 * weighted / (count * total) - (count + 1) / count
    top = sum((Decimal(str(share)) for share in shares[-TOP:]), Decimal())
    others = sum((Decimal(str(share)) for share in shares[:-TOP]), Decimal())
    return Concentration(percent(round(top, 2)), digits(f"{gini:.2f}"), float(top), float(others))


def text_beyond(body: str, lead: str) -> str:
    """Return *body* without a first paragraph that repeats *lead*, which the page shows above it."""
    first, _, rest = body.strip().replace("\r\n", "\n").partition("\n\n")
    return rest.lstrip("\n") if lead and first.split() == lead.split() else body


def lead_of(description: str, text: str) -> str:
    """Return a description for the head of a page; its first sentence if *text* below it begins with the same words."""
    words, below = description.split(), text.split()
    if len(words) < REPEATED_WORDS or words[:REPEATED_WORDS] != below[:REPEATED_WORDS]:
        return description
    return _SENTENCE.split(description.strip(), maxsplit=1)[0]


def parts_of(text: str, most: int) -> list[str]:
    """
    Split a Markdown text at empty lines into parts of at most *most* characters, where its paragraphs allow it.

    A heading is in the part of what it is about. A list longer than a part is split between its items.
    """
    parts: list[str] = []
    size = most
    for block in _blocks(text, most):
        weight = _weight(block)
        if size + weight <= most:
            parts[-1] += f"\n\n{block}"
            size += weight
            continue
        heading = ""
        if parts:
            before, gap, last = parts[-1].rpartition("\n\n")
            # A part that is a heading alone keeps it, or it would be empty.
            if gap and _HEADING.fullmatch(last):
                parts[-1] = before
                heading = f"{last}\n\n"
        parts.append(heading + block)
        size = weight
    return parts


def _blocks(text: str, most: int) -> Iterator[str]:
    """Yield the paragraphs of a text, and of a list that no part can hold, as many items as fit below a heading."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        if _weight(block) <= most or not all(_ITEM.match(line) for line in lines):
            yield block
            continue
        items: list[str] = []
        for line in lines:
            # There is room left for the heading that `parts_of` takes along.
            if items and _weight("\n".join([*items, line])) > most - 2 * LINE_CHARACTERS:
                yield "\n".join(items)
                items = []
            items.append(line)
        yield "\n".join(items)


def _weight(block: str) -> int:
    return sum(max(len(line), LINE_CHARACTERS) for line in block.split("\n"))


def cut(rows: Sequence[Any], asked: str, size: int) -> Page[Any]:
    """Return the page of *rows* whose number is *asked*; the last page beyond it, and the first for anything else."""
    number = min(whole_number(asked, 6) or 1, Page([], 1, size, len(rows)).page_count)
    return Page(list(rows[(number - 1) * size : number * size]), number, size, len(rows))


def pager(path: str, page: Page[Any], kept: dict[str, str] | None = None) -> Pager:
    """
    Return the links from one page of a list to others.

    Args:
        kept: further parameters of the address.
    """

    def link(number: int | None) -> str:
        return address_of(path, number, kept) if number else ""

    return pager_of(page, link)


def address_of(path: str, number: int, kept: dict[str, str] | None = None) -> str:
    """Return the address of page *number* of a list; the first has no number."""
    parameters = dict(kept or {})
    if number > 1:
        parameters["page"] = str(number)
    return f"{path}?{urlencode(parameters)}" if parameters else path


def counted_team(positions: Sequence[JSONObject]) -> str:
    """Return how many people a team has, and how many positions if some have several; empty without any."""
    if not positions:
        return ""
    people = len(team_of(positions))
    shown = ngettext("%(count)s person", "%(count)s people", people) % {"count": number(people)}
    if people == len(positions):
        return shown
    held = ngettext("%(count)s position", "%(count)s positions", len(positions)) % {"count": number(len(positions))}
    return f"{shown}, {held}"
