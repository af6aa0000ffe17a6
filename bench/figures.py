"""
Recompute every figure on the pages of a registry from the documents of its REST API.

``figures.py BASE_URL [--pages 2000]`` walks pages of every kind, the largest ones first and then a seeded choice. Each
figure that has a meaning (a tile, a count beside a tab or filter, "3 people in common", a total, a cell of a list) is
computed again from what the API says, by code of its own. Every other number in the text of a page must be in the
documents that the page shows, or be a count of theirs; one that is neither is a difference too. Pages are read in
English. Exits with 1 if anything differs.
"""

import argparse
import random
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from functools import cached_property
from typing import Any, Final
from urllib.parse import parse_qsl, quote, unquote, urlencode
from xml.etree.ElementTree import Element

import html5lib
import httpx

NUMBER: Final = re.compile(r"\d(?:[\d,.]*\d)?")
"""A number with separators, without its sign and unit."""
SEED: Final = 41
LARGEST: Final = 12
"""Pages of each kind that are walked whatever the draw: those with the most rows."""
DRAWN_PEOPLE: Final = 24
DRAWN_ORGANIZATIONS: Final = 35
"""Nodes of the picture of a network."""
SVG: Final = "{http://www.w3.org/2000/svg}"
SKIPPED: Final = frozenset({"script", "style", f"{SVG}svg", "code"})
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
_APART: Final = frozenset(
    {"dt", "dd", "li", "td", "th", "p", "div", "h1", "h2", "h3", "a", "span", "figcaption", "time", "br"}
)
"""Elements that do not stand in one word with what follows."""


def written(number: float) -> str:
    return f"{number:,}"


def percent(share: float) -> str:
    return f"{share:.10f}".rstrip("0").rstrip(".")


def plain(number: str) -> str:
    """Return a number without what only its column needs: separators and trailing zeros."""
    digits = number.replace(",", "")
    return digits.rstrip("0").rstrip(".") if "." in digits else digits


def text_of(element: Element) -> str:
    return " ".join("".join(_texts(element)).split())


def text_in(element: Element, tag: str) -> str:
    return "".join(map(text_of, element.iter(tag)))


def _texts(element: Element) -> Iterator[str]:
    is_monogram = "mark" in (element.get("class") or "").split()  # letters and digits of a name: J6
    if is_monogram or element.tag in SKIPPED:
        yield element.tail or ""
        return
    yield element.text or ""
    for child in element:
        yield from _texts(child)
    if element.tag in _APART:
        yield " "
    yield element.tail or ""


def with_class(root: Element, tag: str, name: str) -> Iterator[Element]:
    return (each for each in root.iter(tag) if name in (each.get("class") or "").split())


def tiles_of(main: Element) -> Iterator[Element]:
    """Yield the figures with a label at the top of a page."""
    for figures in with_class(main, "dl", "figures"):
        yield from figures


def body_rows(main: Element) -> Iterator[Element]:
    """Yield the rows of all tables of a page, without those of headings."""
    for body in main.iter("tbody"):
        yield from body.iter("tr")


def strings_in(value: Any) -> Iterator[str]:
    """Yield every text and number of a document, as they may be written on a page."""
    if isinstance(value, dict):
        for member in value.values():
            yield from strings_in(member)
    elif isinstance(value, list):
        yield written(len(value))
        for member in value:
            yield from strings_in(member)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int | float):
        yield from (written(value), percent(value), f"{value:,.2f}")
    elif isinstance(value, str):
        yield value
        day = re.match(r"(\d{4})-(\d\d)-(\d\d)", value)
        if day and 1 <= int(day[2]) <= 12:
            yield f"{int(day[3])} {_MONTHS[int(day[2]) - 1]} {day[1]}"


