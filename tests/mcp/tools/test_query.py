"""The tool `query`: rows that a model can hold, tables in its description, and statements where search fails."""

import json

import pytest

from make import published as make
from muniment.mcp.tools import near_statements, public, query
from muniment.mcp.tools.near_statements import near_statement
from muniment.mcp.tools.query import tables_in_brief
from muniment.registry_toml.document import Query
from muniment.registry_toml.queries import SHIPPED
from muniment.schema.kinds import Number
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.store.reader import Reader
from muniment.store.tables import FILE_NAME
from muniment.store.tables.following import Tables
from services.mcp import legacy, modern, public_server

SCHEMA = registry_schema("USD")
ADDRESS = {"city": "Lisbon", "country": "PT"}


@pytest.fixture(scope="module")
def registry(tmp_path_factory):
    path = tmp_path_factory.mktemp("published") / "p.sqlite3"
    publisher = make.Publisher(path)
    crew = [{"title": "Pilot", "person": {"name": "Ada", "slug": "ada"}}]
    vote = {"title": "Dredge", "status": "failed", "votes": {"for": 1, "against": 2}, "endDate": "2026-02-01"}
    publisher.publish(
        make.company(1, "uniswap", name="Uniswap", positions=crew, themes=["swaps"], proposals=[vote], teamSize=1),
        make.company(2, "optimism", name="Optimism", positions=crew, themes=["swaps"], address=[ADDRESS]),
        make.company(3, "chance", description="A list of companies by type, with people and positions."),
        make.person(1, "ada", name="Ada", bio="b" * 20_000, positions=(("Pilot", "uniswap"),)),
    )
    reader = Reader(path)
    tables = Tables(path.with_name(FILE_NAME), reader, SCHEMA)
    tables.follow()
    with public_server(reader) as server:
        yield server
    tables.close()
    reader.close()
    publisher.close()


def ask(registry, sql, **arguments):
    found = registry.call("query", {"sql": sql, **arguments})
    assert found["isError"] is False, found
    return found["structuredContent"]


def test_an_answer_without_rows_says_how_to_find_the_values_that_there_are(registry):
    found = ask(registry, "SELECT slug FROM companies WHERE name = 'uniswap'")
    assert (found["rows"], "SELECT DISTINCT" in found["hint"]) == ([], True)
    assert "hint" not in ask(registry, "SELECT slug FROM companies WHERE name LIKE 'uniswap'")


def test_a_statement_is_answered_in_columns_and_rows(registry):
    found = ask(registry, "SELECT slug, team_size FROM companies WHERE team_size = :n", params={"n": 1})
    assert found == {"columns": ["slug", "team_size"], "rows": [["uniswap", 1]], "edition": 4}
    chosen = "SELECT slug FROM companies WHERE slug IN (SELECT value FROM json_each(:slugs)) ORDER BY 1"
    assert ask(registry, chosen, params='{"slugs": ["optimism", "uniswap"]}')["rows"] == [["optimism"], ["uniswap"]]
    assert ask(registry, chosen, params='{"slugs": ["optimism", "uniswap"]}')["edition"] == 4


def test_limit_bytes_and_long_texts_cut_an_answer_that_says_how_to_go_on(registry):
    many = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n WHERE x < 150) SELECT x FROM n"
    found = ask(registry, many)
    assert (len(found["rows"]), found["truncated"]["by"]) == (query.DEFAULT_ROWS, ["rows"])
    assert "OFFSET 100" in found["truncated"]["hint"]
    assert "truncated" not in ask(registry, many, limit=1000)
    long = ask(registry, many.replace("SELECT x FROM n", "SELECT printf('%.*c', 5000, 'a') FROM n"))
    assert long["truncated"]["by"] == ["bytes"]
    assert len(json.dumps(long)) < 60_000
    assert ask(registry, "SELECT bio FROM people")["truncated"]["by"] == ["cells"]


def test_a_statement_that_is_wrong_fails_with_a_hint(registry):
    found = registry.call("query", {"sql": "SELECT slg FROM companies"})
    assert found["isError"] is True
    assert found["structuredContent"]["error"] == {
        "code": "bad_request",
        "message": "There is no column slg, line 1, column 8.",
        "hint": "Did you mean companies.slug?",
    }


def test_the_description_names_every_table_and_has_room_for_declared_fields():
    brief = tables_in_brief(SCHEMA)
    for table in ("companies(slug name", "positions(company title person", "socials(company network", "changes("):
        assert table in brief
    declared = tuple(Field(f"declaredField{number}", Number(), "Declared") for number in range(50))
    much = tables_in_brief(SCHEMA.declare(company=declared))
    assert "declared_field0" in much
    assert len(much) <= query.MAX_TABLES_CHARACTERS + 2


