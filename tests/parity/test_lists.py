"""REST and tools give the same facets and the same first page for random queries; facets are the totals of lists."""

import json
import random
import re
from urllib.parse import quote, unquote, urlencode

import pytest
from django.test import Client as Browser

from make.asgi import Client
from make.published import person
from make.queries import LISTINGS
from make.rest import Rest
from muniment.api.application import Api
from muniment.config import Config
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from muniment.web.requests import page_cache
from services.mcp import public_server
from services.product import run
from store.test_list_filters import registry

COLLECTIONS = {"company": "companies", "person": "people"}
BOUNDS = {
    "treasuryMin": ["0", "1M", "$2,000,000"],
    "treasuryMax": ["5M", "100000"],
    "teamMin": ["1", "3"],
    "teamMax": ["8", "50"],
    "listedFrom": ["2020-01-01", "2021-07-27"],
    "listedTo": ["2022-12-31T00:00:00Z"],
    "updatedSince": ["2026-01-03", "2026-01-05T00:00:00Z"],
    "minCompanies": ["1", "2"],
}
WORDS = ["blue", "green rivers", "bleu", "water", "open", "no such words", "person 7"]


def used(rest, kind):
    """Return the values in use of each filter, as a client learns them."""
    answer = rest.ask(f"/api/v1/facets?list={COLLECTIONS[kind]}").json["data"]
    return {name: [each["value"] for each in facet["values"]] for name, facet in answer.items() if facet["values"]}


def random_query(chance, kind, values):
    """Return parameters, each with its values: filters, bounds, words, an order and a page."""
    listing = LISTINGS[kind]
    query = {}
    for name, known in values.items():
        if chance.random() < 0.2:
            several = listing.criteria[name].several
            query[name] = chance.sample(known, min(len(known), chance.randint(1, 3 if several else 1)))
    for name, known in BOUNDS.items():
        if name in listing.criteria and chance.random() < 0.12:
            query[name] = [chance.choice(known)]
    if chance.random() < 0.4:
        query["q"] = [chance.choice(WORDS)]
    sorts = [each for each in listing.sorts if each != "relevance" or "q" in query]
    if chance.random() < 0.6:
        query["sort"] = [chance.choice(sorts)]
    query["pageSize"] = [str(chance.choice([3, 10, 25]))]
    if chance.random() < 0.3:
        query["page"] = [str(chance.randint(1, 3))]
    return query


def arguments(kind, query):
    """Return a query as a tool takes it."""
    found = {}
    for name, values in query.items():
        criterion = LISTINGS[kind].criteria.get(name)
        types = {"boolean", "integer"} if criterion is not None else set()
        if name in {"page", "pageSize"} or (types and criterion.schema["type"] in types):
            found[name] = json.loads(values[0])
        else:
            found[name] = values if len(values) > 1 else values[0]
    return found


def compare(rest, server, rounds, seed):
    chance = random.Random(seed)
    values = {kind: used(rest, kind) for kind in COLLECTIONS}
    filled = 0
    for _ in range(rounds):
        kind = chance.choice(["company", "company", "person"])
        query, names = random_query(chance, kind, values[kind]), LISTINGS[kind].counted
        path = f"/api/v1/{COLLECTIONS[kind]}?"
        pairs = [(name, value) for name, each in query.items() for value in each]
        wire = urlencode([*pairs, ("facets", ",".join(names))], quote_via=quote)
        by_rest = rest.ask(path + wire)
        given = {**arguments(kind, query), "facets": list(names)}
        by_tool = server.call(f"list_{COLLECTIONS[kind]}", given)["structuredContent"]
        if by_rest.status != 200:
            assert by_tool["error"]["code"] == by_rest.error["code"] == "bad_request", query
            continue
        answer = by_rest.json
        key = "id" if kind == "company" else "slug"
        shown = [each[key] for each in answer["data"]]
        assert [each[key] for each in by_tool["data"]] == shown, query
        assert by_tool["pagination"] == {name: answer["pagination"][name] for name in by_tool["pagination"]}, query
        for member in ("facets", "closest", "hint"):
            assert by_tool.get(member) == answer.get(member), (member, query)
        alone = rest.ask(f"/api/v1/facets?list={COLLECTIONS[kind]}&{wire}").json
        assert (alone["data"], alone["total"]) == (answer["facets"], answer["pagination"]["total"]), query
        filled += bool(shown)
        check_a_count(rest, chance, path, query, answer["facets"])
    assert filled > rounds // 4