class Registry:
    """The registry as its API has it."""

    def __init__(self, base: str) -> None:
        self.client = httpx.Client(base_url=base, timeout=60, follow_redirects=True, headers={"Accept-Language": "en"})
        self.answers: dict[str, Any] = {}

    def get(self, path: str) -> Any:
        if path not in self.answers:
            response = self.client.get(f"/api/v1{path}")
            response.raise_for_status()
            self.answers[path] = response.json()
        return self.answers[path]

    def page(self, path: str) -> Element:
        response = self.client.get(path)
        response.raise_for_status()
        root = html5lib.parse(response.text, namespaceHTMLElements=False)
        return next(root.iter("main"))

    def _all(self, path: str) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        number, count = 1, 1
        while number <= count:
            answer = self.get(f"{path}?page={number}&pageSize=100")
            items += answer["data"]
            number, count = number + 1, answer["pagination"]["pageCount"]
        return items

    @cached_property
    def companies(self) -> list[dict[str, Any]]:
        return self._all("/companies")

    @cached_property
    def people(self) -> list[dict[str, Any]]:
        return self._all("/people")

    @cached_property
    def frameworks(self) -> list[dict[str, Any]]:
        return list(self.get("/frameworks")["data"])

    @cached_property
    def held(self) -> dict[str, set[str]]:
        """The people with a profile of each company."""
        held: dict[str, set[str]] = defaultdict(set)
        for person in self.people:
            for position in self.get(f"/people/{quote(person['slug'])}")["data"]["positions"]:
                held[position["company"]["slug"]].add(person["slug"])
        return dict(held)

    def bundle(self, slug: str) -> dict[str, Any]:
        return dict(self.get(f"/companies/{quote(slug)}")["data"])

    def shared(self, slug: str) -> dict[str, int]:
        """Return how many people a company shares with each other one."""
        counts = {
            other: len(self.held.get(slug, set()) & people) for other, people in self.held.items() if other != slug
        }
        return {other: count for other, count in counts.items() if count}


def people_of(positions: Iterable[dict[str, Any]]) -> int:
    """Return how many different people positions name: by profile, else by name."""
    named = (position.get("person") or {} for position in positions)
    return len({each.get("slug") or " ".join((each.get("name") or "").split()).casefold() for each in named})