QUESTIONS = {
    "who works at both Uniswap and Optimism": (("uniswap", "optimism"), [["ada", "Ada", "optimism,uniswap"]]),
    "failed proposals of Uniswap": (("uniswap",), [["uniswap", "Dredge", "failed", 1.0, 2.0, "2026-02-01"]]),
    "DAOs with an open vote": ((), []),
    "three people with the most positions": ((), [["ada", "Ada", 2]]),
    "five largest holders of Uniswap": (("uniswap",), []),
    "projects similar to Uniswap": (("uniswap",), [["optimism", 1]]),
    "who lists TikTok": ((), []),
    "average treasury by state": ((), [[None, 0, None, None]]),
    "everything in Lisbon": ((), [["optimism", "Lisbon", None, "PT"]]),
    "people in Lisbon": ((), [["ada", "Ada", "optimism"]]),
    "companies by type": ((), [["corporation", 3]]),
    "companies by country": ((), [["PT", 1]]),
    "how many companies are there": ((), [[3]]),
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_statement_that_is_near_a_question_answers_it(registry, question):
    companies, rows = QUESTIONS[question]
    found = ask(registry, near_statement(question, companies))["rows"]
    assert [[*row[:2], *row[2:]] for row in found] == rows or sorted(found[0][2].split(",")) == ["optimism", "uniswap"]


def test_no_statement_is_near_other_questions():
    assert near_statement("what is a DAO good for") == ""
    assert near_statements.is_only_common("companies by type")
    assert not near_statements.is_only_common("companies")
    assert not near_statements.is_only_common("companies by Uniswap")


@pytest.mark.parametrize(
    ("question", "results", "statement"),
    [
        (
            "who works at both Uniswap and Optimism",
            ["company:uniswap", "company:optimism"],
            "IN ('uniswap', 'optimism')",
        ),
        ("companies by type", [], "SELECT type, count(*)"),
        ("people with most positions", [], "FROM positions"),
        ("everything in Lisbn", [], "LIKE '%lisbn%'"),
        ("the longest yellow submarine", [], "query, which answers SELECT"),
    ],
)
def test_search_shows_no_result_of_common_words_and_proposes_a_statement(registry, question, results, statement):
    found = registry.call("search", {"query": question})["structuredContent"]
    assert [each["id"] for each in found["results"]] == results
    assert found["notUnderstood"]
    assert statement in found["hint"]


def test_names_are_found_as_before(registry):
    found = registry.call("search", {"query": "unswap"})["structuredContent"]
    assert [each["id"] for each in found["results"]] == ["company:uniswap"]


# ---------------------------------------------------------------------- saved queries as prompts

IN_CITY = Query("in-a-city", "In a city", "Who is there.", "SELECT slug FROM companies WHERE city = :city AND 1 = :n")


def listed_prompts(registry, request=modern):
    return {each["name"]: each for each in registry.ask(*request("prompts/list")).result["prompts"]}


def test_saved_queries_are_prompts_whose_arguments_are_the_parameters(registry):
    found = listed_prompts(registry)
    assert found.keys() == {"research_company", "compare_companies", *(query.slug for query in SHIPPED)}
    similar = found["similar-companies"]
    assert similar["title"] == "Similar companies"
    assert [(each["name"], each["required"]) for each in similar["arguments"]] == [("company", True)]
    ref = {"type": "ref/prompt", "name": "similar-companies"}
    asked = {"ref": ref, "argument": {"name": "company", "value": "opt"}}
    assert registry.ask(*modern("completion/complete", asked)).result["completion"]["values"] == ["optimism"]
    missing = registry.ask(*modern("prompts/get", {"name": "similar-companies"}))
    assert "argument company" in missing.json()["error"]["message"]


@pytest.mark.parametrize("request_", [modern, legacy])
def test_a_query_that_is_saved_later_is_a_prompt_at_once_whose_statement_is_answered(registry, monkeypatch, request_):
    assert "in-a-city" not in listed_prompts(registry, request_)
    monkeypatch.setattr(public, "saved_queries", lambda: (*SHIPPED, IN_CITY))
    assert listed_prompts(registry, request_)["in-a-city"]["description"] == "Who is there."
    asked = {"name": "in-a-city", "arguments": {"city": "Lisbon", "n": "1"}}
    text = registry.ask(*request_("prompts/get", asked)).result["messages"][0]["content"]["text"]
    assert IN_CITY.sql in text
    params = json.loads(text.partition("the params ")[2].partition(":\n")[0])
    assert params == {"city": "Lisbon", "n": 1}
    assert ask(registry, IN_CITY.sql, params=params)["rows"] == [["optimism"]]
    monkeypatch.undo()
    assert "in-a-city" not in listed_prompts(registry, request_)
    assert registry.ask(*request_("prompts/get", asked)).json()["error"]["code"] == -32602
