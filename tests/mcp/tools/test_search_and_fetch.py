"""search and fetch: the shape that ChatGPT expects, questions in words, and ids that are understood or refused."""

import json

import pytest

from make.published import Publisher, company, framework, person
from muniment.mcp.tools import public_search
from muniment.mcp.tools.answers import BUDGET_BYTES, form_of
from muniment.schema.objects import registry_schema
from muniment.store.reader import Reader
from services.mcp import BASE, public_server

LONG = "\u0001夜" * 30_000


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "published.sqlite3"
    publisher = Publisher(path)
    tide = company(
        1,
        "tide",
        name="Tide",
        symbol="TIDE",
        description="Keeps boats.",
        body="Keeps boats.\n\nAnd harbours.",
        capTable=[{"address": f"0x{n}", "tokens": str(n)} for n in range(300)],
        theirField={"a": [1, 2], "b": True},
    )
    publisher.publish(
        tide,
        company(2, "a:b/c", name="Odd key"),
        company(3, "long", name="Long", body=LONG),
        *(company(n, name=f"Tide {n}") for n in range(4, 30)),
        person(1, "ada-tide", name="Ada Tide", bio="Measures water."),
        framework(1, "tide-score", name="Tide score", description="How well a harbour is kept."),
    )
    reader = Reader(path)
    with public_server(reader) as asker:
        yield asker
    reader.close()
    publisher.close()


def answer(server, name, **arguments):
    found = server.call(name, arguments)
    assert json.loads(found["content"][0]["text"]) == found["structuredContent"]
    assert len(found["content"]) == 1
    return found


@pytest.mark.requirement("search.tools")
def test_both_take_one_text_and_are_read_only(server):
    for name, argument in (("search", "query"), ("fetch", "id")):
        tool = server.server.tools[name].tool
        assert list(tool.input_schema["properties"]) == tool.input_schema["required"] == [argument]
        assert tool.input_schema["properties"][argument]["type"] == "string"
        assert tool.to_wire()["annotations"]["readOnlyHint"] is True


@pytest.mark.requirement("search.tools")
def test_a_search_gives_id_title_and_address_of_the_ten_best_of_all_kinds(server):
    found = answer(server, "search", query="tide")
    results = found["structuredContent"]["results"]
    assert results[0] == {
        "id": "company:tide",
        "title": "Tide (TIDE)",
        "url": f"{BASE}/companies/tide",
        "matched": "name",
        "text": "corporation, Software. Keeps boats.",
    }
    assert len(results) == 10
    assert {"framework:tide-score", "person:ada-tide"} < {each["id"] for each in results}
    marks = found["_meta"]["io.muniment/provenance"]
    assert marks["companies"]["tide"] == marks["people"]["ada-tide"] == "imported 2026-01-01"


def test_a_question_in_words_gives_what_its_words_name_with_a_hint(server):
    found = answer(server, "search", query="what does the framework called Tide score say about boats?")
    content = found["structuredContent"]
    assert content["results"][0]["id"] == "framework:tide-score"
    text = content["results"][0]["text"]
    assert text.startswith('Its name is in "what does the framework')
    assert text.endswith('about boats?". How well a harbour is kept.')
    assert content["notUnderstood"] == ["what", "does", "the", "framework", "called", "say", "about", "boats"]
    assert content["hint"].startswith("No company, person or framework matches")
    assert "The results are only names that the query contains." in content["hint"]
    assert "list_people (company, title)" in content["hint"]
    assert found["_meta"]["io.muniment/provenance"]["frameworks"] == {"tide-score": "imported 2026-01-01"}


def test_a_search_longer_than_a_list_takes_is_cut(server):
    assert answer(server, "search", query="tide " + "ab " * 500)["isError"] is False


@pytest.mark.parametrize("query", ["", "   ", "\u0000"])
def test_a_blank_search_is_refused(server, query):
    found = answer(server, "search", query=query)
    assert found["isError"] is True
    assert found["structuredContent"]["error"]["message"] == "The query is blank."


@pytest.mark.requirement("search.tools")
def test_a_fetch_gives_the_whole_text_with_its_address(server):
    found = answer(server, "fetch", id="company:tide")
    document = found["structuredContent"]
    assert list(document) == ["id", "title", "text", "url", "metadata"]
    assert (document["id"], document["title"]) == ("company:tide", "Tide (TIDE)")
    assert document["url"] == f"{BASE}/companies/tide"
    assert document["metadata"] == {
        "kind": "company",
        "updatedAt": "2026-01-01T00:00:00.000000Z",
        "json": f"{BASE}/api/v1/companies/tide",
    }
    text = document["text"]
    assert text.startswith("Keeps boats.\n\nStatus: active\nType: corporation\n")
    assert text.count("Keeps boats.") == 1
    assert "\n\nAnd harbours.\n\n" in text
    assert "Themes: open\nRaising funds: no" in text
    assert "theirField: a 1, 2, b yes" in text
    assert "Token holders (300):\n- 0x0: Tokens: 0\n" in text
    assert text.endswith("- and 200 more")
    assert found["_meta"]["io.muniment/provenance"] == {"companies": {"tide": "imported 2026-01-01"}}


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        ("person:ada-tide", "person:ada-tide"),
        ("framework:tide-score", "framework:tide-score"),
        (f"{BASE}/people/ada-tide", "person:ada-tide"),
        (f"{BASE}/api/v1/companies/tide", "company:tide"),
        (f"{BASE}/companies/a%3Ab%2Fc", "company:a:b/c"),
        ("company:a:b/c", "company:a:b/c"),
        ("tide", "company:tide"),
        (" ada-tide", "person:ada-tide"),
    ],
)
def test_an_id_an_address_or_a_slug_is_understood(server, asked, found):
    assert answer(server, "fetch", id=asked)["structuredContent"]["id"] == found


