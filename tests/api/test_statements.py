"""The REST routes of the tables: a statement as JSON or CSV, its parameters, and the list of tables."""

import asyncio
from urllib.parse import quote

import pytest

from make.published import company
from muniment.api import statements
from muniment.schema.kinds import Number
from muniment.schema.objects import registry_schema
from muniment.schema.record import Field
from muniment.store.tables import statements as waiting

SLUGS = "/api/v1/query?sql=" + quote("SELECT slug FROM companies WHERE team_size > :least ORDER BY slug")


@pytest.fixture
def tables(rest):
    rest.publish(*(company(number, teamSize=number) for number in range(1, 5)))
    rest.api.tables.follow()
    return rest


def test_a_statement_is_answered_with_its_edition(tables):
    found = tables.ask(f"{SLUGS}&least=2")
    assert found.json == {
        "data": [{"slug": "company-3"}, {"slug": "company-4"}],
        "columns": ["slug"],
        "truncated": None,
        "edition": 4,
    }
    assert found.headers["content-type"] == "application/json"
    assert tables.ask(f"{SLUGS}&least=3").json["data"] == [{"slug": "company-4"}]


def test_a_repeated_statement_is_answered_from_the_cache_until_the_next_edition(tables, monkeypatch):
    target = f"{SLUGS}&least=2"
    first = tables.ask(target)
    asked = []
    answer = tables.reader.statements.answer
    monkeypatch.setattr(tables.reader.statements, "answer", lambda *given: asked.append(given) or answer(*given))
    assert tables.ask(target).body == first.body
    assert tables.ask(target, if_none_match=first.headers["etag"]).status == 304
    assert asked == []
    tables.publish(company(9, teamSize=9))
    tables.api.tables.follow()
    again = tables.ask(target, if_none_match=first.headers["etag"])
    assert (again.status, len(again.json["data"]), len(asked)) == (200, 3, 1)


def test_a_csv_has_its_own_limits_and_says_what_cut_it(tables, monkeypatch):
    found = tables.ask(f"{SLUGS}&least=2&format=csv")
    assert found.body == b"slug\r\ncompany-3\r\ncompany-4\r\n"
    assert found.headers["content-type"] == "text/csv; charset=utf-8"
    assert found.headers["content-length"] == str(len(found.body))
    assert "x-muniment-truncated" not in found.headers
    assert tables.ask(f"{SLUGS}&least=2&format=csv", if_none_match=found.headers["etag"]).status == 304
    assert tables.ask(f"{SLUGS}&least=2&format=csv", "HEAD").body == b""
    monkeypatch.setattr(statements, "MAX_CSV_ROWS", 1)
    cut = tables.ask(f"{SLUGS}&least=2&format=csv")
    assert cut.body == b"slug\r\ncompany-3\r\n"
    assert cut.headers["x-muniment-truncated"] == "by=rows; rows=1"


def test_what_cuts_json_is_said_with_how_to_get_the_rest(tables, monkeypatch):
    monkeypatch.setattr(statements, "MAX_ROWS", 1)
    truncated = tables.ask(f"{SLUGS}&least=2").json["truncated"]
    assert (truncated["by"], truncated["rows"]) == (["rows"], 1)
    assert "format=csv" in truncated["hint"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("", "sql is missing"),
        ("sql=SELECT+1&format=xml", 'format is "xml"'),
        ("sql=SELECT+:p&p=%ff", "p is %ff, which is not valid UTF-8."),
        ("sql=SELECT+:p&p=1&p=2", "p is given more than once."),
        ("sql=SELECT+slg+FROM+companies", "There is no column slg, line 1, column 8."),
        ("sql=DROP+TABLE+companies&format=csv", "Only reading is allowed"),
    ],
)
def test_what_is_wrong_is_an_error_of_the_contract(tables, query, message):
    found = tables.ask(f"/api/v1/query?{query}")
    assert found.status == 400
    assert found.error["message"].startswith(message)


def test_the_tables_are_listed_with_types_help_and_rows(tables):
    found = tables.ask("/api/v1/tables").json
    assert found["edition"] == 4
    named = {table["name"]: table for table in found["data"]}
    assert (named["companies"]["rows"], named["people"]["rows"], named["changes"]["rows"]) == (4, 0, 4)
    columns = {column["name"]: column for table in found["data"] for column in table["columns"]}
    assert columns["treasury_minor"]["type"] == "INTEGER"
    assert all(column["help"].strip() for column in columns.values())


def test_the_list_of_tables_has_the_columns_of_now_when_fields_are_declared_at_the_same_edition(tables):
    def columns_and_rows():
        found = tables.ask("/api/v1/tables").json
        (companies,) = [table for table in found["data"] if table["name"] == "companies"]
        return {column["name"] for column in companies["columns"]}, companies["rows"], found["edition"]

    before, rows, edition = columns_and_rows()
    tables.api.use(registry_schema("USD").declare(company=(Field("rank", Number(0, 9), "Rank"),)))
    assert columns_and_rows() == (before | {"rank"}, rows, edition)
    asked = "/api/v1/query?sql=SELECT+*+FROM+companies+LIMIT+1"
    assert "rank" not in tables.ask(asked).json["columns"], (
        "from the former tables, which are read until there are others"
    )
    tables.api.tables.follow()
    assert "rank" in tables.ask(asked).json["columns"]


def test_before_the_tables_are_made_both_routes_say_so(rest, monkeypatch):
    monkeypatch.setattr(waiting, "WAIT_S", 0)
    for target in ("/api/v1/tables", "/api/v1/query?sql=SELECT+1", "/api/v1/query?sql=SELECT+1&format=csv"):
        found = rest.ask(target)
        assert (found.status, found.headers["retry-after"]) == (503, "5")
        assert found.error["message"] == "The tables are being built."


def test_the_statement_of_a_client_that_goes_away_is_ended_without_an_answer():
    async def away():
        return {"type": "http.disconnect"}

    ended = []

    async def work():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    assert asyncio.run(statements.asked_while_there(work(), away)) is None
    assert ended == [True]
