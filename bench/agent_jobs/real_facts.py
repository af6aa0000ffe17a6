"""
What a real registry holds, computed from its files and not from the service that is tested.

The repository has no real names: prompts and patterns of the jobs refer to these facts.
"""

import json
import re
from collections import Counter, defaultdict
from decimal import Decimal
from functools import cached_property
from pathlib import Path


class Facts:
    """
    Facts of the registry in *data*.

    Each method returns what its job refers to; the choice is the same in every run.
    """

    def __init__(self, data: Path) -> None:
        self._data = data

    def _read(self, name: str) -> list[dict]:
        lines = (self._data / name).read_text().split("\n")
        return [json.loads(line) for line in lines if line.strip()]

    @cached_property
    def _bundles(self) -> list[dict]:
        return self._read("companies.jsonl")

    @cached_property
    def _names(self) -> Counter:
        return Counter(bundle["company"]["name"] for bundle in self._bundles)

    @cached_property
    def _boards(self) -> dict[str, set]:
        """Return the companies of each person, by slug."""
        found = defaultdict(set)
        for bundle in self._bundles:
            for position in bundle.get("positions") or ():
                if slug := position["person"].get("slug"):
                    found[slug].add(bundle["company"]["id"])
        return found

    @cached_property
    def _people(self) -> dict[str, dict]:
        return {person["slug"]: person for person in self._read("people.jsonl")}

    def _plain(self, *, team: range) -> list[dict]:
        """Return bundles with a plain name of their own and a team of that size, largest team first."""
        found = [
            bundle
            for bundle in self._bundles
            if len(bundle.get("positions") or ()) in team
            and bundle["company"]["name"].isascii()
            and bundle["company"]["name"].replace(" ", "").isalnum()
            and self._names[bundle["company"]["name"]] == 1
        ]
        return sorted(found, key=lambda bundle: (-len(bundle["positions"]), bundle["company"]["id"]))

    # ------------------------------------------------------------------ what jobs refer to

    def boards(self) -> dict:
        """Return how many people hold positions at more than two companies, and the most that one holds."""
        sizes = [len(companies) for companies in self._boards.values()]
        return {"count": sum(size > 2 for size in sizes), "most": max(sizes)}

    def large_team(self) -> dict:
        """Return the largest team that fits into two pages of people with their bios."""
        bundle = self._plain(team=range(100, 126))[0]
        held = {position["person"]["slug"] for position in bundle["positions"] if position["person"].get("slug")}
        bios = [bio for slug in sorted(held) if (bio := self._people.get(slug, {}).get("bio"))]
        return {"name": bundle["company"]["name"], "slug": bundle["company"]["id"], "people": len(held), "bio": bios[0]}

    def inactive(self) -> dict:
        """Return the number of inactive organizations of the most frequent type among them."""
        types = Counter(
            bundle["company"]["type"]
            for bundle in self._bundles
            if bundle["company"].get("status") == "inactive" and bundle["company"].get("type")
        )
        kind, count = types.most_common(1)[0]
        return {"type": kind, "count": count}

    def richest(self) -> dict:
        """Return the names of the ten largest treasuries."""
        held = sorted(
            (
                (_amount(bundle["company"]["treasury"]), bundle["company"]["name"])
                for bundle in self._bundles
                if bundle["company"].get("treasury")
            ),
            reverse=True,
        )[:10]
        return {"names": [name for _, name in held], "first": held[0][1], "tenth": held[9][1]}

    def programs(self) -> dict:
        frameworks = self._read("frameworks.jsonl")
        opened = [each for each in frameworks if each.get("specification")]
        return {
            "programs": sum(each["framework"]["kind"] == "program" for each in opened),
            "frameworks": len(opened),
            "name": min(each["framework"]["frameworkName"] for each in opened),
        }

    def misspelt(self) -> dict:
        """Return a name of one long word with two letters swapped, and the name."""
        bundle = next(
            bundle
            for bundle in self._plain(team=range(3, 60))
            if bundle["company"]["name"].isalpha() and 8 <= len(bundle["company"]["name"]) <= 12
        )
        name = bundle["company"]["name"]
        return {"typed": name[:3] + name[4] + name[3] + name[5:], "name": name, "slug": bundle["company"]["id"]}

    def town(self) -> dict:
        """Return a town with one nonprofit, whose name does not have the town's."""
        found = defaultdict(list)
        for bundle in self._bundles:
            company = bundle["company"]
            for place in company.get("address") or ():
                if company.get("type") == "non-profit" and place.get("city"):
                    found[place["city"]].append(company["name"])
        for city in sorted(found):
            (name, *others) = found[city]
            if not others and city.lower() not in name.lower():
                return {"city": city, "name": name}
        raise LookupError

    def head(self) -> dict:
        """Return an organization with exactly one president, and the president."""
        for bundle in self._plain(team=range(2, 15)):
            heads = [each["person"] for each in bundle["positions"] if each["title"].lower() == "president"]
            if len(heads) == 1 and heads[0].get("slug"):
                return {"company": bundle["company"]["name"], "person": self._people[heads[0]["slug"]]["name"]}
        raise LookupError

    def person(self) -> dict:
        """Return a person with a name of their own and positions at two or three companies."""
        names = Counter(person["name"] for person in self._people.values())
        for slug in sorted(self._boards):
            person = self._people.get(slug)
            if person and names[person["name"]] == 1 and len(self._boards[slug]) in {2, 3} and person["name"].isascii():
                companies = {bundle["company"]["id"]: bundle["company"]["name"] for bundle in self._bundles}
                return {
                    "name": person["name"],
                    "slug": slug,
                    "companies": sorted(companies[each] for each in self._boards[slug]),
                }
        raise LookupError

    def domain(self) -> dict:
        """Return a website's domain that one company alone has."""
        hosts = Counter(_host(bundle) for bundle in self._bundles)
        for bundle in self._plain(team=range(1, 200)):
            host = _host(bundle)
            if host and hosts[host] == 1 and host.count(".") == 1:
                return {"domain": host, "name": bundle["company"]["name"], "slug": bundle["company"]["id"]}
        raise LookupError

    def symbol(self) -> dict:
        """Return a token symbol that one company alone has."""
        symbols = Counter((bundle["company"].get("symbol") or "").upper() for bundle in self._bundles)
        for bundle in sorted(self._bundles, key=lambda bundle: bundle["company"]["id"]):
            symbol = bundle["company"].get("symbol") or ""
            if len(symbol) >= 5 and symbol.isalpha() and symbols[symbol.upper()] == 1:
                return {"symbol": symbol, "name": bundle["company"]["name"], "slug": bundle["company"]["id"]}
        raise LookupError

    def on_chain(self) -> dict:
        """Return an address in a text that one company alone has."""
        found = defaultdict(set)
        for bundle in self._bundles:
            for address in re.findall(r"0x[0-9a-fA-F]{40}", bundle["company"].get("body") or ""):
                found[address.lower()].add(bundle["company"]["name"])
        address = max(each for each, names in found.items() if len(names) == 1)
        return {"address": address, "name": next(iter(found[address]))}

    def participants(self) -> dict:
        """Return a program, the company that runs it and one that took part."""
        for each in sorted(self._read("frameworks.jsonl"), key=lambda each: each["framework"]["frameworkId"]):
            framework = each["framework"]
            named = re.search(r"\[([A-Z][^\]]+)\]\(/companies/", framework.get("description") or "")
            if framework["kind"] == "program" and framework.get("company") and named:
                return {
                    "name": framework["frameworkName"],
                    "frameworkId": framework["frameworkId"],
                    "company": framework["company"]["name"],
                    "participant": named[1],
                }
        raise LookupError

    def large_bundle(self) -> dict:
        """Return the company with most token holders."""
        bundle = max(self._bundles, key=lambda bundle: len(bundle.get("capTable") or ()))
        return {
            "name": bundle["company"]["name"],
            "slug": bundle["company"]["id"],
            "holders": len(bundle["capTable"]),
            "first": bundle["capTable"][0].get("name") or bundle["capTable"][0]["address"],
        }

    def stats(self) -> dict:
        return {"companies": len(self._bundles), "people": len(self._people)}


def _amount(text: str) -> Decimal:
    number = text.lstrip("$€£").replace(",", "")
    factor = {"K": 3, "M": 6, "B": 9, "T": 12}.get(number[-1], 0)
    return Decimal(number.rstrip("KMBT")).scaleb(factor)


def _host(bundle: dict) -> str:
    site = bundle["company"].get("website") or ""
    return site.partition("//")[2].partition("/")[0].lower().removeprefix("www.")