@pytest.mark.requirement("search.tools")
@pytest.mark.parametrize(
    ("asked", "hint"),
    [
        ("company:tied", "Did you mean company:tide"),
        ("person:ada-tied", "Did you mean person:ada-tide"),
        ("company:ada-tide", "Did you mean person:ada-tide"),
        ("zzyzx", "Call search for valid ids."),
        ("", "Call search for valid ids."),
        ("http://[", "Call search for valid ids."),
    ],
)
def test_an_unknown_id_is_refused_with_the_nearest(server, asked, hint):
    found = answer(server, "fetch", id=asked)
    assert found["isError"] is True
    assert found["structuredContent"]["error"]["code"] == "not_found"
    assert found["structuredContent"]["error"]["hint"].startswith(hint)


def test_the_longest_text_stays_within_an_answer(server):
    found = answer(server, "fetch", id="company:long")["structuredContent"]
    assert len(json.dumps(found, ensure_ascii=False).encode()) <= BUDGET_BYTES
    assert len(found["text"]) <= public_search.MAX_CHARACTERS
    assert "…" in found["text"]


def test_people_and_frameworks_lead_on_to_those_that_they_name():
    schema = registry_schema("USD")
    data = {
        "name": "Ada Tide",
        "slug": "ada-tide",
        "bio": "Measures water.",
        "positions": [
            {"title": "Keeper", "company": {"id": "tide", "name": "Tide", "slug": "tide"}},
            {"company": {"id": "weir", "name": "Weir", "slug": "weir"}},
        ],
    }
    text = public_search.text_of("person", data, schema)
    assert text == "Measures water.\n\nPositions (2):\n- Keeper: Tide (company:tide)\n- Weir (company:weir)"
    company = {"name": "Tide", "positions": [{"title": "Keeper", "person": {"name": "Ben"}}]}
    assert "Team (1):\n- Keeper: Ben" in public_search.text_of("company", {"company": company, **company}, schema)
    program = {"frameworkName": "Tide score", "isOpen": True, "company": {"name": "Tide", "slug": "tide"}}
    text = public_search.text_of("framework", {**program, "companyDescription": "Keeps boats."}, schema)
    assert text == "Open: yes\nCompany: Tide (company:tide)\n\nAbout the company: Keeps boats."


def test_a_result_that_a_text_holds_shows_the_line_that_says_it(tmp_path):
    publisher = Publisher(tmp_path / "p.sqlite3")
    body = (
        "Keeps boats.\n\n| Chain | Address |\n| --- | --- |\n| optimism | 0x00000000000000000000000000000000000000b7 |"
    )
    publisher.publish(company(1, "quay", body=body), company(2, "weir", body="x" * 300 + " lantern"))
    reader = Reader(tmp_path / "p.sqlite3")
    with public_server(reader) as asker:
        address = "0x00000000000000000000000000000000000000b7"
        shown = {address: f"text: | optimism | {address} |", "lantern": f"text: …{'x' * 152} lantern"}
        for query, said in shown.items():
            assert asker.call("search", {"query": query})["structuredContent"]["results"][0]["matched"] == said
    reader.close()
    publisher.close()


@pytest.mark.parametrize(
    ("named", "field"),
    [
        ("hasToken", "symbol"),
        ("theme", "themes"),
        ("team", "teamSize"),
        ("country", "address"),
        ("city", "address"),
    ],
)
def test_a_filter_that_is_named_as_a_field_means_the_field_that_it_is_about(named, field):
    assert form_of({"fields": [named]}).fields == (field,)


def test_the_slug_of_a_company_may_be_named_as_a_field(server):
    listed = server.call("list_companies", {"fields": ["slug", "name"]})["structuredContent"]["data"]
    assert {frozenset(each) for each in listed} == {frozenset({"id", "name"})}


def test_a_value_of_a_filter_among_common_words_is_understood(tmp_path):
    publisher = Publisher(tmp_path / "values.sqlite3")
    publisher.publish(company(1, "tide", name="Tide", type="DAO"), company(2, "quay", name="Quay"))
    reader = Reader(tmp_path / "values.sqlite3")
    with public_server(reader) as asker:
        content = answer(asker, "search", query="Largest DAOs")["structuredContent"]
    assert (content["results"], content["notUnderstood"]) == ([], ["Largest"])
    assert "list companies with type=DAO" in content["hint"]
    reader.close()
    publisher.close()