class Walk:
    """The walk and what it found."""

    def __init__(self, registry: Registry) -> None:
        self.registry = registry
        self.pages = self.figures = self.numbers = 0
        self.differences: list[str] = []

    def expect(self, path: str, meaning: str, shown: str, computed: str) -> None:
        self.figures += 1
        if shown != computed:
            self.differences.append(f"{path}: {meaning}: the page says {shown!r}, the API {computed!r}")

    def walk(self, path: str) -> None:
        main = self.registry.page(path)
        self.pages += 1
        words = [each for each in unquote(path.partition("?")[0]).split("/") if each]
        match words:
            case ["companies", slug]:
                known = self.company(path, main, slug)
            case ["companies", slug, "network"]:
                known = self.network(path, main, slug)
            case ["companies", slug, _]:
                known = self.part(path, main, slug)
            case ["people", slug] | ["people", slug, "positions"]:
                known = self.person(path, main, slug)
            case ["companies" | "people"]:
                known = self.listing(path, main, words[0])
            case ["frameworks", framework]:
                known = [self.registry.get(f"/frameworks/{quote(framework)}"), self.registry.frameworks, "0 of 100"]
            case ["frameworks"]:
                facets = self.registry.get("/facets?list=frameworks")["data"]
                known = [self.registry.frameworks, facets, self.registry.get("/frameworks?kind=program")["data"]]
            case ["compare"]:
                known = self.comparison(path, main)
            case ["map"]:
                known = self.world(path, main)
            case _:
                known = self.home(path, main)
        self.others(path, main, known)

    def others(self, path: str, main: Element, known: list[Any]) -> None:
        """Every number of the text is one of the documents, or was computed."""
        allowed = set(map(plain, NUMBER.findall(" ".join(strings_in([*known, path])))))
        for number in NUMBER.findall(text_of(main)):
            self.numbers += 1
            if plain(number) not in allowed:
                self.differences.append(f"{path}: {number!r} is in no document that the page shows")

    # ------------------------------------------------------------------ companies

    def company(self, path: str, main: Element, slug: str) -> list[Any]:
        bundle = self.registry.bundle(slug)
        counts = self._counts(bundle)
        self._tabs(path, main, counts)
        for tile in tiles_of(main):
            self._tile(path, bundle, counts, text_in(tile, "dt"), text_in(tile, "dd"))
        for link in re.findall(r"Show all ([\d,]+) (people|proposals|holders|assessments)", text_of(main)):
            names = {"people": "Team", "proposals": "Proposals", "holders": "Cap table", "assessments": "Assessments"}
            self.expect(path, f"all {link[1]}", link[0], written(counts[names[link[1]]]))
        shared = self.registry.shared(slug)
        related = [each for each in main.iter("section") if each.get("id") == "related"]
        shown = {}
        for card in (each for section in related for each in section.iter("a")):
            count = re.search(r"([\d,]+) (?:person|people) in common", text_of(card))
            if count:
                other = unquote((card.get("href") or "").rpartition("/")[2])
                shown[other] = int(count[1].replace(",", ""))
                self.expect(path, f"people in common with {other}", count[1], written(shared.get(other, 0)))
        self.expect(path, "most people in common", str(sorted(shown.values())), str(sorted(shared.values())[-6:]))
        rest = self._rest_of_chart(path, main, bundle)
        run = [each for each in self.registry.frameworks if (each.get("company") or {}).get("slug") == slug]
        return [bundle, run, list(shown.values()), rest, *self._derived(bundle, counts)]

    def _rest_of_chart(self, path: str, main: Element, bundle: dict[str, Any]) -> list[Any]:
        """Compute the share of the holders that a chart shows as one; return what was shown."""
        pools = (bundle.get("distribution") or {}).get("pools") or ()
        holders = sorted(each.get("percentage") or 0 for each in bundle.get("capTable") or ())
        shown: list[Any] = []
        charts = {"distribution": sorted(each.get("percentage") or 0 for each in pools), "cap-table": holders}
        for section in main.iter("section"):
            shares = charts.get(section.get("id") or "", [])
            for row in section.iter("tr"):
                said = re.match(
                    r"([\d,]+) (?:others?|other listed holders?|with less than ([\d.]+)% each) ([\d.]+)%", text_of(row)
                )
                if not said or not shares:
                    continue
                number = int(said[1].replace(",", ""))
                rest = sum(shares[:number])
                # A sum of shares is written with two decimals where these say more than nothing.
                self.expect(path, said[0], said[3], percent(round(rest, 2) or round(rest, 6)))
                if said[2]:
                    self.expect(path, said[0], said[1], written(sum(share < float(said[2]) for share in shares)))
                shown += [number, said[3], said[2] or ""]
        return shown

    def _counts(self, bundle: dict[str, Any]) -> dict[str, int]:
        return {
            "Team": people_of(bundle.get("positions") or ()),
            "Assessments": len(bundle["company"].get("assessments") or ()),
            "Proposals": len(bundle.get("proposals") or ()),
            "Cap table": len(bundle.get("capTable") or ()),
            "Funding": len(bundle.get("fundingRounds") or ()),
            "Frameworks": sum(
                (each.get("company") or {}).get("slug") == bundle["company"]["id"] for each in self.registry.frameworks
            ),
        }

    def _tabs(self, path: str, main: Element, counts: dict[str, int]) -> None:
        for link in (each for tabs in with_class(main, "nav", "sections") for each in tabs.iter("a")):
            label, _, count = text_of(link).rpartition(" ")
            if NUMBER.fullmatch(count):
                self.expect(path, f"tab {label}", count, written(counts[label]))

    def _tile(self, path: str, bundle: dict[str, Any], counts: dict[str, int], label: str, value: str) -> None:
        company, proposals = bundle["company"], bundle.get("proposals") or []
        note = company.get("treasuryNote") or "treasury"
        today = datetime.now(UTC).date().isoformat()
        active = [each for each in proposals if each.get("status") == "active"]
        voting = sum(str(each.get("endDate") or "9")[:10] >= today for each in active)  # without an end, it is open
        computed = {
            note.casefold(): company.get("treasury"),
            "people": written(counts["Team"]),
            "team size": written(company.get("teamSize") or 0),
            "proposals": written(len(proposals)),
            "proposal": written(len(proposals)),
            "open votes": written(voting),
            "open vote": written(voting),
            "token": company.get("symbol"),
        }
        name = label.casefold()
        if name.startswith(("listed holder", "token holder", "holder")):
            self.expect(path, label, value, written(counts["Cap table"]))
        elif name.startswith("last decided vote"):
            ended = [each for each in proposals if each.get("status") in {"passed", "failed"} and each.get("endDate")]
            last = max(ended, key=lambda each: str(each["endDate"]))
            self.expect(path, label, value.casefold(), last["status"])
        elif name != "raising":
            self.expect(path, label, value, str(computed.get(name)))

    def _derived(self, bundle: dict[str, Any], counts: dict[str, int]) -> list[Any]:
        """Return what pages compute of a company: shares and counts."""
        percentages = [each.get("percentage") for each in bundle.get("capTable") or ()]
        shares = [share for share in percentages if type(share) in {int, float}]
        total, ranked = sum(shares), sorted(shares, reverse=True)
        pools = [each.get("percentage") or 0 for each in (bundle.get("distribution") or {}).get("pools") or ()]
        rest = [100 - total, 100 - sum(pools), total, sum(pools), sum(ranked[:10])]
        roles = Counter(each.get("title") for each in bundle.get("positions") or ())
        states = Counter(each.get("status") for each in bundle.get("proposals") or ())
        votes = [each.get("votes") or {} for each in bundle.get("proposals") or ()]
        cast = [(each.get("for") or 0) + (each.get("against") or 0) for each in votes]
        sides = []
        for votes_of_one, count in zip(votes, cast, strict=True):
            if count:
                sides += [100 * (side or 0) / count for side in votes_of_one.values()]
        kept = [(len(ranked) - n, round(sum(ranked[n:]), 6)) for n in range(1, 9)]
        below = [sum(share < limit for share in shares) for limit in (0.01, 0.1, 1, 10)]
        titles = Counter((each.get("person") or {}).get("name") for each in bundle.get("positions") or ())
        several = [count - shown for count in titles.values() for shown in range(1, count)]
        people = [count - shown for count in roles.values() for shown in (12, 20, 24, 40) if count > shown]
        return [
            [*counts.values(), *roles.values(), *states.values(), *cast, *below, *several, *people, len(roles)],
            [f"{each:.{places}f} {percent(round(each, 6))}" for each in [*rest, *sides] for places in (0, 1, 2, 4, 6)],
            kept,
            [f"{round(each, 2):.2f} {round(each, 1)}" for each in ranked[:3]],
            gini(ranked),
            "1 10 100 0",  # percent, the ten largest, and the ends of the Gini coefficient
        ]

    def part(self, path: str, main: Element, slug: str) -> list[Any]:
        bundle = self.registry.bundle(slug)
        counts = self._counts(bundle)
        self._tabs(path, main, counts | {"Network": self._tied(bundle)[0]})
        return [bundle, *self._derived(bundle, counts), self._pages(main), self._tied(bundle)]

    def _tied(self, bundle: dict[str, Any]) -> tuple[int, int]:
        """Return how many people with a profile have positions elsewhere too, and how many have a profile."""
        slugs = {
            each["person"]["slug"] for each in bundle.get("positions") or () if (each.get("person") or {}).get("slug")
        }
        places = (self.registry.get(f"/people/{quote(slug)}")["data"]["positions"] for slug in slugs)
        return sum(len({each["company"]["slug"] for each in held}) > 1 for held in places), len(slugs)

    def network(self, path: str, main: Element, slug: str) -> list[Any]:
        bundle = self.registry.bundle(slug)
        tied, members = self._tied(bundle)
        self._tabs(path, main, self._counts(bundle) | {"Network": tied})
        said = re.search(r"([\d,]+) of ([\d,]+) people with a profile", text_of(main))
        if said or tied:
            shown = " of ".join(said.groups()) if said else ""
            self.expect(path, "people with ties", shown, f"{tied:,} of {members:,}")
        others = [self.registry.get(f"/people/{quote(each)}") for each in self.registry.held.get(slug, ())]
        places = {each["company"]["slug"] for other in others for each in other["data"]["positions"]} - {slug}
        # The picture has no more people and organizations than these; of more people, it chooses.
        drawn = [min(tied, DRAWN_PEOPLE), min(len(places), DRAWN_ORGANIZATIONS)]
        caption = re.search(
            r"the organization, ([\d,]+) of its people, and ([\d,]+) other organizations", text_of(main)
        )
        if caption and tied <= DRAWN_PEOPLE:
            self.expect(path, "organizations in the picture", caption[2], written(drawn[1]))
        return [
            bundle,
            others,
            self._pages(main),
            drawn,
            [tied, members, *range(1, 20)],
            list(self._counts(bundle).values()),
        ]

    def _pages(self, main: Element) -> list[str]:
        """Return the numbers of the pager, which must be whole and in order."""
        return [text_of(each) for each in with_class(main, "nav", "pager")]

    # ------------------------------------------------------------------ people

    def person(self, path: str, main: Element, slug: str) -> list[Any]:
        person = self.registry.get(f"/people/{quote(slug)}")["data"]
        positions = person["positions"]
        of_company = Counter(each["company"]["slug"] for each in positions)
        total = {"organization": len(of_company), "position": len(positions)}
        for tile in tiles_of(main):
            label = text_in(tile, "dt").casefold().removesuffix("s")
            self.expect(path, label, text_in(tile, "dd"), written(total[label]))
        for count in re.findall(r"· ([\d,]+) more positions?", text_of(main)):
            self.expect(path, "more positions", count, written(len(positions) - 1))
        for count in re.findall(r"Show all ([\d,]+) positions", text_of(main)):
            self.expect(path, "all positions", count, written(len(positions)))
        for card in with_class(main, "a", "card"):
            other = unquote((card.get("href") or "").rpartition("/")[2])
            more = re.search(r"and ([\d,]+) more$", text_of(card))
            if more and not int(more[1].replace(",", "")) < of_company[other]:
                self.differences.append(f"{path}: {more[0]} of {of_company[other]} positions at {other}")
        rest = [count - shown for count in of_company.values() for shown in range(1, count)]
        counts = [*of_company.values(), *rest, len(of_company), len(positions), len(positions) - 1]
        return [person, counts, self._pages(main)]

    # ------------------------------------------------------------------ lists

    def listing(self, path: str, main: Element, name: str) -> list[Any]:
        query = path.partition("?")[2]
        answer = self.registry.get(f"/{name}?{query}&pageSize=25")
        total = answer["pagination"]["total"]
        count = next(each for each in main.iter("p") if each.get("id") == "count")
        said = NUMBER.search(text_of(count))
        self.expect(path, "total", said[0] if said else "0", written(total))
        counted = self._facets(path, main, name)
        self._rows(path, main, name, answer["data"])
        details = []
        if name == "people":
            details = [self.registry.get(f"/people/{quote(each['slug'])}") for each in answer["data"]]
        return [answer, details, self._pages(main), total, counted]

    def _facets(self, path: str, main: Element, name: str) -> list[Any]:
        """Compare the count beside each value of a filter with the total of the list of that value."""
        chosen = parse_qsl(path.partition("?")[2])
        counted: list[Any] = [len(chosen)]
        for link in (each for block in with_class(main, "details", "facets") for each in block.iter("a")):
            number = next(with_class(link, "span", "n"), None)
            asked = parse_qsl((link.get("href") or "").partition("?")[2])
            changed = [each for each in [*asked, *chosen] if (each in asked) != (each in chosen) and each[0] != "page"]
            if number is None or len(changed) != 1:
                continue
            of, value = changed[0]
            others = [each for each in chosen if each[0] not in {of, "page", "sort"}]
            total = self.registry.get(f"/{name}?{urlencode([*others, (of, value)])}&pageSize=1")["pagination"]["total"]
            self.expect(path, f"{of} {value}", text_of(number), written(total))
            counted += [total, value]
        return counted

    def _rows(self, path: str, main: Element, name: str, items: list[dict[str, Any]]) -> None:
        rows = list(body_rows(main))
        if not rows:
            return
        self.expect(path, "rows", str(len(rows)), str(len(items)))
        for row, item in zip(rows, items, strict=False):
            cells = [text_of(each) for each in row.iter("td") if "number" in (each.get("class") or "").split()]
            if name == "people":
                self.expect(path, f"companies of {item['slug']}", cells[0], written(item.get("companyCount", 0)))
                continue
            team = written(item["teamSize"]) if "teamSize" in item else ""
            treasury, note = item.get("treasury", ""), item.get("treasuryNote", "")
            self.expect(path, f"team of {item['id']}", cells[0], team)
            self.expect(path, f"treasury of {item['id']}", cells[1].casefold(), f"{treasury} {note}".strip().casefold())

    # ------------------------------------------------------------------ overviews

    def home(self, path: str, main: Element) -> list[Any]:
        stats = self.registry.get("/stats")["data"]
        own = [each for each in self.registry.companies if each.get("treasuryAmount") and not each.get("treasuryNote")]
        amounts = [float(each["treasuryAmount"]["amount"]) for each in own]
        treasuries = sum(amount > 0 for amount in amounts)
        computed = {
            "companies": written(len(self.registry.companies)),
            "people": written(len(self.registry.people)),
            "frameworks": written(len(self.registry.frameworks)),
            "raising now": written(sum(each["raising"] for each in self.registry.companies)),
            f"combined treasury of {treasuries:,} companies": short_amount(sum(amounts)),
        }
        for tile in tiles_of(main):
            label = text_in(tile, "dt")
            self.expect(path, label, text_in(tile, "dd"), str(computed.get(label)))
        self.expect(path, "total of the API", stats["totalTreasury"], short_amount(sum(amounts)))
        counts = [Counter(each.get(name) for each in self.registry.companies) for name in ("type", "industry")]
        places = Counter(code for each in self.registry.companies for code in countries_of(each))
        linked = {unquote((each.get("href") or "").rpartition("/companies/")[2]) for each in main.iter("a")}
        news = [self.registry.bundle(each["id"]) for each in self.registry.companies if each["id"] in linked]
        known = [self.registry.companies, self.registry.frameworks, stats, treasuries, list(places.values()), news]
        return [*known, [list(each.values()) for each in counts], list(computed)]

    def world(self, path: str, main: Element) -> list[Any]:
        companies = self.registry.companies
        placed = sum(bool(countries_of(each)) for each in companies)
        unplaced = sum(bool(each.get("address")) and not countries_of(each) for each in companies)
        said = text_of(main)
        for pattern, computed in (
            (r"([\d,]+) compan(?:y is|ies are) on the map", placed),
            (r"([\d,]+) compan(?:y has an address|ies have addresses) without a country", unplaced),
            (r"([\d,]+) compan(?:y has|ies have) no address", len(companies) - placed - unplaced),
        ):
            found = re.search(pattern, said)
            self.expect(path, pattern, found[1] if found else "0", written(computed))
        countries = Counter(code for each in companies for code in countries_of(each))
        totals = []
        for row in body_rows(main):
            link = next(row.iter("a")).get("href") or ""
            total = self.registry.get(f"/companies?{link.partition('?')[2]}&pageSize=1")["pagination"]["total"]
            self.expect(path, link, text_of(list(row)[1]), written(total))
            if "country=" in link:
                self.expect(path, f"{link} by addresses", written(total), written(countries[link.rpartition("=")[2]]))
            totals.append(total)
        return [totals, len(countries), [placed, unplaced, len(companies) - placed - unplaced]]

    def comparison(self, path: str, main: Element) -> list[Any]:
        slugs = [unquote(each.partition("=")[2]) for each in path.partition("?")[2].split("&")]
        bundles = [self.registry.bundle(slug) for slug in slugs]
        counts = [self._counts(each) for each in bundles]
        computed = {
            "Proposals": [written(each["Proposals"]) for each in counts],
            "Listed holders": [written(each["Cap table"]) for each in counts],
            "Treasury": [treasury_of(each["company"]) for each in bundles],
            "People": [
                written(count["Team"] or each["company"].get("teamSize") or 0)
                for each, count in zip(bundles, counts, strict=True)
            ],
        }
        for row in body_rows(main):
            head = row.find("th")
            label = text_of(head).partition(" ●")[0] if head is not None else ""
            label = re.sub(r" ?(differs|Differs).*$", "", label).strip()
            cells = [text_of(each) for each in row.iter("td")]
            if label not in computed or len(cells) != len(slugs):
                continue
            for slug, cell, value in zip(slugs, cells, computed[label], strict=True):
                shown, expected = NUMBER.search(cell), NUMBER.search(value)
                if shown:
                    self.expect(path, f"{label} of {slug}", shown[0], expected[0] if expected else "")
        near = [self.registry.companies]
        derived = [self._derived(each, count) for each, count in zip(bundles, counts, strict=True)]
        return [bundles, counts, derived, near, list(range(30))]


