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
from muniment.web.requests.pagination import Pager, pager_of

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
    held: dict[tuple[str, str], tuple[JSONObject, list[str]]] = {}
    for position in positions:
        person = position.get("person") or {}
        _, titles = held.setdefault(person_key(person.get("slug"), person.get("name")), (person, []))
        if position.get("title"):
            titles.append(position["title"])
    members = []
    for person, titles in held.values():
        shown = TITLES_SHOWN
        if len(titles) == TITLES_SHOWN + 1:  # no "and 1 more"
            shown += 1
        name, slug = person.get("name") or "", person.get("slug") or ""
        member = Member(name, slug, person.get("picture"), joined_titles(titles[:shown]), len(titles[shown:]))
        members.append(member)
    return members


def joined_titles(titles: Sequence[str]) -> list[str]:
    """Return titles, those that differ in a last word with a number in one line: ``Author of EIP-2, EIP-7``."""
    found: list[str] = []
    before = ""
    for title in titles:
        start, _, last = title.rpartition(" ")
        is_numbered = bool(start) and any(map(str.isdecimal, last))
        if found and is_numbered and start == before:
            found[-1] += f", {last}"
        else:
            found.append(title)
        before = start if is_numbered else ""
    return found


def organizations_of(positions: Iterable[JSONObject]) -> list[Organization]:
    """Return each organization of a person once, in the order of the profile."""
    held: dict[str, tuple[JSONObject, list[str]]] = {}
    for position in positions:
        company = position.get("company") or {}
        _, titles = held.setdefault(company.get("slug") or company.get("id") or "", (company, []))
        if position.get("title"):
            titles.append(position["title"])
    return [
        Organization(company, joined_titles(titles[:TITLES_OF_ORGANIZATION]), len(titles[TITLES_OF_ORGANIZATION:]))
        for company, titles in held.values()
    ]


def roles_of(positions: Iterable[JSONObject]) -> list[Role]:
    """Return each title once with its people, in the order of the listing."""
    held: dict[str, list[JSONObject]] = {}
    for position in positions:
        held.setdefault(position.get("title") or "", []).append(position.get("person") or {})
    return [Role(*each) for each in held.items()]


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
    rows = list(proposals)
    voting = [row for row in rows if is_open(row, today)]
    others = sorted((row for row in rows if not is_open(row, today)), key=lambda row: str(row.get("endDate") or ""))
    return sorted(voting, key=lambda row: str(row.get("endDate") or "9999")) + others[::-1]


def state_of(proposal: JSONObject, today: str) -> str:
    """Return the state in which pages show a proposal."""
    return ENDED if is_left_open(proposal, today) else str(proposal.get("status") or "")


def states_of(proposals: Iterable[JSONObject], today: str) -> dict[str, int]:
    """Return how many proposals have each state, in the order of the page, unknown ones last."""
    found = Counter(state_of(proposal, today) for proposal in proposals)
    return {each: found[each] for each in (*STATES, *sorted(found.keys() - {*STATES})) if found[each]}


def have_names(holders: Iterable[JSONObject]) -> bool:
    """Return whether a table of these holders needs a column of names."""
    return any(row.get("name") for row in holders)


def holders_shown(holders: Sequence[JSONObject], symbol: str) -> list[JSONObject]:
    """
    Return holders as a table shows them: shares with as many decimals each, numbers of tokens without their symbol.

    Args:
        symbol: the symbol of the token; the head of the column has it.
    """
    shares = [Decimal(str(row["percentage"])) for row in holders if _is_share(row)]
    places = max((-int(share.normalize().as_tuple().exponent) for share in shares), default=0)
    shown = []
    for row in holders:
        tokens = row.get("tokens")
        if symbol:
            tokens = str(tokens or "").removesuffix(f" {symbol}")
        share = _share(row, places) if _is_share(row) else ""
        shown.append({**row, "tokens": amount(tokens), "share": share})
    return shown


def _share(row: JSONObject, places: int) -> str:
    """Return the share of a holder, with *places* decimals unless these are too many."""
    share = Decimal(str(row["percentage"]))
    return in_percent(digits(f"{share:,.{places}f}")) if 0 < places <= MAX_PLACES else percent(share)


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
    percentages = (row.get("percentage") for row in holders)
    shares = [Decimal(str(percentage)) for percentage in percentages if type(percentage) in {int, float}]
    total = sum(shares, Decimal())
    if len(shares) < len(holders) or not 0 < total <= WHOLE + ROUNDING or min(shares) < 0:
        return None
    return total


def holders_label(holders: Sequence[JSONObject]) -> str:
    """Return what the number of listed holders is called, with the share that they have and that of the largest."""
    held, count = held_by(holders), len(holders)
    if held is None:
        return ngettext("Listed holder", "Listed holders", count)
    largest = max(Decimal(str(each["percentage"])) for each in holders)
    values = {"share": percent(round(held, 1) or held), "largest": percent(round(largest, 2) or largest)}
    is_whole = held >= WHOLE - ROUNDING
    if count == 1:
        return gettext("Token holder") if is_whole else gettext("Listed holder, with %(share)s of all tokens") % values
    if is_whole:
        return gettext("Token holders, the largest with %(largest)s") % values
    return gettext("Listed holders with %(share)s of all tokens, the largest %(largest)s") % values


def concentration_of(holders: Iterable[JSONObject]) -> Concentration | None:
    """Return how unequal the shares are; None for fewer holders than the top has, and for shares beyond a whole."""
    shares = sorted((row["percentage"] for row in holders if type(row.get("percentage")) in {int, float}), reverse=True)
    total = math.fsum(shares)
    if len(shares) < TOP or not 0 < total <= 100.5 or shares[-1] < 0:
        return None
    top = sum((Decimal(str(each)) for each in shares[:TOP]), Decimal())
    count = len(shares)
    weighted = math.fsum(place * share for place, share in zip(range(count, 0, -1), shares, strict=True))
    gini = 2 * weighted / (count * total) - (count + 1) / count
    others = sum((Decimal(str(each)) for each in shares[TOP:]), Decimal())
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
        if size + weight > most:
            before, gap, last = parts[-1].rpartition("\n\n") if parts else ("", "", "")
            heading = f"{last}\n\n" if gap and _HEADING.fullmatch(last) else ""
            if heading:
                parts[-1] = before
            parts.append(heading + block)
            size = weight
        else:
            parts[-1] += f"\n\n{block}"
            size += weight
    return parts


def _blocks(text: str, most: int) -> Iterator[str]:
    """Yield the paragraphs of a text, and of a list that no part can hold, as many items as fit below a heading."""
    for block in text.replace("\r\n", "\n").split("\n\n"):
        lines = block.split("\n")
        if _weight(block) <= most or not all(_ITEM.match(line) for line in lines):
            yield block
            continue
        held: list[str] = []
        for line in lines:
            if held and _weight("\n".join([*held, line])) > most - 2 * LINE_CHARACTERS:
                yield "\n".join(held)
                held = []
            held.append(line)
        yield "\n".join(held)


def _weight(block: str) -> int:
    return sum(max(len(line), LINE_CHARACTERS) for line in block.split("\n"))


def cut(rows: Sequence[Any], asked: str, size: int) -> Page[Any]:
    """Return the page *asked* of *rows*; the nearest one there is for anything else."""
    number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 7 else 1
    number = min(max(number, 1), Page([], 1, size, len(rows)).page_count)
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
    asked = {**(kept or {}), **({"page": str(number)} if number > 1 else {})}
    return path + (f"?{urlencode(asked)}" if asked else "")


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
