"""For random queries a list page and the API address that it names have the same first page, total and facets."""

import random
import re
from html import unescape
from urllib.parse import quote, unquote, unquote_plus, urlencode

import pytest
from django.test import Client

from make.published import company, framework, person
from make.queries import LISTINGS
from make.rest import Rest
from muniment.web.requests import page_cache

KINDS = {"companies": "company", "people": "person", "frameworks": "framework"}
KEYS = {"companies": "id", "people": "slug", "frameworks": "frameworkId"}
BOUNDS = {
    "treasuryMin": ["0", "1M"],
    "treasuryMax": ["5M", "$100,000"],
    "teamMin": ["1", "3"],
    "teamMax": ["8"],
    "listedFrom": ["2020-01-01"],
    "updatedSince": ["2026-01-01"],
    "minCompanies": ["1", "2"],
}
WORDS = ["harbour", "harbuor", "tide mill", "no such words", "person 7", "nets, large"]
TYPES, THEMES = ["DAO", "collective", "Water board"], ["tides", "nets, large", "quays & piers", "Öl"]


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    made = Rest(tmp_path_factory.mktemp("pages"))
    chance = random.Random(7)
    made.publish(
        *(
            company(
                n,
                name=f"{chance.choice(['Harbour', 'Tide mill', 'Quay'])} {n}",
                type=chance.choice(TYPES),
                status=chance.choice(["active", "active", "inactive"]),
                themes=chance.sample(THEMES, chance.randint(1, 3)),
                teamSize=chance.randint(1, 12),
                treasuryMinor=chance.choice([0, 50_000_000, 300_000_000]),
                raising=chance.random() < 0.3,
                **({"symbol": f"T{n}"} if n % 4 == 0 else {}),
            )
            for n in range(1, 121)
        ),
        *(person(n, positions=(("Member", "blue-trust"), ("Chair", "green-trust"))[: n % 3]) for n in range(1, 60)),
        *(framework(n, kind="score" if n % 2 else "program") for n in range(1, 40)),
    )
    yield made
    made.close()


@pytest.fixture
def visitor(rest):
    page_cache.use(rest.reader)
    yield Client()
    page_cache.use(None)


def random_query(chance, name, values):
    listing = LISTINGS[KINDS[name]]
    pairs = []
    for each, known in values.items():
        if chance.random() < 0.2:
            several = 3 if listing.criteria[each].several else 1
            pairs += [(each, value) for value in chance.sample(known, min(len(known), chance.randint(1, several)))]
    pairs += [
        (each, chance.choice(known))
        for each, known in BOUNDS.items()
        if each in listing.criteria and chance.random() < 0.12
    ]
    if name != "frameworks":
        pairs += [("q", chance.choice([*WORDS]))] if chance.random() < 0.4 else []
        pairs += [("sort", chance.choice(listing.sorts))] if chance.random() < 0.6 else []
        pairs += [("page", "2")] if chance.random() < 0.2 else []
    return urlencode(pairs)


def facets_of(html):
    """Return the values and counts of each filter that a page shows."""
    found = {}
    for name, value, n in re.findall(r'<a id="(\w+)-([^"]*)" href=[^>]*><bdi>.*?</bdi> <span class="n">([\d,]+)', html):
        found.setdefault(name, []).append((unquote_plus(unescape(value)), int(n.replace(",", ""))))
    return found


def compare(rest, visitor, rounds, seed):
    chance, filled = random.Random(seed), 0
    asked = {name: rest.ask(f"/api/v1/facets?list={name}").json["data"] for name in KINDS}
    values = {
        name: {of: [each["value"] for each in one["values"]] for of, one in asked[name].items()} for name in KINDS
    }
    for _ in range(rounds):
        name = chance.choice(list(KINDS))
        known = {of: each for of, each in values[name].items() if each}
        query = random_query(chance, name, known)
        page = visitor.get(f"/{name}?{query}", follow=True)
        if page.status_code != 200:
            assert page.status_code == rest.ask(f"/api/v1/{name}?{query}").status == 400, query
            continue
        html = page.text
        address = unescape(re.search(rf'href="(/api/v1/{name}[^"]*)">', html)[1])
        answer = rest.ask(address).json
        shown = [unquote(each) for each in re.findall(rf'class="name"><a href="/{name}/([^"]*)"', html)]
        assert shown == [each[KEYS[name]] for each in answer["data"]][: len(shown) or 25], address
        total = int(re.search(r'id="count" tabindex="-1">([\d,]+)', html)[1].replace(",", ""))
        assert total == answer.get("pagination", {"total": len(answer["data"])})["total"], address
        query = "&".join(each for each in address.partition("?")[2].split("&") if not each.startswith("page="))
        counted = rest.ask(f"/api/v1/facets?list={quote(name)}&{query}").json["data"]
        for of, options in facets_of(html).items():
            expected = [(each["value"], each["count"]) for each in counted[of]["values"]]
            assert sorted(set(expected) - set(options)) == [], (of, address)
        filled += bool(shown)
    assert filled > rounds // 4


def test_random_queries_have_the_same_first_page_and_facets_on_pages_and_by_the_api(rest, visitor):
    compare(rest, visitor, 60, seed=1)


@pytest.mark.proof
def test_five_hundred_random_queries_have_the_same_first_page_and_facets_on_pages_and_by_the_api(rest, visitor):
    compare(rest, visitor, 500, seed=2)