def countries_of(company: dict[str, Any]) -> set[str]:
    named = {each["country"] for each in company.get("address") or () if each.get("country")}
    return named | set(company.get("derivedCountries") or ())


def treasury_of(company: dict[str, Any]) -> str:
    """Return the treasury of a company, with what its amount is if it is no treasury."""
    treasury, note = company.get("treasury") or "", company.get("treasuryNote")
    return f"{treasury} ({note})" if treasury and note else treasury


def gini(ranked: list[float]) -> str:
    """Return the Gini coefficient of shares, the largest first."""
    total, count = sum(ranked), len(ranked)
    if not total or count < 2:
        return ""
    weighted = sum((place + 1) * share for place, share in enumerate(reversed(ranked)))
    return f"{2 * weighted / (count * total) - (count + 1) / count:.2f}"


def short_amount(amount: float) -> str:
    """Return an amount in dollars as the API writes it."""
    suffixes = ["", "K", "M", "B", "T"]
    while round(amount, 1) >= 1000 and len(suffixes) > 1:
        amount /= 1000
        suffixes.pop(0)
    return f"${amount:.1f}".removesuffix(".0") + suffixes[0]


PARTS: Final = ("team", "team?page=2", "team?by=role", "network", "network?page=2")
TABLES: Final = ("proposals", "cap-table", "cap-table?page=3")