def compare_search(rest, server, pages, rounds, seed):
    """Compare what the search over everything finds by REST, by tool and on its page."""
    chance = random.Random(seed)
    values = used(rest, "company")
    names = [each["name"] for each in rest.ask("/api/v1/companies?pageSize=100").json["data"]]
    found_some = 0
    for _ in range(rounds):
        q = chance.choice(
            [
                chance.choice(WORDS),
                chance.choice(names),
                chance.choice(names)[:5],
                chance.choice(names)[1:],
                f"which companies on {chance.choice(values['theme'])} are {chance.choice(['active', 'raising'])}",
            ]
        )
        answer = rest.ask(f"/api/v1/search?{urlencode({'q': q, 'limit': 10}, quote_via=quote)}").json
        by_tool = server.call("search", {"query": q})["structuredContent"]
        ids = [f"{each['kind']}:{each['id']}" for each in answer["data"]]
        assert [each["id"] for each in by_tool["results"]][: len(ids)] == ids[:10], q
        assert bool(by_tool.get("reading")) == bool(answer.get("reading")), q
        page = pages.get("/search", {"q": q}).content.decode()
        for kind, collection in {**COLLECTIONS, "framework": "frameworks"}.items():
            shown = [unquote(each) for each in re.findall(rf'class="name"><a href="/{collection}/([^"/]+)"', page)]
            wanted = [each["id"] for each in answer["data"] if each["kind"] == kind]
            assert shown == wanted[:8], (q, kind)
        found_some += bool(ids)
    assert found_some > rounds // 4


def check_a_count(rest, chance, path, query, facets):
    """Check that choosing a value in place of what is chosen gives a list of as many items as its facet says."""
    counted = [(name, each) for name, facet in facets.items() for each in facet["values"]]
    if not counted:
        return
    name, value = chance.choice(counted)
    rest_of = [(other, each) for other, values in query.items() if other not in {name, "page"} for each in values]
    total = rest.ask(path + urlencode([*rest_of, (name, value["value"])], quote_via=quote)).json["pagination"]["total"]
    if name != "title":  # which is found by words within longer titles too
        assert total == value["count"], (name, value, query)


@pytest.fixture(scope="module")
def rest(tmp_path_factory):
    made = Rest(tmp_path_factory.mktemp("lists"))
    titles, companies = ["CEO", "Member", "Vice President"], ["blue-trust", "green-trust"]
    made.publish(
        *registry(120, seed=3),
        *(person(n, positions=((titles[n % 3], companies[n % 2]), ("Member", "x"))[: n % 3]) for n in range(1, 40)),
    )
    yield made
    made.close()


def test_random_queries_have_the_same_answer_on_every_surface(rest):
    with public_server(rest.reader) as server:
        compare(rest, server, 60, seed=1)


@pytest.fixture
def pages(rest):
    page_cache.use(rest.reader)
    yield Browser()
    page_cache.use(None)


def test_random_searches_have_the_same_answer_on_every_surface(rest, pages):
    with public_server(rest.reader) as server:
        compare_search(rest, server, pages, 40, seed=4)


@pytest.mark.proof
def test_five_hundred_random_queries_have_the_same_answer_on_every_surface(rest):
    with public_server(rest.reader) as server:
        compare(rest, server, 500, seed=2)


@pytest.mark.proof
def test_random_queries_of_a_real_registry_have_the_same_answer_on_every_surface(sample_data, tmp_path):
    run("import", str(sample_data), data=tmp_path, check=False, timeout_s=900)
    config = Config({}, data=tmp_path)
    reader = Reader(config.published_file)
    api = Api(reader, config, registry_schema("USD"))
    try:
        with public_server(reader) as server:
            compare(Client(api), server, 500, seed=3)
            page_cache.use(reader)
            compare_search(Client(api), server, Browser(), 500, seed=5)
    finally:
        page_cache.use(None)
        api.close()
        reader.close()