def addresses(registry: Registry, count: int) -> list[str]:
    """Return the addresses of the walk: overviews, the largest of each kind, and a seeded draw."""
    chance = random.Random(SEED)
    companies = [each["id"] for each in registry.companies]
    people = [each["slug"] for each in registry.people]
    teams = sorted(registry.held, key=lambda slug: -len(registry.held[slug]))
    busy = sorted(registry.people, key=lambda each: -each.get("companyCount", 0))
    held = [each["id"] for each in registry.get("/companies?hasCapTable=true&pageSize=100")["data"]]
    chosen = ["/", "/map", "/frameworks", "/companies", "/people"]
    chosen += [f"/frameworks/{quote(each['frameworkId'])}" for each in registry.frameworks]
    for slug in [*teams[:LARGEST], *held[:LARGEST]]:
        home = f"/companies/{quote(slug)}"
        chosen += [home, *(f"{home}/{part}" for part in (*PARTS, *TABLES))]
    for slug in chance.sample(teams, min(60, len(teams))):
        chosen += [f"/companies/{quote(slug)}/{part}" for part in PARTS]
    for person in busy[:LARGEST]:
        home = f"/people/{quote(person['slug'])}"
        chosen += [home, f"{home}/positions"]
    for company in chance.sample(registry.companies, min(40, len(companies))):
        named = {name: company[name] for name in ("type", "industry") if company.get(name)}
        if company.get("themes"):
            named["theme"] = chance.choice(company["themes"])
        chosen += [f"/companies?{urlencode({name: value})}" for name, value in named.items()]
    chosen += ["/companies?sort=treasury", "/companies?sort=treasury&page=2", "/companies?state=CA"]
    chosen += [f"/people?page={number}" for number in range(2, 20)]
    for _ in range(15):
        pair = chance.sample(teams[:60], min(2, len(teams)))
        chosen.append(f"/compare?{urlencode([('c', each) for each in pair])}")
    rest = max(0, count - len(set(chosen)))
    chosen += [f"/companies/{quote(each)}" for each in chance.sample(companies, min(len(companies), rest * 2 // 3))]
    chosen += [f"/people/{quote(each)}" for each in chance.sample(people, min(len(people), rest))]
    return list(dict.fromkeys(chosen))[:count]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("base_url")
    parser.add_argument("--pages", type=int, default=2_000)
    asked = parser.parse_args()
    walk = Walk(Registry(asked.base_url))
    with walk.registry.client:
        for path in addresses(walk.registry, asked.pages):
            walk.walk(path)
    print(f"{walk.pages:,} pages: {walk.figures:,} figures recomputed, {walk.numbers:,} numbers looked up,"
          f" {len(walk.differences):,} differences")  # fmt: skip
    print("\n".join(walk.differences[:500]))
    sys.exit(bool(walk.differences))


if __name__ == "__main__":
    main()
